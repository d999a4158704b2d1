"""Messages to and from a server behind a URL, with servers that write raw bytes."""

import asyncio
import json
import queue
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.session.session import Session
from mcp_abridge.session.state import SessionState
from mcp_abridge.storage.meter import Meters
from mcp_abridge.storage.snapshots import Memory
from mcp_abridge.transports.client.endpoint import HttpClient
from mcp_abridge.transports.client.streamable import Streamable, StreamPosition
from mcp_abridge.transports.driver import Driver
from mcp_abridge.transports.http.sse import Event
from mcp_abridge.transports.log import Level, Log
from mcp_abridge.transports.workers.pool import Workers

from tests.builders import EMPTY, rules
from tests.raw_http import (
    ACCEPTED,
    INITIALIZE,
    INITIALIZED,
    SECONDS,
    STREAM,
    Answer,
    RawRequest,
    RawServer,
    always,
    answering,
    call,
    cancel,
    event,
    initialized,
    result,
    session,
    whole,
)
from tests.transports.guarded import guarded, onward

LIMIT = 1_000_000


class Link:
    """A Streamable, the lines for its client, and the reasons why it was lost."""

    def __init__(self, server: RawServer, rules: RuleSet, deadline: float | None, log: Log) -> None:
        self.server = server
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.losses: asyncio.Queue[str] = asyncio.Queue()
        state = SessionState(
            lambda *_: rules, Meters().of, log.warning, Memory(), deadline=deadline
        )
        self.driver = Driver(Session(state), Workers())
        self.streamable = Streamable(
            HttpClient(server.url, LIMIT), self.driver, log, self.say, self.losses.put_nowait
        )

    async def say(self, lines: list[bytes]) -> None:
        for line in lines:
            self.lines.put_nowait(line)

    async def send(self, raw: bytes) -> None:
        output = await self.driver.from_client(raw)
        async with asyncio.timeout(SECONDS):
            for line in output.all_to_server:
                await self.streamable.send(line)

    async def line(self) -> bytes:
        async with asyncio.timeout(SECONDS):
            return await self.lines.get()

    async def ask(self, raw: bytes) -> bytes:
        await self.send(raw)
        return await self.line()

    async def failure(self, raw: bytes) -> str:
        """Send a call that fails, and return the text of the tool result."""
        answer = json.loads(await self.ask(raw))
        assert answer["result"]["isError"] is True
        return str(answer["result"]["content"][0]["text"])

    async def arrived(self, count: int, method: str) -> None:
        await asyncio.to_thread(self.server.wait, count, method)

    async def begin(self) -> None:
        """Shake hands."""
        assert b"protocolVersion" in await self.ask(INITIALIZE)
        await self.send(INITIALIZED)


@asynccontextmanager
async def linked(
    answer: Answer,
    rules: RuleSet = EMPTY,
    deadline: float | None = None,
    level: Level = "error",
) -> AsyncIterator[Link]:
    with RawServer(answer) as server:
        link = Link(server, rules, deadline, Log(level))
        try:
            yield link
        finally:
            link.streamable.stop()
            await link.streamable.close()
            assert link.lines.empty(), link.lines


PRETTY = b'{\r\n  "jsonrpc": "2.0",\n  "id": 1,\n  "result": {"n": 1.10, "a": "x\\ny"}\n}\n'


async def test_a_response_comes_with_the_bytes_that_the_server_sent() -> None:
    async with linked(always(whole(PRETTY))) as link:
        # Line ends become blanks, since a line of stdio holds a message.
        assert await link.ask(call(b"1")) == PRETTY.replace(b"\r", b" ").replace(b"\n", b" ")
        [request] = link.server.requests
    assert request.body == call(b"1")
    assert request.headers["accept"] == "application/json, text/event-stream"
    assert request.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in request.headers
    assert "mcp-protocol-version" not in request.headers


async def test_requests_that_a_batch_response_lacks_get_an_error() -> None:
    batch = b"[" + call(b"1") + b"," + call(b"2") + b"]"
    async with linked(always(STREAM + event(result(b"1")))) as link:
        assert await link.ask(batch) == result(b"1")
        late = json.loads(await link.line())
        assert [request.body for request in link.server.requests] == [batch]
    assert late["id"] == 2
    assert late["error"]["message"] == "no answer came: the server's event stream ended"


