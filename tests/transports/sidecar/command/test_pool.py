"""Servers that are shared: which server a request gets, and which messages reach its client."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from proxy.session.guards import cancellation
from proxy.transports.log import Log
from proxy.transports.sidecar.command.child import ChildServer
from proxy.transports.sidecar.command.pool import Pool, PooledRequest, PooledServer
from tests.transports.http.hosting import wait_gone

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
async def pool(servers: int = 1, limit: int = 1 << 20) -> AsyncIterator[Pool]:
    async def start() -> ChildServer:
        return await ChildServer.start([sys.executable, "-c", SERVER], None, Log("error"), limit)

    made = Pool(start, servers, Log("error"))
    try:
        yield made
    finally:
        await made.close()


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


async def sent(made: Pool, request: PooledRequest, **params: Any) -> PooledServer:
    server = await made.open(request)
    server.send(request, [line(request, **params)])
    return server


async def seen(server: PooledServer) -> list[Any]:
    """Return what the server was sent."""
    request = pooled(b'"seen"')
    server.open(request)
    server.send(request, [line(request)])
    response = json.loads(await request.next() or b"")
    assert response["id"] == "seen"
    return list(response["result"][:-1])


async def test_equal_ids_and_tokens_differ_at_the_server_and_are_the_clients_again() -> None:
    raw = (
        '{"method":"notifications/progress","params":{"progressToken": $TOKEN}}\n'
        '{"jsonrpc": "2.0", "result": {"id": 1, "same": $ID}, "id": $ID}'
    )
    async with pool() as made:
        requests = [pooled(key, b'"t"') for key in (b"1", b"1", b'"1"')]
        servers = {await sent(made, request, raw=raw) for request in requests}
        for request in requests:
            progress, response = await request.next(), await request.next()
            assert (
                progress == b'{"method":"notifications/progress","params":{"progressToken": "t"}}'
            )
            expected = b'{"jsonrpc": "2.0", "result": {"id": 1, "same": %b}, "id": %b}'
            assert response == expected % (request.key, request.key)
            assert await request.next() is None
            assert request.over == ""
        [server] = servers
        known = [
            (each["id"], each["params"]["_meta"]["progressToken"]) for each in await seen(server)
        ]
        assert len({part for pair in known for part in pair}) == 6


@pytest.mark.parametrize(
    "params",
    ['{"u": "\\ud800"}', '{"id": 1, "_meta": {"progressToken": 7}}', '{"\\u0069d": 1.0}'],
)
async def test_nothing_but_the_id_and_the_token_of_a_request_is_changed(params: str) -> None:
    async with pool() as made:
        request = pooled(b"1.0", b"7" if "Token" in params else None)
        server = await made.open(request)
        server.send(request, [b'{"id": 1.0, "method": "x", "params": %b}' % params.encode()])
        response = json.loads(await request.next() or b"")
        [message] = response["result"]
        message["id"] = 1.0
        if "Token" in params:
            message["params"]["_meta"]["progressToken"] = 7
        assert message == {"id": 1.0, "method": "x", "params": json.loads(params)}


async def test_another_server_is_started_for_later_requests_once_all_are_busy() -> None:
    async with pool(servers=2) as made:
        listener, first, second, third, fourth = pooled(lasts=True), *(pooled() for _ in range(4))
        server = await sent(made, listener, quiet=True)
        assert await sent(made, first, quiet=True) is server, "a subscription is no work"
        assert made.running == 1
        assert await sent(made, second, quiet=True) is server, "it need not wait for the start"
        while made.running == 1:
            await asyncio.sleep(0.01)
        other = await sent(made, third, quiet=True)
        assert other is not server
        assert await sent(made, fourth, quiet=True) is other
        assert made.running == 2


async def test_requests_that_come_at_once_wait_for_one_start() -> None:
    async with pool(servers=4) as made:
        servers = await asyncio.gather(*(made.open(pooled()) for _ in range(5)))
        assert len(set(servers)) == 1


async def test_a_call_that_is_held_hears_the_response_to_the_query_alone() -> None:
    async with pool() as made:
        call, query = pooled(b"1"), pooled(b'"own"')
        server = await made.open(call)
        server.send(call, [line(query)])
        assert (call.forwarded, call.awaited) == (False, {b'"own"'})
        assert json.loads(await call.next() or b"")["id"] == "own"
        assert (call.over, call.awaited) == (None, set())
        server.send(call, [line(call)])
        assert json.loads(await call.next() or b"")["id"] == 1
        assert await call.next() is None
        assert server.idle


@pytest.mark.parametrize("forwarded", [True, False])
async def test_a_server_hears_of_the_end_of_what_it_knows(forwarded: bool) -> None:
    async with pool() as made:
        call, query = pooled(b"1"), pooled(b'"own"')
        server = await made.open(call)
        server.send(call, [line(query, quiet=True)])
        if forwarded:
            server.send(call, [cancellation(b'"own"'), line(call, quiet=True)])
        server.cancel(call)
        server.cancel(call)
        messages = await seen(server)
        cancelled = [each["params"] for each in messages if "cancelled" in each["method"]]
        assert cancelled[0]["requestId"] == "own"
        assert len(cancelled) == (2 if forwarded else 1)
        assert cancelled[-1]["requestId"] == messages[2 * forwarded]["id"]
        assert cancelled[-1]["reason"] == "the client closed the stream"


async def test_a_server_may_be_sent_a_cancellation_with_another_reason_and_gets_one() -> None:
    async with pool() as made:
        request = pooled()
        server = await sent(made, request, quiet=True)
        server.send(request, [cancellation(b"1", "it took too long")])
        server.cancel(request)
        call, cancelled = await seen(server)
        assert cancelled["params"] == {"requestId": call["id"], "reason": "it took too long"}


async def test_a_late_response_reaches_nobody() -> None:
    async with pool() as made:
        first, second = pooled(), pooled()
        server = await sent(made, first)
        server.cancel(first)
        assert await sent(made, second) is server
        messages = json.loads(await second.next() or b"")["result"]
        assert [each["method"] for each in messages] == ["x", "notifications/cancelled", "x"]
        assert await second.next() is None
        with pytest.raises(TimeoutError):
            await first.next(0.01)


async def test_a_client_that_does_not_read_is_cut_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proxy.transports.sidecar.command.pool._MOST_BEHIND", 1000)
    cut = asyncio.Event()
    note = '{"method":"notifications/progress","params":{"progressToken":$TOKEN,"x":"%s"}}'
    async with pool() as made:
        slow, other = PooledRequest(b"1", b"7", cut.set), pooled()
        await sent(made, slow, raw="\n".join([note % ("x" * 900)] * 3))
        await sent(made, other)
        assert await other.next() is not None
        assert cut.is_set()


async def test_the_end_of_a_server_is_the_end_of_its_requests() -> None:
    async with pool() as made:
        requests = [pooled(), pooled()]
        server = await sent(made, requests[0], quiet=True)
        await sent(made, requests[1], quiet=True)
        await server.child.end((0.0, 1.0))
        await server.reading
        late = pooled()
        server.open(late)
        for request in (*requests, late):
            assert await request.next() is None
            assert request.over == server.child.cause
        assert await made.open(pooled()) is not server


async def test_servers_without_work_are_ended() -> None:
    async with pool() as made:
        busy, idle = pooled(), pooled()
        server = await sent(made, busy, quiet=True)
        made.reap(0.0)
        await sent(made, idle)
        assert await idle.next() is not None
        server.cancel(busy)
        made.reap(0.0)
        made.reap(0.0)
        await asyncio.to_thread(wait_gone, server.child.pid)


async def test_a_server_that_cannot_be_read_any_more_is_ended_and_its_requests_know() -> None:
    async with pool() as made:
        request = pooled()
        server = await made.open(request)

        async def failing(n: int = -1) -> bytes:
            raise MemoryError("none left")

        server.child._stdout.read = failing  # type: ignore[method-assign]
        server.send(request, [line(request, raw="only noise, to wake it")])
        assert await request.next(20.0) is None
        assert request.over == "the proxy cannot read the server any more: MemoryError: none left"
        assert await made.open(pooled()) is not server


async def test_two_responses_on_one_line_are_an_error_for_the_first() -> None:
    raw = '{"jsonrpc":"2.0","id":$ID,"result":1} {"jsonrpc":"2.0","id":2,"result":1}'
    async with pool() as made:
        request = pooled()
        await sent(made, request, raw=raw)
        response = json.loads(await request.next() or b"")
        assert response["id"] == 1
        assert "bytes follow its end" in response["error"]["message"]


@pytest.mark.parametrize("tail", ["", '\n{"jsonrpc":"2.0","id":0,"result":2}'])
async def test_a_response_that_is_too_long_is_an_error(tail: str) -> None:
    raw = '{"jsonrpc":"2.0","id":$ID,"result":"' + "x" * 5000 + '"}' + tail
    async with pool(limit=1000) as made:
        request, other = pooled(), pooled()
        await sent(made, other, quiet=True)
        await sent(made, request, raw=raw)
        response = json.loads(await request.next() or b"")
        assert response["id"] == 1
        assert "over the limit of 1000 bytes" in response["error"]["message"]
