"""Servers that are shared: who gets which, and what of a cancelled request."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proxy.session.probe import cancellation
from proxy.transports.log import Log
from proxy.transports.sidecar.command.child import ChildServer
from proxy.transports.sidecar.command.pool import Pool, PooledRequest
from tests.transports.http.hosting import wait_gone

# Says back whatever it is sent, except where it is told not to, or which ids were cancelled.
ECHO = r"""
import json, sys
cancelled = []
for line in sys.stdin:
    if '"method":"notifications/cancelled"' in line:
        cancelled.append(json.loads(line)["params"]["requestId"])
    elif '"quiet"' not in line:
        told = json.dumps(cancelled if '"told"' in line else 1)
        print(line.replace('"method":"x"', '"result":' + told), end="", flush=True)
"""


@asynccontextmanager
async def pool(most: int = 2, limit: int = 1 << 20) -> AsyncIterator[Pool]:
    async def start() -> ChildServer:
        return await ChildServer.start([sys.executable, "-c", ECHO], None, Log("error"), limit)

    made = Pool(start, most, 3, Log("error"), limit)
    yield made
    await made.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.transports.sidecar.command.pool._PATIENCE", 0.2)


def asking(key: bytes, token: bytes | None = None) -> PooledRequest:
    return PooledRequest(key, token, lambda: None)


def request(key: bytes, more: bytes = b"") -> bytes:
    return b'{"jsonrpc":"2.0","id":' + key + b',"method":"x"' + more + b"}"


async def test_one_server_is_enough_where_ids_differ() -> None:
    async with pool() as made:
        members = {await made.take(asking(key)) for key in (b"1", b'"1"', b"2")}
        assert len(members) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [((b"1", None), (b"1", None)), ((b"1", b"5"), (b"2", b"5"))],
)
async def test_equal_ids_and_equal_tokens_need_another_server(
    one: tuple[bytes, bytes | None], other: tuple[bytes, bytes | None]
) -> None:
    async with pool() as made:
        members = {await made.take(asking(*each)) for each in (one, other)}
        assert None not in members
        assert len(members) == 2
        assert await made.take(asking(*one)) is None


async def test_equal_ids_that_come_at_once_never_meet_on_a_server_that_is_just_starting() -> None:
    async with pool(most=2) as made:
        taken = await asyncio.gather(*(made.take(asking(b"1")) for _ in range(5)))
        members = [member for member in taken if member is not None]
        assert len(members) == len(set(members)) == 2


async def test_clients_that_listen_do_not_keep_their_ids_from_everybody() -> None:
    async with pool(most=1) as made:
        listeners = [PooledRequest(b"1", None, lambda: None, lasts=True) for _ in range(2)]
        members = {await made.take(each) for each in listeners}
        caller = await made.take(asking(b"1"))
        assert None not in members
        assert caller not in (None, *members)
        # Whose ids differ are asked where somebody listens.
        assert await made.take(asking(b"2")) in members
        # There is an end to it all the same.
        assert await made.take(asking(b"1")) is None


async def test_whoever_waits_gets_the_first_server_that_is_free() -> None:
    async with pool(most=1) as made:
        first = asking(b"1")
        member = await made.take(first)
        assert member is not None
        waiting = asyncio.create_task(made.take(asking(b"1")))
        await member.child.send([request(b"1")])
        assert await first.next() == request(b"1").replace(b'"method":"x"', b'"result":1')
        assert await first.next() is None
        assert first.over == ""
        assert await waiting is member


def held(key: bytes, probe: bytes) -> PooledRequest:
    return PooledRequest(key, None, lambda: None, probe=probe)


def answered(key: bytes) -> bytes:
    return request(key).replace(b'"method":"x"', b'"result":1')


async def test_a_request_that_is_held_keeps_its_id_and_gets_the_answer_to_its_question() -> None:
    async with pool(most=2) as made:
        first = held(b"1", b'"own"')
        member = await made.take(first)
        assert member is not None
        assert not member.takes(asking(b"1"))
        member.child.post([request(b'"own"')])
        assert await first.next() == answered(b'"own"')
        assert first.over is None
        # From now on it is a request like any other.
        first.sent = True
        member.child.post([request(b"1")])
        assert await first.next() == answered(b"1")
        assert await first.next() is None
        assert member.idle


@pytest.mark.parametrize("sent", [True, False])
async def test_a_server_is_told_of_what_it_knows_and_ids_that_it_does_not_know_are_free(
    sent: bool,
) -> None:
    async with pool(most=1) as made:
        first, witness = held(b"1", b'"own"'), asking(b"9")
        member = await made.take(first)
        assert member is not None
        assert await made.take(witness) is member
        if sent:
            member.settle(first)
            first.sent = True
        member.cancel(first)
        member.child.post([request(b"9", b',"told":true')])
        assert json.loads(await witness.next() or b"")["result"] == [1 if sent else "own"]
        assert member.takes(asking(b"1")) is not sent
        # A late answer is nobody's.
        again = asking(b"9")
        assert await made.take(again) is member
        member.child.post([request(b'"own"'), request(b"9")])
        assert await again.next() == answered(b"9")
        assert member.idle


async def test_a_request_whose_question_was_settled_waits_for_its_own_answer_alone() -> None:
    async with pool() as made:
        first = held(b"1", b'"own"')
        member = await made.take(first)
        assert member is not None
        assert [first.awaits(key) for key in (b"1", b'"own"')] == [False, True]
        member.settle(first)
        first.sent = True
        assert [first.awaits(key) for key in (b"1", b'"own"')] == [True, False]


async def test_a_late_answer_to_a_cancelled_request_is_nobodys() -> None:
    async with pool(most=2) as made:
        first, second = asking(b"1"), asking(b"2")
        member = await made.take(first)
        assert member is not None
        assert await made.take(second) is member
        member.cancel(first)
        other = asking(b"1")
        replacement = await made.take(other)
        assert replacement is not member
        # The late answer frees the id.
        await member.child.send([request(b"1"), request(b"2")])
        assert await second.next() is not None
        assert member.takes(asking(b"1"))
        assert other.over is None


async def test_an_id_is_free_again_once_no_late_answer_is_to_be_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with pool(most=1) as made:
        first, later = asking(b"1", b"7"), asking(b"2")
        member = await made.take(first)
        assert member is not None
        member.cancel(first)
        monkeypatch.setattr("proxy.transports.sidecar.command.pool._LATE", 0.0)
        # Time alone says nothing: the server may not have read so far.
        assert not member.takes(asking(b"1"))
        assert await made.take(later) is member
        await member.child.send([request(b"2")])
        assert await later.next() is not None
        assert member.takes(asking(b"1"))
        assert member.takes(asking(b"3", b"7"))


async def test_a_server_whose_cancelled_ids_are_needed_is_replaced() -> None:
    async with pool(most=1) as made:
        first, kept = asking(b"1"), asking(b"2")
        member = await made.take(first)
        assert member is not None
        assert await made.take(kept) is member
        member.cancel(first)
        fresh = await made.take(asking(b"1"))
        assert fresh not in (None, member)
        # The old one still answers what it was asked, and ends then.
        await member.child.send([request(b"2")])
        assert await kept.next() is not None
        await asyncio.to_thread(wait_gone, member.child.pid)


async def test_a_server_may_be_told_in_other_words_and_is_told_once() -> None:
    async with pool() as made:
        first, second = asking(b"1"), asking(b"2")
        member = await made.take(first)
        assert member is not None
        assert await made.take(second) is member
        member.cancel(first, [cancellation(b"1", "it took too long")])
        member.cancel(first)
        await member.child.send([request(b"2", b',"told":1')])
        raw = await second.next()
        assert raw is not None
        assert json.loads(raw)["result"] == [1]


async def test_cancelling_what_was_answered_is_no_matter() -> None:
    async with pool(most=1) as made:
        first = asking(b"1")
        member = await made.take(first)
        assert member is not None
        await member.child.send([request(b"1")])
        assert await first.next() is not None
        member.cancel(first)
        assert await made.take(asking(b"1")) is member


async def test_a_client_that_does_not_read_is_cut_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proxy.transports.sidecar.command.pool._MOST_BEHIND", 1000)
    cut = asyncio.Event()
    async with pool(most=1) as made:
        slow, other = PooledRequest(b"1", b"7", cut.set), asking(b"2")
        member = await made.take(slow)
        assert member is not None
        await made.take(other)
        note = b'{"method":"notifications/progress","params":{"progressToken":7,"x":"%s"}}'
        await member.child.send([note % (b"x" * 900)] * 3)
        await member.child.send([request(b"2")])
        assert await other.next() is not None
        assert cut.is_set()


async def test_silence_can_be_waited_for() -> None:
    with pytest.raises(TimeoutError):
        await asking(b"1").next(0.01)


async def test_the_end_of_a_server_is_told_to_all_who_wait() -> None:
    async with pool() as made:
        waiting = [asking(b"1"), asking(b"2")]
        members = {await made.take(each) for each in waiting}
        [member] = members
        assert member is not None
        await member.child.end((0.0, 1.0))
        for each in waiting:
            assert await each.next() is None
            assert each.over
        assert await made.take(asking(b"1")) not in (None, member)


async def test_servers_without_work_are_ended() -> None:
    async with pool() as made:
        busy, idle = asking(b"1"), asking(b"1")
        one, other = await made.take(busy), await made.take(idle)
        assert one is not None
        assert other is not None
        await other.child.send([request(b"1")])
        assert await idle.next() is not None
        made.reap(0.0)
        await asyncio.to_thread(wait_gone, other.child.pid)
        assert one.child.code is None


async def test_a_server_that_cannot_be_read_any_more_is_ended_and_its_requests_know() -> None:
    async with pool(most=1) as made:
        first = asking(b"1")
        member = await made.take(first)
        assert member is not None

        async def failing() -> bytes:
            raise MemoryError("none left")

        member.child._stdout.read = failing  # type: ignore[method-assign]
        member.child.post([request(b"9")])
        assert await first.next(20.0) is None
        assert first.over == "the proxy cannot read the server any more: MemoryError: none left"
        assert await made.take(asking(b"1")) not in (None, member)
