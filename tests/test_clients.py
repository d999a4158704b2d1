"""Behind a real proxy each measured client, known by its name, gets results in its own form."""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.builders import call, document, line, tool_result
from tests.plain_server import IMPORT
from tests.wire import Wire
from tests.wrapped import wrapped

WORDS = "of the things that are kept in this store"  # a look has fewer bytes of digits alone
ROWS = [{"id": n, "title": f'the "{n}" {WORDS}', "score": n * 0.5} for n in range(1028)]
RESULTS = {
    "rows": document({"items": ROWS}, structured=True),
    "text": document(ROWS),
    "short": tool_result("[1,\n 2.0]"),
    "number": tool_result("42"),
    "words": tool_result("42 rows"),
    "object": tool_result('{"id": 1}'),
    "structured": {"content": [], "structuredContent": {"id": 1.0}},
    "digits": document(
        [{"id": 2**53 + 1 + 2 * n, "title": f"{n} {WORDS}"} for n in range(110)], structured=True
    ),
    "beside": {**document(ROWS), "structuredContent": {"count": 1028}},
    # As mcp-remote spells it, which writes 2.0 as 2 in one of the copies.
    "respelled": {**document({"items": ROWS}), "structuredContent": {"items": [
        {**row, "score": n / 2 if n % 2 else n // 2} for n, row in enumerate(ROWS)
    ]}},
}  # fmt: skip
SERVER = f"""{IMPORT}
results = json.load(open(sys.argv[1]))
more = {{"inputSchema": {{"type": "object"}}, "annotations": {{"readOnlyHint": True}}}}
tools = [{{"name": name, **more}} for name in results]
serve("rows", "1", tools, lambda name, _: results[name])
"""
PAGES = "version: 1\nrules: [{tools: text, response: [{paginate: {as: items, limit: 2}}]}]\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("results") / "results.json"
    file.write_text(json.dumps(RESULTS))
    return [sys.executable, "-c", SERVER, str(file)]


def hello(client: str, version: str = "1") -> bytes:
    info = {"name": client, "version": version}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    return line(id=0, method="initialize", params=params)


class WrappedClient:
    """A client of a wrapper, after the handshake in which it names itself."""

    def __init__(self, wire: Wire, client: str) -> None:
        self._wire = wire
        self._ids = count(1)
        wire.answer(hello(client) + b"\n")

    def call(self, tool: str, arguments: Any = None, **params: Any) -> Any:
        """Call a tool; return its result."""
        [raw] = self._wire.answer(call(tool, arguments, next(self._ids), **params) + b"\n")
        return json.loads(raw)["result"]


@contextmanager
def client_of(
    server: Sequence[str], client: str, *options: str, env: Mapping[str, str] | None = None
) -> Iterator[WrappedClient]:
    command = wrapped(server, "--ledger", "off", *options)
    with Wire(command, env={**os.environ, **(env or {})}) as wire:
        yield WrappedClient(wire, client)


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def test_cline_which_shows_the_whole_result_as_json_never_cuts_it_a_second_time(
    server: list[str],
) -> None:
    with client_of(server, "@cline/core") as cline:
        for tool, view in (("rows", "items[9:99]"), ("text", "[9:99]"), ("respelled", "items")):
            first, next_rows = cline.call(tool), cline.call(tool, {"view": view})
            assert 4_000 < size(first) <= 8_000
            assert 5_000 < size(next_rows) <= 8_000


def test_copilot_shows_a_copy_once_unless_mcp_remote_respells_it(server: list[str]) -> None:
    with client_of(server, "copilot-cli") as copilot, ExitStack() as stack:
        behind = stack.enter_context(client_of(server, "copilot-cli (via mcp-remote 0.15.1)"))
        for tool in ("rows", "respelled"):
            once = copilot.call(tool)
            [text] = once["content"]
            assert json.loads(text["text"]) == once["structuredContent"]
            assert 3_000 < size(once["structuredContent"]) == len(text["text"]) <= 8_000
            assert size(behind.call(tool)["structuredContent"]) <= 4_000


def test_claude_code_with_a_token_limit_of_the_users_own_is_given_less(server: list[str]) -> None:
    with client_of(server, "claude-code", env={"MAX_MCP_OUTPUT_TOKENS": "2000"}) as claude:
        assert 3_000 < size(claude.call("rows")["structuredContent"]) <= 4_000


SCRIPT = {"callId": "exec-7d1f"}


def test_a_script_of_codex_gets_every_row_over_stdio_unless_a_rule_says_otherwise(
    server: list[str], tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(PAGES)
    options = ("--rules", str(rules), "--budget", "auto")
    with client_of(server, "codex-mcp-client", *options) as codex:
        assert codex.call("rows", _meta=SCRIPT) == RESULTS["rows"]
        assert codex.call("rows", _meta={"callId": "call_7d1f"}) != RESULTS["rows"]
        [page] = codex.call("text", _meta=SCRIPT)["content"]
        assert json.loads(page["text"])["items"] == ROWS[:2]


@pytest.mark.parametrize(
    ("client", "options", "env", "whole"),
    [
        ("claude-code", (), {"CLAUDE_CODE_EXPERIMENTAL_CODE_MODE": "1"}, True),
        ("claude-code", ("--scripts", "off"), {"CLAUDE_CODE_EXPERIMENTAL_CODE_MODE": "1"}, False),
        ("mcp", (), {"MCP_ABRIDGE_SCRIPTS": "on"}, True),
    ],
)
def test_scripts_get_every_row_where_a_variable_or_an_option_says_that_there_are_some(
    server: list[str], client: str, options: tuple[str, ...], env: dict[str, str], whole: bool
) -> None:
    with client_of(server, client, *options, env=env) as scripts:
        for tool in ("rows", "text"):
            assert (scripts.call(tool) == RESULTS[tool]) == whole


def test_gemini_cli_gets_an_object_beside_a_text_that_it_would_refuse(server: list[str]) -> None:
    with client_of(server, "gemini-cli-mcp-client") as gemini:
        short = gemini.call("short")
        assert short == {**RESULTS["short"], "structuredContent": {"result": [1, 2.0]}}
        assert gemini.call("number") == {**tool_result("42"), "structuredContent": {"result": 42}}
        [text] = gemini.call("text")["content"]
        assert isinstance(json.loads(text["text"]), dict)
        for tool in ("words", "object"):
            assert gemini.call(tool) == RESULTS[tool]


@pytest.mark.parametrize("client", ["gemini-cli-mcp-client", "fastmcp", "mcp-use", "mcp", "probe"])
def test_a_client_that_shows_text_alone_gets_a_text_if_the_server_sent_none(
    server: list[str], client: str
) -> None:
    with client_of(server, client) as shows_text:
        assert shows_text.call("structured") == {
            **tool_result('{"id":1.0}'),
            "structuredContent": {"id": 1.0},
        }


@pytest.mark.parametrize("client", ["qwen-cli-mcp-client-a", "kimi-code"])
def test_a_client_that_shows_equal_copies_once_finds_them_equal(
    server: list[str], client: str
) -> None:
    with client_of(server, client) as shows_both:
        for arguments in (None, {"view": "items[0:150]"}, {"view": "items[100]"}):
            result = shows_both.call("rows", arguments)
            [text] = result["content"]
            # Each second score is a whole number, which JavaScript spells without a point.
            assert re.search(r'"score":\d+}', text["text"])
            assert ".0" not in text["text"]
            assert json.loads(text["text"]) == result["structuredContent"]
            assert size(result["structuredContent"]) <= 10_000
        part = shows_both.call("rows", {"view": "items[0:200]"})
        assert size(part["structuredContent"]) > 8_000
        assert shows_both.call("structured") == RESULTS["structured"]


def test_no_digit_of_a_number_is_lost_to_a_client_in_javascript(server: list[str]) -> None:
    with client_of(server, "kimi-code") as kimi:
        result = kimi.call("digits")
        [text] = result["content"]
        assert '"id":9007199254740993,' in text["text"]
        # The copies differ for it, and so both count.
        assert 8_000 < size(result["structuredContent"]) + len(text["text"]) <= 10_000


def test_one_name_of_two_clients_bounds_the_copy_of_each(server: list[str]) -> None:
    with client_of(server, "fastmcp") as either:
        result = either.call("beside")
        assert result["structuredContent"] == {"count": 1028}
        assert 3_000 < sum(len(each["text"]) for each in result["content"]) <= 10_000


@pytest.mark.parametrize("client", ["@langchain/mcp-adapters", "google-adk"])
def test_a_client_that_shows_json_of_both_copies_reads_no_more_than_the_budget(
    server: list[str], client: str
) -> None:
    with client_of(server, client) as shows_json:
        for arguments in (None, {"view": "items[0:150]"}):
            assert 7_000 < size(shows_json.call("rows", arguments)) <= 10_000


def test_langchain_for_javascript_is_shown_an_answer_without_content_once(
    server: list[str],
) -> None:
    with client_of(server, "@langchain/mcp-adapters") as langchain:
        assert langchain.call("structured") == {**RESULTS["structured"], **tool_result("")}


def test_results_for_other_clients_or_without_a_budget_are_unchanged(
    server: list[str],
) -> None:
    with client_of(server, "codex-mcp-client") as codex, ExitStack() as stack:
        gemini = stack.enter_context(client_of(server, "gemini-cli-mcp-client", "--budget", "off"))
        for tool in ("short", "number", "structured"):
            assert codex.call(tool) == gemini.call(tool) == RESULTS[tool]