async def test_the_session_and_the_revision_go_along_with_everything_after_the_session() -> None:
    async with linked(session()) as link:
        await link.begin()
        assert await link.ask(call(b"1")) == result(b"1")
        await link.arrived(1, "GET")
    first, *later = link.server.requests
    assert "mcp-session-id" not in first.headers
    assert sorted(request.method for request in later) == ["DELETE", "GET", "POST", "POST"]
    for request in later:
        assert request.headers["mcp-session-id"] == "s-1"
        assert request.headers["mcp-protocol-version"] == "2025-11-25"
        assert "mcp-method" not in request.headers


CHANGED = b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'


@pytest.mark.parametrize("first", [INITIALIZE, CHANGED])
async def test_nothing_follows_before_the_handshake_or_a_notification_is_answered(
    first: bytes,
) -> None:
    early = threading.Event()

    def answer(request: RawRequest) -> Iterator[bytes]:
        if request.body == first:
            # It would be there long before.
            assert not early.wait(0.3)
            yield ACCEPTED if first is CHANGED else whole(initialized(request.id))
        else:
            early.set()
            yield from answering(request)

    async with linked(answer) as link:
        await link.send(first)
        await link.send(call(b"1"))
        lines = [result(b"1")] if first is CHANGED else [initialized(b"0"), result(b"1")]
        assert [await link.line() for _ in lines] == lines


async def test_requests_wait_for_their_answers_side_by_side() -> None:
    second = threading.Event()

    def answer(request: RawRequest) -> Iterator[bytes]:
        assert request.id == b"2" or second.wait(SECONDS)
        second.set()
        yield whole(result(request.id))

    long = call(b"1", "x" * 300_000)
    async with linked(answer) as link:
        # It is known that the first has gone out, or the second would wait for its answer.
        await link.send(long)
        await link.send(call(b"2"))
        assert {await link.line(), await link.line()} == {result(b"1"), result(b"2")}
        assert long in [request.body for request in link.server.requests]


async def test_the_servers_own_stream_is_read_and_resumed_at_its_end() -> None:
    note = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    streams: list[str | None] = []

    def answer(request: RawRequest) -> Iterator[bytes]:
        if request.method != "GET":
            yield from session()(request)
            return
        streams.append(request.headers.get("last-event-id"))
        if len(streams) == 1:
            yield STREAM + b"retry: 10\n\n" + event(note, "id: e-7")
        elif len(streams) == 2:
            yield whole(b"busy", "503 Service Unavailable")
        elif len(streams) == 3:
            yield STREAM + event(note, "id: e-8")
        else:
            yield whole(b"", "405 Method Not Allowed")

    async with linked(answer) as link:
        await link.begin()
        assert [await link.line(), await link.line()] == [note, note]
        await link.arrived(4, "GET")
    assert streams == [None, "e-7", "e-7", "e-8"]


async def test_a_stream_that_ends_before_the_response_is_resumed_while_the_server_allows_it() -> (
    None
):
    def rest(request: RawRequest) -> Iterator[bytes]:
        if request.method == "POST":
            yield STREAM + b"id: 1\nretry: 10\ndata:\n\n"
        elif request.headers["last-event-id"] == "1":
            yield STREAM + event(b'{"jsonrpc":"2.0","method":"x"}', "id: 2")
        elif len(link.server.of("GET")) < 4:
            assert request.headers["last-event-id"] == "2"
            yield STREAM + event(result(b"5"), "id: 3")
        else:
            yield whole(b"gone", "410 Gone")

    async with linked(session(rest)) as link:
        await link.begin()
        await link.arrived(1, "GET")
        assert await link.ask(call(b"5")) == b'{"jsonrpc":"2.0","method":"x"}'
        assert await link.line() == result(b"5")
        assert await link.ask(call(b"6")) == b'{"jsonrpc":"2.0","method":"x"}'
        text = json.loads(await link.line())["result"]["content"][0]["text"]
    assert text == "no answer came: the server answered HTTP 410 Gone: gone"
    assert [request.id for request in link.server.of("POST")][2:] == [b"5", b"6"]


