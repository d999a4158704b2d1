"""Calls without a response are answered in time, by a clock that stands still in between."""

import json
from typing import Any

import pytest
from mcp_abridge.ruleset.rule_set import RuleSet

from tests.builders import EMPTY, answer, call, document, line, rules, texts
from tests.talk import Talk

LATE = (
    "no answer within 30 seconds and no progress; the call was cancelled. "
    "Whether it took effect is not known: find out before you call again"
)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class DeadlineTalk(Talk):
    """A conversation with a deadline of 30 seconds."""

    def __init__(self, rules: RuleSet = EMPTY, *, resumable: bool = False) -> None:
        self.clock = Clock()
        super().__init__(rules, resumable=resumable, deadline=30.0, clock=self.clock)

    def wait(self, seconds: float, *slots: bytes) -> None:
        """Let some time pass."""
        self.clock.now += seconds
        self.expire(*slots)

    @property
    def cancelled(self) -> list[Any]:
        """The params of the cancellations that the server got."""
        cancellations = [raw for raw in self.to_server if b'"notifications/cancelled"' in raw]
        return [json.loads(raw)["params"] for raw in cancellations]


def progress(token: object) -> bytes:
    params = {"progressToken": token, "progress": 1}
    return line(method="notifications/progress", params=params)


def test_only_calls_of_tools_are_timed() -> None:
    talk = DeadlineTalk()
    for id, method in enumerate(("initialize", "tools/list", "tasks/result", "prompts/get")):
        talk.client(line(id=id, method=method, params={}))
    talk.client(line(method="tools/call", params={"name": "of nobody"}))
    assert talk.session.time_left() is None
    talk.wait(1000)
    assert (talk.to_client, talk.cancelled) == ([], [])


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_late_response_does_not_reach_the_client(size: int) -> None:
    talk = DeadlineTalk()
    late = answer(document("x" * size), 7)
    talk.client(call("write", id=7))
    talk.wait(30)
    for raw in (late, late, late[:-5], b"[" + late + b"," + answer(document("b"), 8) + b"]"):
        talk.server(raw)
    # The rest of a batch is forwarded.
    assert talk.to_client[1:] == [answer(document("b"), 8)]
    assert talk.session.may_stream(late[:512]) is False


@pytest.mark.parametrize(
    "other",
    [
        progress("7"),
        progress(7.0),
        line(method="notifications/progress", params=[7]),
        line(method="notifications/message", params={"progressToken": 7}),
        line(id=1, method="notifications/progress", params={"progressToken": 7}),
    ],
)
def test_progress_of_other_calls_does_not_extend_a_deadline(other: bytes) -> None:
    talk = DeadlineTalk()
    talk.client(call("write", id=1, _meta={"progressToken": 7}))
    talk.wait(20)
    talk.server(other)
    talk.wait(10)
    assert texts(talk.to_client[-1]) == [LATE]


def test_progress_in_a_batch_or_a_long_line_extends_a_deadline() -> None:
    talk = DeadlineTalk()
    talk.client(call("write", id=1, _meta={"progressToken": 7}))
    talk.wait(20)
    talk.server(b"[" + progress(7) + b"]")
    talk.wait(20)
    long = line(method="notifications/progress", params={"message": "x" * 9000, "progressToken": 7})
    # It is not streamed: the session must read it.
    assert talk.session.may_stream(long[:512]) is False
    talk.server(long)
    talk.wait(20)
    assert talk.cancelled == []


def test_a_rule_withholds_the_response_to_a_cancelled_call_too() -> None:
    talk = DeadlineTalk(rules("- {tools: get, on_failure: refuse, response: [{drop: secret}]}"))
    talk.client(call("get", id=7))
    talk.client(line(method="notifications/cancelled", params={"requestId": 7}))
    talk.wait(30)
    assert (talk.to_client, len(talk.cancelled)) == ([], 1)
    talk.server(answer(document({"a": 1, "secret": 2}), 7))
    assert texts(talk.to_client[-1]) == ['{"a":1}']


def test_the_beginning_of_a_long_response_counts_as_progress() -> None:
    talk = DeadlineTalk(rules("- {tools: get, response: [{drop: secret}]}"))
    talk.client(call("get", id=7))
    talk.wait(20)
    assert talk.session.may_stream(answer(document("x" * 9000), 7)[:512]) is False
    assert talk.session.time_left() == 30.0
    talk.wait(30)
    assert texts(talk.to_client[-1]) == [LATE]


def test_equal_ids_of_two_exchanges_are_timed_apart() -> None:
    talk = DeadlineTalk()
    talk.client(call("a", id=7, _meta={"progressToken": 1}), b"1:")
    talk.wait(10)
    talk.client(call("b", id=7, _meta={"progressToken": 1}), b"2:")
    assert talk.session.time_left([b"1:7"]) == 20.0
    assert talk.session.time_left([b"2:7", b"2:8"]) == 30.0
    assert talk.session.time_left([b"3:7"]) is None
    talk.server(progress(1), b"2:")
    talk.wait(25, b"2:7")
    assert talk.cancelled == []
    talk.wait(0, b"1:7")
    assert (len(talk.cancelled), talk.session.awaits([b"1:7"])) == (1, False)
    late = len(talk.to_client)
    talk.server(answer(document("late"), 7), b"1:")
    assert len(talk.to_client) == late
    talk.server(answer(document("done"), 7), b"2:")
    assert len(talk.to_client) == late + 1


def test_the_time_that_a_call_waits_in_the_proxy_does_not_count() -> None:
    talk = DeadlineTalk()
    talk.client(call("a", id=7), b"1:")
    talk.clock.now += 29
    talk.session.restart_deadlines([b"1:7", b"1:8"])
    assert talk.session.time_left() == 30.0
