"""What must be seen of calls that the server leaves alone for longer than `--deadline` allows.

On each way several calls are on their way at once; then it is looked at who was told what.
"""

import itertools
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest

if sys.platform != "linux":
    pytest.skip("what a process holds is read from /proc", allow_module_level=True)

from tests.faults.processes import until
from tests.faults.routes import NAUGHTY, Local, answer_of, modern
from tests.faults.scale import LONG, further
from tests.faults.sidecar import call, get, post, serving
from tests.faults.ways import (
    CANCELLED,
    COMMAND,
    PROBED,
    RUN_URL,
    SERVE_URL,
    SERVED,
    SESSIONS,
    STATELESS,
    WRITTEN,
    Exchange,
    Posted,
    Said,
    Way,
    Ways,
    Written,
    all_ways,
    hears,
    listed,
    text,
)

# A machine under load may stop a process for a second; the server reports progress each 50 ms.
SECONDS = 2.0
DEADLINE = ("--deadline", str(SECONDS))
LATE = (
    "no answer within 2 seconds and no progress; the call was cancelled. "
    "Whether it took effect is not known: find out before you call again"
)
REASON = "no answer within 2 seconds and no progress"
IDS = itertools.count(100)
# One era before a URL either way: what is late is known by the session, and told by the driver.
LONG_ONLY = (RUN_URL[0], SERVE_URL[1])
ALL = [
    (further if name in LONG_ONLY else pytest.param)(name, marks=[pytest.mark.fault(14, way)])
    for way, names in (("stdio", WRITTEN), ("http", SERVED))
    for name in names
]
# Where a client can take a call back by a message.
TAKES_BACK = ("stdio", RUN_URL[0], SERVE_URL[0], COMMAND[0])


class Record(NamedTuple):
    """What came of the calls: what their client was sent, and what the server was told."""

    ids: dict[str, int]
    shown: Said
    heard: Said

    def answers(self, how: str) -> Said:
        """Return the answers to a call."""
        id = self.ids[how]
        return [each for each in self.shown if each.get("id") == id and "method" not in each]

    def cancelled(self, how: str) -> Said:
        """Return what the server was told of the end of a call."""
        told = [each["params"] for each in self.heard if each["method"] == CANCELLED]
        return [params for params in told if params["requestId"] == self.known(how)]

    def known(self, how: str) -> Any:
        """Return the id of a call at the server, which is the proxy's own if clients share it."""
        calls = [each for each in self.heard if each.get("params", {}).get("arguments")]
        [id] = [each["id"] for each in calls if each["params"]["arguments"].get("mark") == how]
        return id


@pytest.fixture(scope="module")
def ways() -> Iterator[Ways]:
    with all_ways(*DEADLINE) as started:
        yield started


@pytest.fixture(scope="module")
def records(ways: Ways) -> dict[str, Record]:
    """What was recorded of each way; those before one server follow each other."""

    def each(names: Sequence[str]) -> list[tuple[str, Record]]:
        tried = [name for name in names if LONG or name not in LONG_ONLY]
        return [(name, recorded(ways[name], name)) for name in tried]

    with ThreadPoolExecutor() as pool:
        return dict(chain(*pool.map(each, [("stdio",), (*RUN_URL, *SERVE_URL), COMMAND])))


@pytest.fixture(params=ALL)
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def record(records: dict[str, Record], name: str) -> Record:
    return records[name]


def only(*names: str) -> pytest.MarkDecorator:
    marked = [each for each in ALL if each.values[0] in names]
    return pytest.mark.parametrize("name", marked, indirect=True)


# Tokens are told apart by their types and spellings, as ids are.
TOKENS: dict[str, int | str] = {"alive": 7, "foreign": "7", "never": "nobody"}
CALLS = ("never", "belated", "foreign", "alive", "fine", "held")


def recorded(way: Way, name: str) -> Record:
    """Make all calls at once, and return what came of them."""
    ids = {how: next(IDS) for how in (*CALLS, "taken back", "left")}
    shown: Said = []
    heard: Said = []
    told(way, shown)
    calls: dict[str, Exchange] = {}
    if name in TAKES_BACK:
        calls["taken back"] = way.call(ids["taken back"], "check", how="never", mark="taken back")
    if name in SERVED:
        calls["left"] = way.call(ids["left"], "check", how="never", mark="left")
    for how in CALLS:
        if how == "held":
            asked = {"how": "never", "then": "pass", "seconds": 1.5 * SECONDS}
            calls[how] = way.call(ids[how], "act", mark=how, **asked)
        else:
            more = {"token": TOKENS[how]} if how in TOKENS else {}
            calls[how] = way.call(ids[how], "check", how=how, mark=how, **more)

    def all_there() -> bool:
        heard.extend(told(way, shown))
        return len(heard) >= len(calls)

    until(all_there, said=lambda: str(heard))
    if name in TAKES_BACK:
        way.cancel(ids["taken back"])
    if name in SERVED:
        calls["left"].leave()
    gather(way, {ids[how]: calls[how] for how in CALLS}, shown)
    if isinstance(taken := calls.get("taken back"), Posted):
        shown += taken.so_far()
        taken.leave()
    # All that was begun before it is over by now: it has waited for as long.
    last = next(IDS)
    gather(way, {last: way.call(last, "check", how="never")}, shown)
    heard += told(way, shown)
    return Record(ids, shown, heard)


def told(way: Way, shown: Said) -> Said:
    """Return what the server was told since the last time; what comes meanwhile goes to `shown`."""
    if way.http is not None:
        return way.heard()
    *others, last = way.call(0, "heard").messages()
    shown += others
    return listed([last])


