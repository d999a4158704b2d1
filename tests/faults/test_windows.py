"""Pages, windows and views that cannot be, or have nothing behind them: seen over each way."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.asking import Client, Start, each_way, on_stdio, over_http
from tests.faults.routes import Local
from tests.faults.sidecar import compact, keys

RULES = """\
version: 1
rules:
  - tools: [list, read]
    response: [{paginate: {at: rows, limit: 4, max_limit: 50}}]
  - {tools: long, max_bytes: 300}
  - {tools: note, response: [{truncate: {max_length: 5}}]}
"""
MADE_BEFORE = (
    "this call was made before, and its answer is not kept (it expired, or was short); {} does not "
    "run again just to show a part, since it declares neither readOnlyHint nor idempotentHint; "
    "call again {} first"
)
PAGE_LOST = MADE_BEFORE.format("list", "with offset=0")
VIEW_LOST = MADE_BEFORE.format("long", "without view") + "; its answer then takes views for a while"


@pytest.fixture
def rules(tmp_path: Path) -> str:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES)
    return str(file)


def call_tool(client: Client, tool: str, arguments: dict[str, Any] | str) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else compact(arguments).decode()
    params = f'{{"name":"{tool}","arguments":{text}}}'
    line = f'{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}'
    answer: dict[str, Any] = json.loads(client.ask(line.encode()))
    assert answer["id"] == 2
    result: dict[str, Any] = answer["result"]
    return result


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def refusal(result: dict[str, Any]) -> str:
    assert result["isError"] is True
    return text(result)


def page(result: dict[str, Any]) -> dict[str, Any]:
    assert "isError" not in result
    document: dict[str, Any] = json.loads(text(result))
    return document


def listed(client: Client) -> None:
    client.ask(b'{"jsonrpc":"2.0","id":9,"method":"tools/list"}')


def calls(client: Client) -> dict[str, int]:
    """Return how often each tool was called, this one left aside."""
    counts: dict[str, int] = json.loads(text(call_tool(client, "calls", {})))
    return {tool: count for tool, count in counts.items() if tool != "calls"}


WRONG = {
    '{"limit":0}': "limit: 0 is less than the minimum of 1",
    '{"limit":51}': "limit: 51 is greater than the maximum of 50",
    '{"limit":"5"}': 'limit: "5" is not an integer',
    '{"limit":2.5}': "limit: 2.5 is not an integer",
    '{"limit":1e400}': "limit: 1e400 is not an integer",
    '{"limit":%s}' % ("9" * 60): f"limit: {'9' * 60} is greater than the maximum of 50",
    '{"offset":-1}': "offset: -1 is less than the minimum of 0",
    '{"offset":"next"}': 'offset: "next" is not an integer',
}


@each_way(39)
def test_an_impossible_window_is_refused_without_a_call_of_the_server(
    start: Start, rules: str
) -> None:
    with start("--rules", rules) as client:
        assert {
            arguments: refusal(call_tool(client, "list", arguments)) for arguments in WRONG
        } == WRONG
        assert calls(client) == {}
        assert page(call_tool(client, "list", {}))["rows"] == ["1-0", "1-1", "1-2", "1-3"]


@each_way(39)
def test_pages_are_of_one_answer_though_the_list_has_changed(start: Start, rules: str) -> None:
    with start("--rules", rules) as client:
        rows, offset = [], 0
        while offset is not None:
            document = page(call_tool(client, "list", {"offset": offset}))
            rows += document["rows"]
            offset = document["pagination"]["nextOffset"]
        assert rows == [f"1-{number}" for number in range(10)]
        assert calls(client) == {"list": 1}
        # Whoever begins anew gets what there is now.
        assert page(call_tool(client, "list", {}))["rows"][0] == "2-0"
        assert page(call_tool(client, "list", {"offset": 4}))["rows"][0] == "2-4"


TEXTS = {
    "accents": "e\u0301o\u0308" * 20,
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 10,
    "flags": "\U0001f1e9\U0001f1ea" * 15,
    "ends of lines": "\u2028\r\n\x00\ufeff" * 12,
    "halves of pairs": "\udc00\ud83d lone \ude00\ude00" * 5,
}


@pytest.mark.fault(40, "stdio")
def test_windows_of_any_characters_rejoin_to_the_text(rules: str) -> None:
    with on_stdio("--rules", rules) as client:
        for name, says in TEXTS.items():
            joined_text, start = "", 0
            while start is not None:
                window = call_tool(client, "note", {"says": says, "startIndex": start})
                joined_text += text(window)
                notice = json.loads(window["content"][1]["text"])
                start = notice.get("nextIndex")
            # Half of a pair is no character, and cannot be shown.
            assert joined_text == re.sub("[\ud800-\udfff]", "\ufffd", says), name
        assert calls(client) == {"note": len(TEXTS)}


# The options with which an answer is lost.
LOSSES = {
    "expired": {
        "stdio": ("--snapshot-age", "0.2"),
        "http": keys(limits={"snapshot_seconds": 0.2}),
    },
    "too many": {"stdio": ("--snapshots", "1"), "http": keys(limits={"snapshots": 1})},
}


@each_way(41)
@pytest.mark.parametrize("why", LOSSES)
def test_a_page_or_view_of_a_lost_answer_is_refused_in_the_same_words(
    start: Start, why: str, rules: str
) -> None:
    options = LOSSES[why]["http" if start is over_http else "stdio"]
    with start("--rules", rules, *options) as client:
        listed(client)
        for tool in ("list", "long"):
            call_tool(client, tool, {})
        end = time.monotonic() + 20
        first = call_tool(client, "list", {"offset": 4})
        while why == "expired" and "isError" not in first:
            assert time.monotonic() < end, "it is kept for ever"
            time.sleep(0.3)  # not looked at meanwhile, which would be a use of it
            first = call_tool(client, "list", {"offset": 4})
        assert refusal(first) == PAGE_LOST
        assert refusal(call_tool(client, "long", {"view": "rows"})) == VIEW_LOST
        assert calls(client) == {"list": 1, "long": 1}


@pytest.mark.fault(41, "http")
def test_an_answer_of_another_session_has_no_pages_and_no_views(rules: str) -> None:
    with over_http("--rules", rules) as client:
        call_tool(client, "list", {})
        call_tool(client, "long", {})
        other = Local(client.sidecar)
        assert refusal(call_tool(other, "list", {"offset": 4})) == PAGE_LOST
        assert refusal(call_tool(other, "long", {"view": "rows"})) == VIEW_LOST
        assert page(call_tool(client, "list", {"offset": 4}))["rows"][0] == "1-4"
