"""The response to one POST, as JSON or as an event stream.

Invariant: nothing is sent before the form is known, and then every event goes out whole and at
once. What a JSON answer cannot carry is dropped and counted, never sent in a form that the client
did not ask for.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from aiohttp import web
from msgspec import Raw
from multidict import CIMultiDict

from proxy.document import message
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError
from proxy.transports.http.negotiation import JSON, STREAM, Wanted
from proxy.transports.http.sse import Event, written

_STREAM_HEADERS = {
    "Content-Type": f"{STREAM}; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}
# Said of upstream's body and its connection, which are not ours.
_UPSTREAMS = ("Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Keep-Alive")

_MOST_HELD = 64 << 10  # bytes of events before the form is known
_ENDS = 512  # bytes at either end of a message that mostly tell what it is
_PIECE = 256 << 10  # bytes that are given to the connection at once: it copies what has to wait
_NO_RESPONSE = message.error(b"null", -1, "the server ended its answer without a response")


class ResponseWriter:
    """The response to one POST, as JSON or as an event stream.

    `wanted` is what the client accepts; "nothing" is for the caller to refuse. `streams` says that
    upstream chose an event stream, `expected` how many responses the POST is owed, `batch` that it
    was an array. `status` and `headers` are upstream's: its own words win over ours wherever they
    are true of the form that is sent.

    Whoever puts sees the client go: ConnectionError, and CancelledError where the server was told
    to cancel.
    """

    def __init__(
        self,
        request: web.BaseRequest,
        wanted: Wanted,
        *,
        streams: bool,
        expected: int,
        batch: bool = False,
        status: int = 200,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ) -> None:
        self.sent = 0
        """Bytes of the body so far."""
        self.dropped = 0
        """Messages that a JSON answer could not carry."""
        self._request = request
        self._streams = streams
        self._expected = expected
        self._batch = batch
        self._status = status
        self._headers = headers
        self._response: web.StreamResponse | None = None
        self._form: Literal["json", "stream"] | None = None
        if wanted == "json":
            self._form = "json"
        elif wanted == "stream" or (wanted == "either" and streams):
            self._form = "stream"
        # Upstream chose JSON, and the client takes both: its responses are waited for.
        self._patient = wanted == "either"
        self._held: list[Event] = []  # while the form is not known
        self._bodies: list[bytes] = []  # each a response, or an array of nothing else
        self._responses = 0
        self._turn = asyncio.Lock()  # an event of several pieces is not to be broken by another

    @property
    def started(self) -> bool:
        """True as soon as bytes are on their way."""
        return self._response is not None

    @property
    def complete(self) -> bool:
        """True where the answer is JSON and all that it will say is there."""
        return self._form == "json" and self._responses >= max(self._expected, 1)

    async def begin(self) -> None:
        """Send the head of an event stream, where it is known that the answer will be one."""
        if self._form == "stream" and self._response is None:
            headers = self._own(stream=True)
            for name, value in _STREAM_HEADERS.items():
                headers.setdefault(name, value)
            self._response = web.StreamResponse(status=self._status, headers=headers)
            await self._response.prepare(self._request)

    async def put(self, event: Event) -> None:
        """Say the next thing: a message, or what else an event stream may hold."""
        if self._form == "stream":
            await self._write(event)
            return
        spoken = _messages(event)
        if not spoken:
            if self._form is None and _lasts(event):
                await self._hold(event)
            return
        responses = [raw for raw, responds in spoken if responds]
        if self._form is None:
            count = self._responses + len(responses)
            if len(responses) < len(spoken) or not (self._patient or count == self._expected):
                self._held.append(event)
                await self._become_stream()
                return
            self._held.append(event)
            if count >= self._expected:
                self._form = "json"
                self._held.clear()
        self._collect(event.data or b"", responses, len(spoken))

    async def keep_alive(self, event: Event) -> None:
        """Say something, lest the client and those on the way to it take silence for the end.

        If the form is not known yet, the answer is an event stream from now on.
        """
        if self._form is None:
            await self._become_stream()
        await self.put(event)

    async def end(self, last: Event | None = None) -> web.StreamResponse:
        """Finish: all is said, with `last`. Returns the response to hand to aiohttp."""
        if last is not None and self._form != "stream":
            await self.put(last)
            last = None
        if self._form is None and self._streams and not self._responses:
            await self._become_stream()
        if self._form == "stream":
            return await self._end_stream(last)
        headers = self._own(stream=False)
        headers.setdefault("Content-Type", JSON)
        body = self._body()
        status = self._status if self._responses else 502
        if len(body) <= _PIECE:
            self.sent = len(body)
            self._response = web.Response(status=status, headers=headers, body=body)
            return self._response
        headers["Content-Length"] = str(len(body))
        self._response = web.StreamResponse(status=status, headers=headers)
        await self._response.prepare(self._request)
        await self._send([body])
        return self._response

    async def _end_stream(self, last: Event | None) -> web.StreamResponse:
        pieces = [] if last is None else _pieces(last)
        # Where it can be, together with the end of the stream: the client wakes up once.
        rest = pieces.pop() if len(pieces) == 1 else b""
        async with self._turn:
            await self.begin()
            assert self._response is not None
            await self._send(pieces)
            await self._response.write_eof(rest)
            self.sent += len(rest)
        return self._response

    async def _write(self, event: Event) -> None:
        async with self._turn:
            await self.begin()
            await self._send(_pieces(event))

    async def _send(self, pieces: Iterable[bytes]) -> None:
        """Send pieces that belong together, long ones as fast as the client takes them."""
        assert self._response is not None
        rest = deque(_slices(pieces))
        try:
            while rest:
                self.sent += len(rest[0])
                await self._response.write(rest.popleft())
        except asyncio.CancelledError:
            # Whatever ends us: what has begun is said to its end.
            while rest:
                # aiohttp's only writer takes it, the abstract one does not say so.
                await self._request.writer.write(rest.popleft(), drain=False)  # type: ignore[call-arg]
            raise

    async def _become_stream(self) -> None:
        self._form = "stream"
        held, self._held, self._bodies = self._held, [], []
        for event in held:
            await self._write(event)

    async def _hold(self, event: Event) -> None:
        self._held.append(event)
        if sum(len(each.raw) for each in self._held) > _MOST_HELD and not self._responses:
            await self._become_stream()

    def _collect(self, data: bytes, responses: list[bytes], messages: int) -> None:
        """Keep what a JSON answer has room for."""
        room = max(self._expected, 1) - self._responses
        if room > 0 and responses:
            self._responses += len(responses)
            # As it came where it may, not put together again.
            whole = len(responses) == messages
            self._bodies += [data] if whole else responses
            messages -= len(responses)
        self.dropped += messages

    def _body(self) -> bytes:
        if not self._bodies:
            return _NO_RESPONSE
        first, *others = self._bodies
        if not self._batch:
            return first
        if not others and first.lstrip()[:1] == b"[":
            return first
        return b"[" + b",".join(_elements(self._bodies)) + b"]"

    def _own(self, *, stream: bool) -> CIMultiDict[str]:
        """Return what upstream's headers say that is true of this form too."""
        headers = CIMultiDict(self._headers)
        for name in _UPSTREAMS:
            headers.popall(name, None)
        kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if (kind == STREAM) != stream:
            headers.popall("Content-Type", None)
        if not stream:
            headers.popall("X-Accel-Buffering", None)
        return headers


