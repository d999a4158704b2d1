"""A session played out in one place: what the client gets, with snapshots kept in between."""

import json

from proxy.ruleset.rule import EMPTY
from proxy.testing.rehearsal import InMemoryTransport
from tests.given import answer, call, document, line, rules, texts

PAGES = rules("- {tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [delete]}}]}")


class Server:
    """Answers every call with the same items, and counts the calls."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def __call__(self, raw: bytes) -> bytes | None:
        self.seen.append(raw)
        read = json.loads(raw)
        return answer(document({"items": [1, 2, 3]}), read["id"]) if "id" in read else None


def test_without_rules_what_is_said_reaches_the_server_and_its_answer_the_client() -> None:
    server = Server()

    assert InMemoryTransport(EMPTY, server).say(call("list")) == [
        answer(document({"items": [1, 2, 3]}))
    ]
    assert server.seen == [call("list")]


def test_what_is_not_answered_gives_nothing() -> None:
    assert InMemoryTransport(EMPTY, Server()).say(line(method="notifications/initialized")) == []


def test_pages_come_from_the_snapshots_of_the_session() -> None:
    server = Server()
    rehearsal = InMemoryTransport(PAGES, server)

    rehearsal.say(call("list"))
    [page] = rehearsal.say(call("list", {"offset": 2}, id=2))

    assert json.loads(texts(page)[0])["items"] == [3]
    assert len(server.seen) == 1
    assert [outcome.word for _, outcome in rehearsal.shaped] == ["shaped", "page"]


def test_snapshots_are_dropped_as_the_rules_say() -> None:
    server = Server()
    rehearsal = InMemoryTransport(PAGES, server)
    rehearsal.say(call("list"))
    rehearsal.say(call("delete", id=2))

    [page] = rehearsal.say(call("list", {"offset": 2}, id=3))

    assert json.loads(page)["result"]["isError"] is True
    assert len(server.seen) == 2


def test_what_the_proxy_answers_itself_reaches_no_server() -> None:
    server = Server()

    [refused] = InMemoryTransport(PAGES, server).say(call("list", {"limit": 0}))

    assert texts(refused) == ["limit: 0 is less than the minimum of 1"]
    assert server.seen == []


def test_what_is_logged_is_kept() -> None:
    rehearsal = InMemoryTransport(
        rules("- {name: r, tools: list, response: [{keep: [a.b]}]}"), Server()
    )

    rehearsal.say(call("list"))

    assert len(rehearsal.log) == 1
    assert rehearsal.log[0].startswith("r: list: left as it came: ")