async def test_a_cancelled_stateless_request_is_closed_without_a_notification() -> None:
    disconnected, arrived = threading.Event(), threading.Event()

    def answer(request: RawRequest) -> Iterator[bytes]:
        if request.id == b"1":
            yield STREAM
            arrived.set()
            assert request.closed_by_client()
            disconnected.set()
            yield b""
        else:
            yield whole(result(request.id))

    async with linked(answer) as link:
        await link.send(call(b"1", modern=True))
        assert await asyncio.to_thread(arrived.wait, SECONDS)
        await link.send(cancel(1))
        assert await asyncio.to_thread(disconnected.wait, SECONDS)
        # Nor where the answer was faster.
        assert await link.ask(call(b"2", modern=True)) == result(b"2")
        await link.send(cancel(2))
        assert await link.ask(call(b"3", modern=True)) == result(b"3")
    assert [request.id for request in link.server.requests] == [b"1", b"2", b"3"]


async def test_a_stateless_stream_is_never_resumed() -> None:
    async with linked(always(STREAM + b"id: 1\nretry: 1\ndata:\n\n")) as link:
        text = await link.failure(call(b"1", modern=True))
        assert text == "no answer came: the server's event stream ended"
        assert len(link.server.requests) == 1


async def test_a_possible_response_is_not_quoted_if_a_rule_withholds() -> None:
    guard = rules("- {tools: get, on_failure: refuse, response: [{drop: secret}]}")
    script = always(whole(b"a secret", "200 OK", "Content-Type: text/plain"))
    async with linked(script, rules=guard) as link:
        assert await link.failure(call(b"1", "get")) == "HTTP 200 without an answer to it"
        assert "a secret" in await link.failure(call(b"2", "other"))


# More of them, through a client on stdio, stand in tests/faults/bad_answers.py.
@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (
            "401 Unauthorized",
            "it wants credentials that it knows: give them as in `--header 'Authorization: Bearer "
            "${TOKEN}'`",
        ),
        ("403 Forbidden", "it refuses this caller: look at --header and at the URL"),
    ],
)
async def test_a_refused_call_gives_advice_and_is_sent_once_and_the_next_one_works(
    status: str, advice: str
) -> None:
    def once(request: RawRequest) -> Iterator[bytes]:
        return iter([whole(b"no", status)]) if request.id == b"1" else answering(request)

    async with linked(once) as link:
        assert await link.failure(call(b"1")) == (
            f"the server answered HTTP {status}: no; {advice}; where it wants OAuth, wrap "
            "`npx -y mcp-remote@0.15.1 URL` after -- instead of the URL"
        )
        assert await link.ask(call(b"2")) == result(b"2")
    assert [request.id for request in link.server.requests] == [b"1", b"2"]


@pytest.mark.parametrize("id", [b'"id":1,', b'"id":null,', b""])
@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found"])
async def test_a_json_rpc_error_in_a_refusal_is_the_answer_and_no_end_of_the_session(
    id: bytes, status: str
) -> None:
    error = b'{"jsonrpc":"2.0",%s"error":{"code":-32020,"message":"no","data":{"a":1.0}}}'
    async with linked(session(always(whole(error % id, status)))) as link:
        await link.begin()
        answer = await link.ask(call(b"1"))
        assert link.losses.empty()
    assert json.loads(answer) == json.loads(error % b'"id":1,')
    assert b"1.0" in answer


async def test_advice_about_a_refusal_in_json_rpc_is_logged(
    capfd: pytest.CaptureFixture[str],
) -> None:
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"who are you"}}'
    async with linked(always(whole(error, "401 Unauthorized")), level="warning") as link:
        assert await link.ask(call(b"1")) == error
    log_text = capfd.readouterr().err
    assert "tools/call: the server answered HTTP 401 Unauthorized; it wants" in log_text
    assert "who are you" not in log_text


async def test_a_refused_notification_and_an_answer_to_another_request_hold_up_nothing() -> None:
    def answer(request: RawRequest) -> Iterator[bytes]:
        yield whole(result(b"9")) if "id" in request.message else whole(b"", "400 Bad Request")

    async with linked(answer) as link:
        await link.send(CHANGED)
        assert await link.ask(call(b"1")) == result(b"9")
        assert json.loads(await link.line())["id"] == 1


