"""Servers that are shared: which server a request gets, and which messages reach its client."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.command.child import ChildServer
from mcp_abridge.transports.sidecar.command.pool import Pool
from mcp_abridge.transports.sidecar.command.pooled_server import PooledRequest, PooledServer
from mcp_abridge.transports.sidecar.refusal import RequestRefused

# Answers each request with the messages that it was sent, or with the text of `raw`, in which $ID
# and $TOKEN are those of the request; a `quiet` request is not answered.
SERVER = r"""
import json, sys
messages = []
for line in sys.stdin:
    message = json.loads(line)
    messages.append(message)
    params = message.get("params", {})
    if "id" in message and "quiet" not in params:
        raw = params.get("raw", '{"jsonrpc": "2.0", "id": $ID, "result": $SEEN}')
        raw = raw.replace("$ID", json.dumps(message["id"])).replace("$SEEN", json.dumps(messages))
        raw = raw.replace("$TOKEN", json.dumps(params.get("_meta", {}).get("progressToken")))
        print(raw, flush=True)
"""


@asynccontextmanager
async def open_pool(servers: int = 1, limit: int = 1 << 20) -> AsyncIterator[Pool]:
    async def start() -> ChildServer:
        return await ChildServer.start([sys.executable, "-c", SERVER], None, Log("error"), limit)

    pool = Pool(start, servers, Log("error"))
    try:
        yield pool
    finally:
        await pool.close()


def pooled(key: bytes = b"1", token: bytes | None = None, **options: Any) -> PooledRequest:
    return PooledRequest(key, token, lambda: None, **options)


def line(request: PooledRequest, **params: Any) -> bytes:
    """Return the request as its client spells it."""
    if request.token is not None:
        params["_meta"] = {"progressToken": json.loads(request.token)}
    return b'{"jsonrpc":"2.0","id":%b,"method":"x","params":%b}' % (
        request.key,
        json.dumps(params).encode(),
    )


async def send(pool: Pool, request: PooledRequest, caller: str = "", **params: Any) -> PooledServer:
    server = await pool.open(request, caller)
    server.send(request, [line(request, **params)])
    return server


@pytest.mark.parametrize(
    "params", ['{"id": 1, "_meta": {"progressToken": 7}}', '{"\\u0069d": 1.0}']
)
async def test_nothing_but_the_id_and_the_token_of_a_request_is_changed(params: str) -> None:
    async with open_pool() as pool:
        request = pooled(b"1.0", b"7" if "Token" in params else None)
        server = await pool.open(request)
        server.send(request, [b'{"id": 1.0, "method": "x", "params": %b}' % params.encode()])
        response = json.loads(await request.next() or b"")
        [message] = response["result"]
        message["id"] = 1.0
        if "Token" in params:
            message["params"]["_meta"]["progressToken"] = 7
        assert message == {"id": 1.0, "method": "x", "params": json.loads(params)}


async def test_another_server_is_started_for_later_requests_once_all_are_busy() -> None:
    async with open_pool(servers=2) as pool:
        listener, first, second, third, fourth = pooled(lasts=True), *(pooled() for _ in range(4))
        server = await send(pool, listener, quiet=True)
        assert await send(pool, first, quiet=True) is server, "a subscription is no work"
        assert pool.running == 1
        assert await send(pool, second, quiet=True) is server, "it need not wait for the start"
        while pool.running == 1:
            await asyncio.sleep(0.01)
        other = await send(pool, third, quiet=True)
        assert other is not server
        assert await send(pool, fourth, quiet=True) is other
        assert pool.running == 2


async def test_requests_that_come_at_once_wait_for_one_start() -> None:
    async with open_pool(servers=4) as pool:
        servers = await asyncio.gather(*(pool.open(pooled()) for _ in range(5)))
        assert len(set(servers)) == 1


async def test_callers_that_come_at_once_get_the_only_process_in_turn() -> None:
    async with open_pool() as pool:
        longest, others = pooled(), [pooled() for _ in range(2)]
        first = asyncio.create_task(send(pool, longest, "ann", quiet=True))
        rest = [asyncio.create_task(send(pool, other, "bob")) for other in others]
        server = await first
        with pytest.raises(TimeoutError):
            await longest.next(3.0)  # longer than a process may take to end
        assert not any(each.done() for each in rest)
        server.cancel(longest)
        for other, task in zip(others, rest, strict=True):
            assert (await task).caller == "bob"
            assert await other.next() is not None


async def test_a_request_that_is_given_up_while_its_server_starts_leaves_it_idle() -> None:
    async with open_pool() as pool:
        for turns in range(4):
            request = pooled()
            task = asyncio.create_task(pool.open(request, f"caller {turns}"))
            while turns < 3 and pool.running == 0:
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                (await task).cancel(request)
            other = pooled()
            (await send(pool, other, f"other {turns}")).cancel(other)


async def test_subscriptions_keep_one_process_of_their_caller_and_no_more() -> None:
    async with open_pool(servers=2) as pool:
        busy, listeners = pooled(), [pooled(lasts=True) for _ in range(2)]
        one = await send(pool, listeners[0], "ann", quiet=True)
        await send(pool, busy, "ann", quiet=True)
        await pool.open(second := pooled(), "ann")
        while pool.running == 1:
            await asyncio.sleep(0.01)
        other = await send(pool, listeners[1], "ann", quiet=True)
        assert other is not one
        for request in (busy, second):
            one.cancel(request)
        assert (await send(pool, pooled(), "bob")).caller == "bob"
        assert [each.over is None for each in listeners].count(True) == 1
        await send(pool, pooled(lasts=True), "bob", quiet=True)
        with pytest.raises(RequestRefused, match="all 2 processes are in use"):
            await pool.open(pooled(), "eve")


async def test_a_late_response_reaches_no_client() -> None:
    async with open_pool() as pool:
        first, second = pooled(), pooled()
        server = await send(pool, first)
        server.cancel(first)
        assert await send(pool, second) is server
        messages = json.loads(await second.next() or b"")["result"]
        assert [each["method"] for each in messages] == ["x", "notifications/cancelled", "x"]
        assert await second.next() is None
        with pytest.raises(TimeoutError):
            await first.next(0.01)


async def test_a_client_that_does_not_read_is_disconnected_and_delays_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcp_abridge.transports.sidecar.command.pooled_server._MOST_BEHIND", 1000)
    cut = asyncio.Event()
    note = '{"method":"notifications/progress","params":{"progressToken":$TOKEN,"x":"%s"}}'
    async with open_pool() as pool:
        slow, other = PooledRequest(b"1", b"7", cut.set), pooled()
        await send(pool, slow, raw="\n".join([note % ("x" * 900)] * 3))
        await send(pool, other)
        assert await other.next() is not None
        assert cut.is_set()
