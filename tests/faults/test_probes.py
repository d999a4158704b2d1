"""Each fault during a query of a guard has the promised outcome, over every transport.

Everywhere the same: the call that is held gets one answer, the server sees it once or never, the
next call works, and nothing of the question is shown to a client.
"""

import itertools
import json
import re
from collections.abc import Iterator

import pytest

from tests.faults import ways
from tests.faults.probed import ASKS, NOTE, answer
from tests.faults.processes import until
from tests.faults.ways import (
    ALL,
    CANCELLED,
    COMMAND,
    HTTP_WAYS,
    PROBED,
    RUN_URL,
    SERVE_URL,
    STDIO,
    STDIO_WAYS,
    HttpWay,
    Messages,
    Probed,
    StdioWay,
    Way,
    hears,
    text,
)

IDS = itertools.count(100)


@pytest.fixture(scope="module")
def started() -> Iterator[dict[str, Way]]:
    with ways.all_ways() as started:
        yield started


@pytest.fixture(params=ALL)
def name(request: pytest.FixtureRequest) -> str:
    name_of_way: str = request.param
    return name_of_way


@pytest.fixture
def way(started: dict[str, Way], name: str) -> Iterator[Way]:
    """Return a way, and see to it that the way works on and no client sees a query."""
    current = started[name]
    ways.server_messages(current)
    yield current
    assert decision(current, "fine", "pass") == ("done", [])
    hears(current, "check", "act")
    assert ways.QUESTION not in current.client_bytes


def only(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", names, indirect=True)


def decision(
    way: Way, how: str | None, then: str = "block", seconds: float = 20.0
) -> tuple[str, Messages]:
    """Make a call; return the text of its answer, and the messages before that."""
    id = next(IDS)
    *others, last = way.call(id, "act", how=how, then=then, seconds=seconds).messages()
    assert last["id"] == id
    return text(last), others


FREE = '{"busy":false}'
UNREADABLE = "the answer cannot be read: not JSON: Input data was truncated"
ANSWERS = {
    "failed": "the index is locked",
    "error": "no such check",
    "garbage": UNREADABLE,
    "twice": FREE,
    "another id": FREE,
    "note": FREE,
    "question": FREE,
}
STRAY = {
    "another id": json.loads(answer(b'"nobody"')),
    "note": json.loads(NOTE),
    "question": json.loads(ASKS),
}
# Every message but the answer goes on as ever if there is a stream for it.
SHOWN_TO_CLIENT = {
    **dict.fromkeys(STDIO_WAYS, ("another id", "note", "question")),
    COMMAND[0]: ("note", "question"),
}


def test_a_guard_gets_the_answer_of_the_server(way: Way, name: str) -> None:
    for how, document in ANSWERS.items():
        beside = [STRAY[how]] if how in SHOWN_TO_CLIENT.get(name, ()) else []
        declined = ["answer"] if how == "question" and name == SERVE_URL else []
        assert (how, *decision(way, how)) == (how, document, beside)
        hears(way, "check", *declined)
        assert (how, *decision(way, how, "pass")) == (how, "done", beside)
        messages = hears(way, "check", *declined, "act")
        assert messages[0]["params"]["arguments"] == {"how": how}
        assert messages[-1]["params"]["arguments"] == {"how": how, "then": "pass", "seconds": 20.0}
        for each in messages[1:-1]:
            assert each["id"] == "s-1"
            assert each["error"]["message"] == (
                "nobody can be asked anything before the call that this is about"
            )


BROKEN_OFF = "the server ended its stream before it had answered"
NO_ANSWER = "the server answered something else"
OOPS = "the server answered HTTP 500 Internal Server Error"
HTTP = {
    "reset": (
        "the server at {url} gave no answer: the connection failed: connection reset by peer",
        "the server cannot be reached: the connection failed: connection reset by peer",
    ),
    "broken": (
        "no answer came: the server's event stream broke off: it ended within an event, after N "
        "bytes of it",
        "the server's stream broke off: it ended within an event, after N bytes of it",
    ),
    "ended": ("no answer came: the server's event stream ended", BROKEN_OFF),
    "failing": (f"{OOPS}: <h1>Oops</h1>", OOPS),
    "failing with an error": ("no such check", "no such check"),
    "error of nobody": ("no such check", "no such check"),
    "empty": (
        "HTTP 202 without an answer to it: no Content-Type, empty",
        "the server gave no answer",
    ),
    "other": ("HTTP 200 without an answer to it: text/html, <h1>Hello</h1>", NO_ANSWER),
    "streamed": (FREE, FREE),
}


@only(RUN_URL, SERVE_URL)
def test_a_guard_gets_the_failure_of_the_http_request(way: Way, name: str) -> None:
    assert way.http is not None
    for how, words in HTTP.items():
        failure, _ = decision(way, how)
        failure = re.sub(r"after \d+ bytes", "after N bytes", failure)
        assert (how, failure) == (how, words[name == SERVE_URL].replace("{url}", way.http.url))
        hears(way, "check")
        assert (how, decision(way, how, "pass")[0]) == (how, "done")
        hears(way, "check", "act")


def ended(http: Probed, count: int) -> None:
    """Wait until so many questions were given up by the end of their connections."""
    until(lambda: http.abandoned_queries >= count)
    assert http.abandoned_queries == count


@only(*HTTP_WAYS)
def test_a_client_that_goes_away_ends_the_query(way: Way, name: str) -> None:
    assert isinstance(way, HttpWay)
    before = way.sidecar.resources
    count = 0 if way.http is None else way.http.abandoned_queries
    call = way.call(next(IDS), "act", how="never", then="pass", seconds=1.0)
    [check] = hears(way, "check")
    call.leave()
    if way.http is not None:
        ended(way.http, count + 1)
    elif name == COMMAND[0]:
        # The call goes on, as calls of a session do.
        hears(way, CANCELLED, "act")
    else:
        [cancelled] = hears(way, CANCELLED)
        assert cancelled["params"]["requestId"] == check["id"]
    way.sidecar.settles(before)


@only(STDIO, RUN_URL)
def test_a_held_call_goes_on_after_the_end_of_the_clients_input(way: Way, name: str) -> None:
    command = ["--", *PROBED] if way.http is None else [way.http.url]
    with StdioWay(*command, http=way.http) as wire:
        call = wire.call(7, "act", how="slow", then="pass")
        wire.shut_stdin()
        [answer] = call.messages()
        assert text(answer) == "done"
        assert wire.process.wait(20) == 0
    ways.server_messages(way)


DEATH = "the server ended with exit code 3; its stderr ends with:\nthe disk is on fire"


def death(way: Way) -> None:
    [answer] = way.call(7, "act", how="death", then="pass").messages()
    assert text(answer) == DEATH
    assert answer["result"]["isError"] is True
    assert ways.QUESTION not in way.client_bytes


def test_a_held_call_is_answered_if_its_server_on_stdio_dies() -> None:
    with StdioWay("--", *PROBED) as wire:
        death(wire)
        ended = wire.close()
        assert (ended.code, ended.rest) == (3, b"")


@only(*COMMAND)
def test_a_held_call_is_answered_if_its_server_behind_a_sidecar_dies(
    started: dict[str, Way], name: str
) -> None:
    served = started[name]
    assert isinstance(served, HttpWay)
    before = served.sidecar.resources
    death(HttpWay(served.sidecar, name.partition(", ")[2]))
    served.sidecar.settles(before)
