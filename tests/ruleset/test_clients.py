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
        ("copilot-cli", "both", 20_480),
        ("github-copilot-developer", "both", 10_240),
        ("JetBrains-IU-copilot-intellij", "both", None),
        ("gemini-cli-mcp-client", "text", 40_000),
        ("gemini-cli-mcp-client-obsidian", "text", 40_000),
        ("goose", "text", 200_000),
        ("opencode", "either", 50_000),
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
def test_the_budget_of_a_client_is_below_its_limit_and_between_8_and_10_kb(client: Client) -> None:
    assert 8_000 <= client.budget_bytes <= 10_000
    assert client.limit_bytes is None or client.budget_bytes < client.limit_bytes
    assert (client.limit_bytes is None) == (client.beyond is None)
    assert client.source


def test_no_entry_is_shadowed_by_an_earlier_one() -> None:
    plain = {client.name.replace("*", "x").replace("?", " "): client for client in CLIENTS}

    assert {name: client_for(name) for name in plain} == plain


@pytest.mark.parametrize(
    ("shows", "mirrored", "structured_only", "text_only"),
    [
        ("structured", 30, 30, 50),
        ("text", 50, 30, 50),
        ("both", 80, 30, 50),
        ("either", 50, 30, 50),
    ],
)
def test_the_visible_bytes_are_those_of_the_copies_that_the_model_reads(
    shows: str, mirrored: int, structured_only: int, text_only: int
) -> None:
    client = next(each for each in [*CLIENTS, UNKNOWN] if each.shows == shows)

    assert client.visible(structured=30, text=50) == mirrored
    assert client.visible(structured=30, text=0) == structured_only
    assert client.visible(structured=0, text=50) == text_only


def test_codex_marks_the_calls_that_its_models_write_scripts_for() -> None:
    assert client_for("codex-mcp-client").code_mode == (("callId",), "exec-")
    assert UNKNOWN.code_mode is None
