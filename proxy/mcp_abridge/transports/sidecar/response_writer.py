"""The response to one POST, as JSON or as an event stream.

Invariant: nothing is sent before the form is known; after that every event is sent whole and at
once. Messages that a JSON answer cannot carry are dropped.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Literal

from aiohttp import web
from msgspec import Struct, field
from msgspec.structs import replace
from multidict import CIMultiDict

from mcp_abridge.document import message
from mcp_abridge.document.tree import ABSENT
from mcp_abridge.transports.http.negotiation import JSON, STREAM, Wanted
from mcp_abridge.transports.http.sse import Event, encode_event
from mcp_abridge.transports.sidecar.route import Request

_STREAM_HEADERS = {
    "Content-Type": f"{STREAM}; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}

_MOST_HELD = 64 << 10  # bytes of events held before the form is known
_PIECE = 256 << 10  # bytes that the connection is given at once: it copies all that has to wait
_SILENCE = Event(b": \n\n", None)
_NO_RESPONSE = message.error(b"null", -1, "the server ended its answer without a response")


class ResponseWriter(Struct, eq=False):
    """The response to one POST.

    `accepts` is the form that the client accepts. `streams` means that the upstream chose an event
    stream, `expected` is the number of responses that the POST is owed, `batch` means that it was
    an array. `headers` are not about the body or a connection. Methods that send raise
    ConnectionError or CancelledError if the client has gone.
    """

    request: Request
    accepts: Wanted
    streams: bool = True
    expected: int = 0
    batch: bool = False
    status: int = 200
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()
    _response: web.StreamResponse | None = None
    _form: Literal["json", "stream"] | None = None
    _undecided: list[Event] = []  # while the form is not known
    _bodies: list[bytes] = []  # each is a response, or an array of responses only
    _responses: int = 0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # pieces of two events must not mix

    def __post_init__(self) -> None:
        if self.accepts == "json":
            self._form = "json"
        elif self.accepts == "stream" or (self.accepts == "either" and self.streams):
            self._form = "stream"

    @property
    def started(self) -> bool:
        """True once bytes have been sent."""
        return self._response is not None

    @property
    def complete(self) -> bool:
        """True if the answer is JSON and all of its contents are collected."""
        return self._form == "json" and self._responses >= max(self.expected, 1)

    async def begin(self) -> None:
        """Send the head of an event stream, if the answer is known to be an event stream."""
        if self._form == "stream" and self._response is None:
            headers = self._own(stream=True)
            for name, value in _STREAM_HEADERS.items():
                headers.setdefault(name, value)
            self._response = web.StreamResponse(status=self.status, headers=headers)
            await self._response.prepare(self.request)

    async def add(self, event: Event) -> None:
        """Add the next event: a message, or anything else that an event stream may hold."""
        if self._form == "stream":
            await self._write(event)
            return
        data = event.data if event.event in (None, "", "message") else None
        spoken = message.elements(data.lstrip()) if data and not data.isspace() else []
        responses = [raw for raw in spoken if _responds(raw)]
        if self._form is None:
            # A later reader may need an event without a message, too.
            if spoken or event.data or event.id is not None or event.retry is not None:
                self._undecided.append(event)
            size = 0 if spoken or self._responses else sum(len(one.raw) for one in self._undecided)
            if len(responses) < len(spoken) or size > _MOST_HELD:
                await self._become_stream()
                return
            if spoken and self._responses + len(responses) >= self.expected:
                self._form = "json"
                self._undecided.clear()
        if responses and self._responses < max(self.expected, 1):
            self._responses += len(responses)
            # Unchanged if possible, not serialized again.
            self._bodies += [event.data or b""] if len(responses) == len(spoken) else responses

    async def add_messages(self, messages: Iterable[bytes]) -> None:
        for each in messages:
            await self.add(message_event(each))

    async def keep_alive(self) -> None:
        """Send a comment, lest silence be taken for the end; it begins an event stream."""
        if self._form is None:
            await self._become_stream()
        await self.add(_SILENCE)

    async def end(self, last: Event | None = None) -> web.StreamResponse:
        if last is not None and self._form != "stream":
            await self.add(last)
            last = None
        if self._form is None and self.streams and not self._responses:
            await self._become_stream()
        if self._form == "stream":
            return await self._end_stream(last)
        headers = self._own(stream=False)
        headers.setdefault("Content-Type", JSON)
        body = self._body()
        status = self.status if self._responses else 502
        if len(body) <= _PIECE:
            self.request.record.bytes_sent = len(body)
            self._response = web.Response(status=status, headers=headers, body=body)
            return self._response
        headers["Content-Length"] = str(len(body))
        self._response = web.StreamResponse(status=status, headers=headers)
        await self._response.prepare(self.request)
        await self._send([body])
        return self._response

    async def _end_stream(self, last: Event | None) -> web.StreamResponse:
        pieces = [] if last is None else _pieces(last)
        # If possible, together with the end of the stream: the client then wakes up once.
        rest = pieces.pop() if len(pieces) == 1 else b""
        async with self._turn:
            await self.begin()
            assert self._response is not None
            await self._send(pieces)
            await self._response.write_eof(rest)
            self.request.record.bytes_sent += len(rest)
        return self._response

    async def _write(self, event: Event) -> None:
        async with self._turn:
            await self.begin()
            await self._send(_pieces(event))

    async def _send(self, pieces: Iterable[bytes]) -> None:
        """Send pieces that belong together, long ones as fast as the client reads them."""
        assert self._response is not None
        views = [memoryview(each) for each in pieces]
        rest = deque(view[at : at + _PIECE] for view in views for at in range(0, len(view), _PIECE))
        try:
            while rest:
                self.request.record.bytes_sent += len(rest[0])
                await self._response.write(rest.popleft())
        except asyncio.CancelledError:
            # Even if cancelled, complete the event that has begun.
            while rest:
                # aiohttp's only writer accepts `drain`; its abstract class does not declare it.
                await self.request.writer.write(rest.popleft(), drain=False)  # type: ignore[call-arg]
            raise

    async def _become_stream(self) -> None:
        self._form = "stream"
        events, self._undecided, self._bodies = self._undecided, [], []
        for event in events:
            await self._write(event)

    def _body(self) -> bytes:
        if not self._bodies:
            return _NO_RESPONSE
        first, *others = self._bodies
        if not self.batch:
            return first
        if not others and first.lstrip()[:1] == b"[":
            return first
        bodies = [body.strip() for body in self._bodies]
        elements = [body[1:-1] if body[:1] == b"[" else body for body in bodies]
        return b"[" + b",".join(elements) + b"]"

    def _own(self, *, stream: bool) -> CIMultiDict[str]:
        headers = CIMultiDict(self.headers)
        kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if (kind == STREAM) != stream:
            headers.popall("Content-Type", None)
        if not stream:
            headers.popall("X-Accel-Buffering", None)
        return headers


def message_event(message: bytes, id: str | None = None) -> Event:
    """Return the event for a message of the proxy; its bytes are made when a stream needs them."""
    return Event(b"", message, id, "message")


def translate(event: Event, lines: list[bytes]) -> list[Event]:
    """Return the events for the client if these messages are in place of that of an event."""
    if lines == [event.data]:
        return [event]
    if not lines:
        # The client needs its other fields all the same.
        fields = [] if event.id is None else [f"id: {event.id}"]
        fields += [] if event.retry is None else [f"retry: {event.retry}"]
        raw = "\n".join([*fields, "", ""]).encode()
        return [Event(raw, None, event.id, None, event.retry)] if fields else []
    *first, last = lines
    raw = encode_event(last, event=event.event, id=event.id, retry=event.retry)
    return [*map(message_event, first), replace(event, raw=raw, data=last)]


def _pieces(event: Event) -> list[bytes]:
    if event.raw:
        return [event.raw]
    data = event.data or b""
    if len(data) <= _PIECE or b"\n" in data or b"\r" in data:
        return [encode_event(data, id=event.id)]
    # The data are the last line: long data are not copied.
    frame = encode_event(b"", id=event.id)
    return [frame[:-2], data, frame[-2:]]


def _responds(raw: bytes) -> bool:
    if message.responds_to(raw) is not None:
        return True
    # Anything that is no request is part of the answer: pass it to the client.
    return message.envelope(raw).method is ABSENT and not message.asks(raw[: message.ENDS])