def unframed(message: bytes, id: str | None = None) -> Event:
    """Return the event for a message of ours: its bytes are made where a stream needs them."""
    return Event(b"", message, id, "message")


def _pieces(event: Event) -> list[bytes]:
    """Return the bytes of an event, in one or several pieces."""
    if event.raw:
        return [event.raw]
    data = event.data or b""
    if len(data) <= _PIECE or b"\n" in data or b"\r" in data:
        return [written(data, id=event.id)]
    # The data are the last line: what is long is not copied.
    frame = written(b"", id=event.id)
    return [frame[:-2], data, frame[-2:]]


def _slices(pieces: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    for piece in pieces:
        if len(piece) <= _PIECE:
            yield piece
        else:
            view = memoryview(piece)
            yield from (view[at : at + _PIECE] for at in range(0, len(piece), _PIECE))


def _lasts(event: Event) -> bool:
    """Return True if an event that is no message matters to who reads it later."""
    return bool(event.data) or event.id is not None or event.retry is not None


def _messages(event: Event) -> list[tuple[bytes, bool]]:
    """Return the messages of an event, and of each whether it is a response."""
    if event.event not in (None, "", "message") or not event.data or event.data.isspace():
        return []
    if message.response_key(event.data[:_ENDS], event.data[-_ENDS:]) is not None:
        return [(event.data, True)]
    if message.asks(event.data[:_ENDS]):
        return [(event.data, False)]
    try:
        read = message.read(event.data)
    except DocumentError:
        # Whatever asks nothing is part of the answer: the client is to see it.
        return [(event.data, True)]
    if isinstance(read, message.Message):
        return [(event.data, read.method is ABSENT)]
    return [(bytes(each), _responds(each)) for each in read]


def _responds(raw: Raw) -> bool:
    try:
        read = message.read(bytes(raw))
    except DocumentError:
        return True
    return not isinstance(read, message.Message) or read.method is ABSENT


def _elements(bodies: Iterable[bytes]) -> Iterable[bytes]:
    """Yield what an array of these bodies holds; one that is an array brings its elements."""
    for body in bodies:
        inner = body.strip()
        yield inner[1:-1] if inner[:1] == b"[" else inner
