"""One call replayed: the first call before a later page, what the server saw, what came back."""

import json
from typing import Any

from msgspec.structs import replace

from proxy.session.tools.definitions import ToolFacts
from proxy.testing.exchange import RecordedExchange, make, text_result
from proxy.testing.play import InMemoryTransport, Replay
from tests.given import answer, call, document, line, rules, texts

PAGES = rules(
    "- {name: pages, tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [delete]}}]}"
)
ITEMS = {"items": [1, 2, 3, 4, 5]}


def exchange(**arguments: object) -> RecordedExchange:
    return make("list", arguments, text_result(json.dumps(ITEMS)))


def items(raw: bytes) -> Any:
    return json.loads(texts(raw)[0])["items"]


def test_a_refused_call_is_not_tried_twice() -> None:
    play = Replay(PAGES, exchange(offset=2, limit=99))

    assert (play.answer.failed, play.calls, play.outcome) == (True, [], "refused")


def test_the_same_call_can_be_replayed_with_another_rule_in_place_of_the_one_that_applied() -> None:
    play = Replay(PAGES, exchange(offset=4))
    assert play.applied is not None

    again = play.again(replace(play.applied, pipeline=()))

    assert items(again.answer.line) == [1, 2, 3, 4, 5]
    assert (items(play.answer.line), again.calls) == ([5], [{"offset": 4}])


def test_with_the_facts_of_the_tool_its_own_arguments_are_not_those_of_the_rule() -> None:
    call = exchange(limit=99, offset=3, page_offset=4)
    play = Replay(PAGES, call, facts=ToolFacts(frozenset({"limit", "offset"})))

    assert (items(play.answer.line), play.calls) == ([5], [{"limit": 99, "offset": 3}])
    assert play.applied is not None
    assert items(play.again(play.applied).answer.line) == [5]


def test_a_transport_in_memory_keeps_and_drops_snapshots_as_the_rules_say() -> None:
    seen: list[bytes] = []

    def serve(raw: bytes) -> bytes | None:
        seen.append(raw)
        read = json.loads(raw)
        return answer(document(ITEMS), read["id"]) if "id" in read else None

    transport = InMemoryTransport(PAGES, serve, lambda _: None)

    assert transport.send(line(method="notifications/initialized")) == []
    for lines in (transport.send(call("list")), transport.send(call("list", {"offset": 2}, id=2))):
        assert len(lines) == 1
    assert items(lines[0]) == [3, 4]
    assert len(seen) == 2
    transport.send(call("delete", id=3))
    [expired] = transport.send(call("list", {"offset": 2}, id=4))
    assert json.loads(expired)["result"]["isError"] is True
    assert [read["method"] for read in map(json.loads, seen[2:])] == [
        "tools/call",
        "notifications/cancelled",
    ]
