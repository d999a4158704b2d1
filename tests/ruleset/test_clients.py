"""The table of clients: each known name finds its entry, and every entry is usable."""

import pytest
from mcp_abridge.ruleset.clients import CLIENTS, UNKNOWN, Client, client_for

# What clients really send, by the name of the row that it finds.
NAMES = {
    "claude-code*": ["claude-code"],
    "claude-ai*": ["claude-ai"],
    "anthropic/claudeai*": ["Anthropic/ClaudeAI"],
    "codex*": ["codex-mcp-client", "Codex"],
    "visual?studio?code*": ["Visual Studio Code", "Visual-Studio-Code - Insiders"],
    "copilot-cli*": ["copilot-cli"],
    "copilot-cli (via mcp-remote*": ["copilot-cli (via mcp-remote 0.15.1)"],
    "github-copilot*": ["github-copilot-developer"],
    "jetbrains-*copilot*": ["JetBrains-IU-copilot-intellij"],
    "gemini-cli*": ["gemini-cli-mcp-client"],
    "goose*": ["goose"],
    "opencode*": ["opencode (via mcp-remote 0.15.1)"],
    "qwen-cli-mcp-client*": ["qwen-cli-mcp-client-probe"],
    "kimi-code*": ["kimi-code"],
    "@langchain/mcp-adapters*": ["@langchain/mcp-adapters"],
    "google-adk*": ["google-adk"],
    "@cline/*": ["@cline/core"],
    "continue-cli-client*": ["continue-cli-client"],
    "ai-sdk-mcp-client*": ["ai-sdk-mcp-client"],
    "mcp-use*": ["mcp-use"],
    "fastmcp*": ["fastmcp"],
    "inspector-cli*": ["inspector-cli"],
    "cursor*": ["cursor-vscode"],
    "openai-mcp*": ["openai-mcp"],
    "zed*": ["Zed"],
    "cline*": ["Cline"],
    "roo?code*": ["Roo-Code", "Roo Code"],
    "@librechat/*": ["@librechat/api-client"],
}


@pytest.mark.parametrize("row", NAMES)
def test_a_name_that_a_client_really_sends_finds_its_entry(row: str) -> None:
    assert {client_for(name).name for name in NAMES[row]} == {row}


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


def test_no_entry_is_shadowed_by_an_earlier_one() -> None:
    plain = {client.name.replace("*", "x").replace("?", " "): client for client in CLIENTS}

    assert {name: client_for(name) for name in plain} == plain
