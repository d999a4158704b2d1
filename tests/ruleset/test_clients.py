"""The table of clients: each known name finds its entry, and every entry is usable."""

import pytest

from proxy.ruleset.clients import CLIENTS, UNKNOWN, Client, client_for


@pytest.mark.parametrize(
    ("name", "shows", "limit"),
    [
        ("claude-code", "structured", 50_000),
        ("claude-ai", "either", 150_000),
        ("Anthropic/ClaudeAI", "either", 150_000),
        ("codex-mcp-client", "structured", 48_000),
        ("Codex", "structured", 48_000),
        ("Visual Studio Code", "structured", 8_192),
        ("Visual-Studio-Code", "structured", 8_192),
        ("Visual Studio Code - Insiders", "structured", 8_192),
        ("copilot-cli", "once", 20_480),
        ("copilot-cli (via mcp-remote 0.15.1)", "both", 20_480),
        ("github-copilot-developer", "both", 10_240),
        ("JetBrains-IU-copilot-intellij", "both", None),
        ("gemini-cli-mcp-client", "text", 40_000),
        ("goose", "text", 200_000),
        ("opencode (via mcp-remote 0.15.1)", "text", 50_000),
        ("qwen-cli-mcp-client-probe", "text", 25_000),
        ("@cline/core", "result", 8_000),
        ("continue-cli-client", "blocks", None),
        ("ai-sdk-mcp-client", "blocks", None),
        ("mcp-use", "text", None),
        ("fastmcp", "structured", None),
        ("inspector-cli", "both", None),
        ("cursor-vscode", "either", None),
        ("openai-mcp", "both", None),
        ("Zed", "text", None),
        ("Cline", "text", None),
        ("Roo-Code", "text", None),
        ("Roo Code", "text", None),
        ("@librechat/api-client", "text", None),
    ],
)
def test_a_name_that_a_client_really_sends_finds_its_entry(
    name: str, shows: str, limit: int | None
) -> None:
    client = client_for(name)

    assert client is not UNKNOWN
    assert (client.shows, client.limit_bytes) == (shows, limit)


@pytest.mark.parametrize("name", [None, "", "mcp", "my codex", "[claude-code]"])
def test_any_other_client_is_taken_to_show_either_copy(name: str | None) -> None:
    assert client_for(name) is UNKNOWN
    assert UNKNOWN.shows == "either"


@pytest.mark.parametrize("client", [*CLIENTS, UNKNOWN], ids=lambda client: client.name)
def test_the_budget_of_a_client_is_below_its_limit_and_8_to_10_kb_if_it_can_be(
    client: Client,
) -> None:
    assert client.budget_bytes <= 10_000
    assert client.budget_bytes >= 8_000 or client.limit_bytes == 8_000
    assert client.limit_bytes is None or client.budget_bytes < client.limit_bytes
    assert (client.limit_bytes is None) == (client.beyond is None)
    assert client.measured or client.source


@pytest.mark.parametrize(
    ("tokens", "budget"),
    [("2000", 4_000), ("25000", 10_000), ("1", 300), ("0", 10_000), ("many", 10_000)],
)
def test_a_limit_of_the_users_own_in_tokens_lowers_the_budget(tokens: str, budget: int) -> None:
    environ = {"MAX_MCP_OUTPUT_TOKENS": tokens}

    assert client_for("claude-code").within(environ).budget_bytes == budget
    assert client_for("codex-mcp-client").within(environ) == client_for("codex")


def test_no_entry_is_shadowed_by_an_earlier_one() -> None:
    plain = {client.name.replace("*", "x").replace("?", " "): client for client in CLIENTS}

    assert {name: client_for(name) for name in plain} == plain


def test_codex_marks_the_calls_that_its_models_write_scripts_for() -> None:
    assert client_for("codex-mcp-client").code_mode == (("callId",), "exec-")
    assert UNKNOWN.code_mode is None