async def test_the_query_of_a_guard_is_a_request_of_the_session() -> None:
    async with linked(session(), rules=guarded(onward)) as link:
        await link.begin()
        assert await link.ask(call(b"1", "write")) == result(b"1")
        query, write = link.server.of("POST")[2:]
        assert (b'"status"' in query.body, b'"write"' in write.body) == (True, True)
        assert query.headers["mcp-session-id"] == "s-1"


async def test_a_late_call_is_an_error_and_is_cancelled_at_the_server() -> None:
    def rest(request: RawRequest) -> Iterator[bytes]:
        if b'"never"' in request.body:
            yield STREAM
            assert request.closed_by_client()
        else:
            yield whole(result(request.id)) if "id" in request.message else ACCEPTED

    async with linked(session(rest), deadline=0.2) as link:
        await link.begin()
        assert (await link.failure(call(b"7", "never"))).startswith("no answer within 0.2 seconds")
        await link.arrived(4, "POST")
        cancellation = link.server.of("POST")[3].message
        assert cancellation["method"] == "notifications/cancelled"
        assert cancellation["params"]["requestId"] == 7
        assert await link.ask(call(b"8")) == result(b"8")


class Server2024:
    """A server of 2024-11-05, which wants messages at `url`.

    Its stream has the `lines` that are put there; None ends it.
    """

    def __init__(self, url: str = "/messages?s=1") -> None:
        self.url = url
        self.lines: queue.Queue[bytes | None] = queue.Queue()

    def __call__(self, request: RawRequest) -> Iterator[bytes]:
        if request.method == "GET":
            yield STREAM + event(self.url.encode(), "event: endpoint")
            while (line := self.lines.get(timeout=SECONDS)) is not None:
                yield event(line, "event: message")
        elif request.path == "/messages?s=1":
            yield whole(b"Accepted", "202 Accepted", "Content-Type: text/plain")
            if request.message.get("method") == "initialize":
                self.lines.put(initialized(request.id))
            elif "id" in request.message:
                self.lines.put(result(request.id))
        else:
            yield whole(b"", "405 Method Not Allowed", "Allow: GET")


async def test_a_server_of_2024_is_detected_and_answers() -> None:
    server = Server2024()
    async with linked(server) as link:
        await link.begin()
        assert await link.ask(call(b"1")) == result(b"1")
        paths = [(request.method, request.path) for request in link.server.requests]
        assert paths == [("POST", "/mcp"), ("GET", "/mcp"), *[("POST", "/messages?s=1")] * 3]
        server.lines.put(None)
        async with asyncio.timeout(SECONDS):
            assert await link.losses.get() == "the server's event stream ended"


async def test_an_endpoint_of_another_origin_is_an_error() -> None:
    with RawServer(always(b"")) as other:
        server = Server2024(other.url)
        async with linked(server) as link:
            text = json.loads(await link.ask(INITIALIZE))["error"]["message"]
            own = f"http://127.0.0.1:{link.server.port}"
            assert text == (
                f"the server points to {other.url}, which is another origin than {own}: nothing is "
                "sent there; if it is right, give that URL"
            )
            server.lines.put(None)
        assert other.requests == []


async def test_the_first_error_is_reported_if_it_is_no_server_of_2024_either() -> None:
    async with linked(always(whole(b"what?", "404 Not Found"))) as link:
        text = json.loads(await link.ask(INITIALIZE))["error"]["message"]
    assert text == "the server answered HTTP 404 Not Found: what?"


def test_an_empty_or_unprintable_id_forgets_the_position_in_a_stream() -> None:
    position = StreamPosition()
    for id, last in (("1", "1"), (None, "1"), ("2", "2"), ("", None), ("\x01", None)):
        position.record(Event(b"", b"x", id=id))
        assert position.last == last


def test_a_server_that_wants_no_pause_is_not_asked_without_one() -> None:
    position = StreamPosition()
    position.record(Event(b"", b"x", retry=0))
    assert [position.pause(failures) for failures in (0, 1, 20)] == [0.1, 0.2, 60.0]