def gather(way: Way, calls: dict[int, Exchange], shown: Said) -> None:
    """Wait until all these calls are answered; what clients are sent goes to `shown`."""
    if not isinstance(way, Written):
        shown += [each for call in calls.values() for each in call.messages()]
        return
    while not calls.keys() <= {each.get("id") for each in shown if "method" not in each}:
        shown.append(json.loads(way.line()))


# In the stateless era over HTTP the end of the connection says so.
SILENT = (RUN_URL[1], SERVE_URL[1])
FREE = '{"busy":false}'
# A late answer reaches nobody, progress of something else counts for nothing, and the time of a
# call that is held begins when it is sent.
ANSWERS = dict.fromkeys(("never", "belated", "foreign"), LATE)
ANSWERS |= {"alive": "done", "fine": FREE, "held": "done"}


def test_a_call_that_is_late_is_answered_with_an_error_and_the_server_is_told_once(
    record: Record, name: str
) -> None:
    for how, words in ANSWERS.items():
        [answer] = record.answers(how)
        late = words == LATE
        assert (how, text(answer), answer["result"].get("isError", False)) == (how, words, late)
        told = late and name not in SILENT
        reasons = [{"requestId": record.known(how), "reason": REASON}] if told else []
        assert (how, record.cancelled(how)) == (how, reasons)


@only(*TAKES_BACK)
def test_a_call_that_was_taken_back_is_not_answered_by_us(record: Record) -> None:
    assert record.answers("taken back") == []
    assert record.cancelled("taken back") == [{"requestId": record.known("taken back")}]


@only(*SERVED)
def test_the_server_is_told_once_of_a_call_whose_client_went_away(
    record: Record, name: str
) -> None:
    # In the handshake era such a call goes on, for its client may come back.
    reason = "the client closed the stream" if name == COMMAND[1] else REASON
    said = [] if name in SILENT else [{"requestId": record.known("left"), "reason": reason}]
    assert record.cancelled("left") == said


@only(*SERVED)
def test_nothing_is_left_of_it(record: Record, name: str, ways: Ways) -> None:
    sidecar = ways.sidecar(name)
    until(lambda: sidecar.left.requests == 0)
    figures = sidecar.ask(get("/metrics")).body
    assert b'mcp_abridge_calls_total{outcome="late",tool="check"}' in figures
    assert text(ways[name].call(next(IDS), "check", how="fine").messages()[-1]) == FREE


@only(*TAKES_BACK)
def test_in_a_batch_only_what_is_late_is_answered_by_us(name: str, ways: Ways) -> None:
    way = ways[name]
    late, fine = next(IDS), next(IDS)
    way.heard()
    found = way.batch((late, "check", {"how": "never"}), (fine, "check", {"how": "fine"}))
    assert [text(each) for each in found if each["id"] == late] == [LATE]
    assert len(found) == 2
    # Over HTTP the server may be told a moment later.
    hears(way, "check", "check", CANCELLED)


SHORT = ("--deadline", "0.5")


def naughty(*fault: str) -> tuple[str, ...]:
    return (sys.executable, str(NAUGHTY), *fault)


@pytest.mark.fault(14, "stdio")
def test_an_answer_that_has_begun_to_pass_is_not_late() -> None:
    # A bounded answer is held until it is whole.
    with Written(*SHORT, "--budget", "off", "--", *naughty("halts", "100000")) as wire:
        wire.call(7, "long")
        wire.call(8, "never")
        long, late = wire.line(), wire.line()
        assert len(text(json.loads(long))) == 100_000
        assert json.loads(late)["id"] == 8
        assert text(wire.call(9, "fine").messages()[-1]) == "ok"
        ended = wire.close()
        assert (ended.code, ended.rest) == (0, b"")


@pytest.mark.fault(14, "stdio")
@pytest.mark.fault(16, "stdio")
def test_a_call_that_the_server_does_not_even_take_is_answered(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Written(*SHORT, "--", *naughty("deaf", str(gate))) as wire:
        [answer] = wire.call(7, "free", filler="x" * 300_000).messages()
        assert text(answer).startswith("no answer within 0.5 seconds")
        os.close(os.open(gate, os.O_WRONLY))
        assert text(wire.call(8, "free").messages()[-1]) == "ok"
        ended = wire.close()
        assert (ended.code, ended.rest) == (0, b"")


@pytest.mark.fault(14, "http")
@pytest.mark.fault(16, "http")
@pytest.mark.parametrize("era", [SESSIONS, STATELESS])
def test_a_call_that_a_server_behind_a_sidecar_does_not_even_take_is_answered(
    era: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with serving(*SHORT, "--rules", "none", "--", *naughty("deaf", str(gate))) as sidecar:
        session = [] if era == STATELESS else [Local(sidecar).session]

        def said(id: int, filler: str = "") -> str:
            asked = modern(id, arguments={"filler": filler})
            if session:
                asked = post(call(id, arguments={"filler": filler}), *session)
            return text(json.loads(answer_of(sidecar.ask(asked))))

        if era == STATELESS:
            assert said(6) == "ok"
        assert said(7, "x" * 300_000).startswith("no answer within 0.5 seconds")
        os.close(os.open(gate, os.O_WRONLY))
        assert said(8) == "ok"


@pytest.mark.fault(14, "stdio")
def test_each_call_that_is_late_leaves_a_line_in_the_log() -> None:
    with Written(*SHORT, "--", *PROBED) as wire:
        for id in (7, 8):
            wire.call(id, "check", how="never").messages()
        ended = wire.close()
    said = "check: no answer within 0.5 seconds and no progress; the call was cancelled"
    assert ended.stderr.decode().count(said) == 2
