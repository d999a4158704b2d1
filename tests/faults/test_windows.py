"""Pages, windows and views that cannot be, or have nothing behind them: seen over each way."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.asking import Client, Start, each_way, on_stdio, over_http
from tests.faults.routes import Local, failure
from tests.faults.sidecar import call, keys

RULES = """\
version: 1
rules:
  - {tools: list, response: [{paginate: {at: rows, limit: 4, max_limit: 50}}]}
  - {tools: long, max_bytes: 300}
  - {tools: note, response: [{truncate: {max_length: 5}}]}
"""
MADE_BEFORE = (
    "this call was made before, and its answer is not kept (it expired, or was short, and then all "
    "of it was shown); {} does not run again just to show a part, since it declares neither "
    "readOnlyHint nor idempotentHint; "
    "call again {} first"
)
PAGE_LOST = MADE_BEFORE.format("list", "with offset=0")
VIEW_LOST = (
    MADE_BEFORE.format("long", "without view") + "; an answer that is cut takes views for a while"
)


@pytest.fixture
def rules(tmp_path: Path) -> str:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES)
    return str(file)


def ask(client: Client, tool: str, **arguments: Any) -> bytes:
    return client.ask(call(2, tool, arguments=arguments))


def texts(raw: bytes) -> list[str]:
    result = json.loads(raw)["result"]
    assert "isError" not in result
    return [block["text"] for block in result["content"]]


def page(client: Client, offset: int = 0) -> Any:
    [text] = texts(ask(client, "list", offset=offset))
    return json.loads(text)


def calls(client: Client) -> dict[str, int]:
    """Return how often each tool was called, this one left aside."""
    [text] = texts(ask(client, "calls"))
    return {tool: count for tool, count in json.loads(text).items() if tool != "calls"}


# As JSON spells them; more stand in tests/session/test_arguments.py.
WRONG = {
    '"limit":51': "limit: 51 is greater than the maximum of 50",
    '"limit":"5"': 'limit: "5" is not an integer',
    '"limit":1e400': "limit: 1e400 is not an integer",
    '"offset":-1': "offset: -1 is less than the minimum of 0",
}


@each_way(39)
def test_an_impossible_window_is_refused_and_pages_are_of_one_answer(
    start: Start, rules: str
) -> None:
    with start("--rules", rules) as client:
        for member, reason in WRONG.items():
            raw = call(2, "list", arguments={}).replace(b"{}", b"{%s}" % member.encode())
            assert failure(client.ask(raw), 2) == reason
        assert calls(client) == {}
        rows, offset = [], 0
        while offset is not None:
            document = page(client, offset)
            rows += document["rows"]
            offset = document["pagination"]["nextOffset"]
        assert rows == [f"1-{number}" for number in range(10)]
        assert calls(client) == {"list": 1}
        # Whoever begins anew gets what there is now.
        assert page(client)["rows"][0] == "2-0"
        assert page(client, 4)["rows"][0] == "2-4"


TEXTS = {
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 10,
    "ends of lines": "\u2028\r\n\x00\ufeff" * 12,
    "halves of pairs": "\udc00\ud83d lone \ude00\ude00" * 5,
}


@pytest.mark.fault(40, "stdio")
def test_windows_of_any_characters_rejoin_to_the_text(rules: str) -> None:
    with on_stdio("--rules", rules) as client:
        for name, says in TEXTS.items():
            joined_text, start = "", 0
            while start is not None:
                window, notice = texts(ask(client, "note", says=says, startIndex=start))
                joined_text += window
                start = json.loads(notice).get("nextIndex")
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
        client.ask(b'{"jsonrpc":"2.0","id":9,"method":"tools/list"}')
        for tool in ("list", "long"):
            ask(client, tool)
        end = time.monotonic() + 20
        first = ask(client, "list", offset=4)
        while why == "expired" and b"isError" not in first:
            assert time.monotonic() < end, "it is kept for ever"
            time.sleep(0.3)  # not looked at meanwhile, which would be a use of it
            first = ask(client, "list", offset=4)
        assert failure(first, 2) == PAGE_LOST
        assert failure(ask(client, "long", view="rows"), 2) == VIEW_LOST
        assert calls(client) == {"list": 1, "long": 1}


@pytest.mark.fault(41, "http")
def test_an_answer_of_another_session_has_no_pages_and_no_views(rules: str) -> None:
    with over_http("--rules", rules) as client:
        page(client)
        ask(client, "long")
        other = Local(client.sidecar)
        assert failure(ask(other, "list", offset=4), 2) == PAGE_LOST
        assert failure(ask(other, "long", view="rows"), 2) == VIEW_LOST
        assert page(client, 4)["rows"][0] == "1-4"
