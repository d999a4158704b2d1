"""The connection of one client to a server behind a URL: messages to the server and from it.

Streamable HTTP, with sessions and stateless, and HTTP+SSE of 2024-11-05 if a server has nothing
else. Invariants: no call is ever sent twice; each request gets one response, made by the proxy if
the server can no longer send one; every message of the server passes through the driver.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

import aiohttp
from msgspec import Raw, Struct
from yarl import URL

from proxy.document import message
from proxy.errors import AbridgeError
from proxy.session.outputs import Probe
from proxy.transports.client import request as posting
from proxy.transports.client.endpoint import LOST, SHOWN, HttpClient, described, reason, shown, text
from proxy.transports.client.request import ClientRequest
from proxy.transports.driver import Driver, Routed, Timer
from proxy.transports.http import body, sse
from proxy.transports.http.headers import (
    METHOD,
    VERSION,
    Parameters,
    encoded,
    learn,
    request_headers,
)
from proxy.transports.log import Log

_SESSION = "Mcp-Session-Id"
_JSON = "application/json"
_STREAM = "text/event-stream"
_BOTH = {"Accept": f"{_JSON}, {_STREAM}", "Content-Type": _JSON}

_ACCEPTED = 30.0  # seconds for a notification to be accepted; then later lines overtake it
_LINGER = 2.0  # seconds for a stream to end by itself after all responses
_ENDPOINT = 5.0  # seconds for the first event of a server of 2024-11-05
_DELETE = 2.0  # seconds for the end of the session
_TAKEN_BACK = 5.0  # seconds for the server to end the stream of a cancelled request
_LONGEST_PAUSE = 60.0  # seconds
_TRIES = 5  # to resume a stream that has not brought all responses

_MAY_BE_OLD = (400, 404, 405)  # status of a server of 2024-11-05 for the POST of `initialize`
_NOT_FOR_US = (401, 403)
_NOT_NOW = (408, 409, 425, 429)
_NEVER = (501, 505)

Say = Callable[[list[bytes]], Awaitable[None]]


class StreamPosition(Struct):
    """The position up to which an event stream was read, and the reason of its end.

    `last` is the event id to resume from, `retry` the seconds until then; `seen` counts events.
    """

    last: str | None = None
    retry: float = 1.0
    seen: int = 0
    ended: str = ""

    def note(self, event: sse.Event) -> None:
        """Record an event."""
        self.seen += 1
        if event.id is not None:
            self.last = event.id if event.id and event.id.isprintable() else None
        if event.retry is not None:
            self.retry = event.retry / 1000

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after so many tries without an event.

        >>> [StreamPosition().pause(failures) for failures in (0, 1, 2, 10)]
        [1.0, 2.0, 4.0, 60.0]
        """
        return max(self.retry, min(self.retry * 2.0**failures, _LONGEST_PAUSE))


class ServerRefusal(NamedTuple):
    """An HTTP response without the expected message: its status, and the text of the error."""

    status: int
    said: str


class Streamable:
    """A remote server.

    `say` takes lines for the client, and returns once it accepts more. `lost` is called with the
    reason if the connection can no longer be used. `limit` is the maximum size of a message in
    bytes.
    """

    def __init__(
        self,
        endpoint: HttpClient,
        driver: Driver,
        log: Log,
        limit: int,
        say: Say,
        lost: Callable[[str], None],
    ) -> None:
        self._endpoint = endpoint
        self._driver = driver
        self._log = log
        self._limit = limit
        self._say = say
        self._lost = lost
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None
        self._open: dict[bytes, ClientRequest] = {}
        self._probes: dict[bytes, asyncio.TimerHandle] = {}  # by id, until they are over
        self._timer = Timer(driver, self._overdue)
        self._parameters: Parameters = {}
        self._reached = False  # the server has sent an HTTP response
        self._session: str | None = None
        self._version: str | None = None
        self._modern = False
        self._old: URL | None = None  # the endpoint for messages of a server of 2024-11-05

    async def send(self, raw: bytes) -> None:
        """Send a line; returns as soon as the next line may follow."""
        post = posting.read(raw)
        if post.asked:
            self._modern = post.modern
            if post.modern:
                self._version = post.version
        else:
            post.modern = self._modern
        taken_back = None if post.cancels is None else self._open.get(post.cancels)
        if post.cancels is not None and self._cancelled(post.cancels, post.modern):
            return
        if post.begins:
            self._session = self._version = None
        task = self._begin(post)
        if not post.asked:
            await asyncio.wait({task}, timeout=_ACCEPTED)
            if taken_back is not None and taken_back.task is not None and not taken_back.asked:
                # The server may leave the stream open forever, though no response is expected.
                asyncio.get_running_loop().call_later(_TAKEN_BACK, taken_back.task.cancel)
        elif post.begins:
            await post.over.wait()
        else:
            await post.sent.wait()

    async def probe(self, probe: Probe) -> None:
        """Send a probe of the proxy; returns as soon as the next line may follow."""
        loop = asyncio.get_running_loop()
        self._probes[probe.token] = loop.call_later(probe.seconds, self._late, probe.token)
        await self.send(probe.raw)

    async def answered(self) -> None:
        """Return once every request has its response, except `subscriptions/listen`."""
        while waited := [post for post in self._open.values() if not post.lasts]:
            await waited[0].over.wait()

    def stop(self) -> None:
        """Cancel everything in flight, in both directions."""
        for task in self._tasks:
            task.cancel()
        for timer in self._probes.values():
            timer.cancel()
        self._timer.stop()

    async def close(self) -> None:
        """End the session, and close all connections."""
        if self._session is not None:
            with suppress(AbridgeError, *LOST):
                async with (
                    asyncio.timeout(_DELETE),
                    self._endpoint.ask("DELETE", self._handshake()) as response,
                ):
                    self._log.debug(f"the end of the session: HTTP {response.status}")
        await self._endpoint.close()

    def _begin(self, post: ClientRequest) -> "asyncio.Task[None]":
        """Start to send a line; messages about its requests may follow from now on."""
        for key in post.asked:
            self._open[key] = post
        post.task = self._started(self._exchange(post))
        self._timer.start()
        return post.task

    def _started(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._log.error(f"the proxy failed: {type(error).__name__}: {error}")

    def _cancelled(self, key: bytes, modern: bool) -> bool:
        """Retire a cancelled request; return True if the server needs no notification of it.

        A stateless server sees the end of the HTTP request (MCP 2026-07-28: Cancellation).
        """
        post = self._open.get(key)
        if post is None:
            return modern
        self._retire(key, post)
        if not post.asked:
            post.over.set()
        if post.modern and post.task is not None:
            post.task.cancel()
        return post.modern

    # To the server

    async def _exchange(self, post: ClientRequest) -> None:
        """Send a line, and ensure that each of its requests gets a response."""
        gone = False
        try:
            said = await self._ask(post)
        except body.Unreadable as error:
            said = f"the server's answer cannot be read: {error}"
        except AbridgeError as error:
            said = str(error)
        except LOST as error:
            said = f"the server at {shown(self._endpoint.url)} gave no answer: {reason(error)}"
            gone = not self._reached
        except Exception as error:  # one line must never end all others
            said = f"the proxy failed on a message: {type(error).__name__}: {error}"
        finally:
            post.sent.set()
        if said is not None:
            await self._fail(post, said)
        if gone:
            self._lost(said or "")

    async def _ask(self, post: ClientRequest) -> str | None:
        """POST a line and pass on the messages it brings; return why responses are missing."""
        if self._old is None:
            refusal = await self._ask_once(post)
            if refusal is None:
                return None
            may_be_old = post.begins and refusal.status in _MAY_BE_OLD
            if not may_be_old or not await self._find_old():
                return refusal.said
        headers = self._headers(post)
        async with self._endpoint.ask("POST", headers, post.raw, post.sent, self._old) as response:
            if response.status < 300:
                return None
            return described(response, await text(response))

    async def _ask_once(self, post: ClientRequest) -> ServerRefusal | None:
        headers = self._headers(post)
        async with self._endpoint.ask("POST", headers, post.raw, post.sent) as response:
            self._reached = True
            if response.status >= 300:
                return await self._refused(post, headers, response)
            if post.begins:
                self._session = response.headers.get(_SESSION)
            if post.method == "notifications/initialized" and not post.modern:
                self._listen()
            said = await self._take(post, response)
            return None if said is None else ServerRefusal(response.status, said)

    async def _refused(
        self, post: ClientRequest, headers: dict[str, str], response: aiohttp.ClientResponse
    ) -> ServerRefusal | None:
        raw = await text(response)
        if len(post.asked) == 1 and posting.refuses(raw, next(iter(post.asked))):
            if response.status in _NOT_FOR_US:
                # The client gets the server's message; the log gets the advice.
                self._log.warning(f"{post.method}: {described(response, b'')}")
            await self._hear(raw, post)
            return None
        said = described(response, raw)
        if response.status == 404 and _SESSION in headers:
            said = f"the server has ended the session, start anew: {said}"
            self._session = None
            self._lost(said)
        return ServerRefusal(response.status, said)

    async def _take(self, post: ClientRequest, response: aiohttp.ClientResponse) -> str | None:
        """Pass on the messages of an HTTP response; return why responses are missing."""
        if response.content_type == _STREAM:
            place = StreamPosition()
            await self._read(response, place, post)
            if post.asked and place.last is not None and not post.modern:
                await self._follow(place, post)
            return f"no answer came: {place.ended}" if post.asked else None
        if not post.asked:
            return None
        encoding = response.headers.get("Content-Encoding")
        try:
            raw = await body.whole(response.content, encoding, self._limit)
        except body.TooLarge:
            return f"the answer is over the limit of {self._limit} bytes"
        if response.content_type == _JSON or response.content_type.endswith("+json"):
            await self._hear(raw, post)
            if not post.asked:
                return None
        if self._driver.session.withholds(b"", post.asked):
            return f"HTTP {response.status} without an answer to it"
        start = raw[: 4 * SHOWN].decode("utf-8", "replace").strip()[:SHOWN]
        return (
            f"HTTP {response.status} without an answer to it: "
            f"{response.headers.get('Content-Type', 'no Content-Type')}, {start or 'empty'}"
        )

    async def _fail(self, post: ClientRequest, said: str) -> None:
        """Answer the requests of a line that have no response yet."""
        self._log.warning(f"{post.method or 'an answer of the client'}: {said}")
        keys = list(post.asked)
        probes = [key for key in keys if key in self._probes]
        for key in keys:
            self._retire(key, post)
        await self._say(self._driver.ended(said, b"", [key for key in keys if key not in probes]))
        for key in probes:
            await self._go_on(await self._driver.unanswered(key, said))
        post.over.set()

    # Probes of the proxy

    def _late(self, key: bytes) -> None:
        self._probes.pop(key, None)
        self._started(self._unanswered(key))

    async def _unanswered(self, key: bytes) -> None:
        await self._go_on(await self._driver.unanswered(key))

    def _overdue(self, sent: Routed) -> None:
        self._started(self._go_on(sent))

    async def _go_on(self, sent: Routed) -> None:
        """Send the messages of a call that was decided without the server; do not wait for them."""
        for line in sent.to_server:
            post = posting.read(line)
            if post.asked:
                self._begin(post)
            else:
                self._started(self.send(line))
        await self._say([*sent.told, *sent.to_client])

    # From the server

    def _listen(self) -> None:
        """Receive messages of the server outside of requests."""
        if self._listening is not None:
            self._listening.cancel()
        self._listening = self._started(self._listened())

    async def _listened(self) -> None:
        place = StreamPosition()
        try:
            await self._follow(place, None)
            self._log.debug(f"no event stream: {place.ended}")
        except AbridgeError as error:
            self._log.warning(f"the server's event stream is read no further: {error}")

    async def _follow(self, place: StreamPosition, post: ClientRequest | None) -> None:
        """Read the server's own stream, or the rest of the stream with the responses to `post`.

        It is resumed each time it ends; `place.ended` is why it no longer is. Raises AbridgeError.
        """
        failures = 0
        fresh = post is None
        while fresh or post is None or post.asked:
            if not fresh:
                await asyncio.sleep(place.pause(failures))
            fresh = False
            place.seen = 0
            headers = {"Accept": _STREAM, **self._handshake()}
            if place.last is not None:
                headers["Last-Event-ID"] = place.last
            try:
                async with self._endpoint.ask("GET", headers) as response:
                    status = response.status
                    if status == 200 and response.content_type == _STREAM:
                        await self._read(response, place, post)
                    else:
                        place.ended = described(response, await text(response))
                        if status in _NEVER or (status < 500 and status not in _NOT_NOW):
                            return
            except LOST as error:
                place.ended = reason(error)
            failures = 0 if place.seen else failures + 1
            if post is not None and failures >= _TRIES:
                return

    async def _read(
        self,
        response: aiohttp.ClientResponse,
        place: StreamPosition,
        post: ClientRequest | None,
        found: "asyncio.Future[URL] | None" = None,
    ) -> None:
        """Pass on the messages of a stream until it ends for any reason; raises AbridgeError.

        `found` gets the endpoint for messages of a server of 2024-11-05.
        """
        events = sse.Events(self._limit)
        chunks = body.chunks(response.content, response.headers.get("Content-Encoding"))
        try:
            while True:
                done = post is not None and not post.asked
                async with asyncio.timeout(_LINGER if done else None):
                    chunk = await anext(chunks)
                for event in events.feed(chunk):
                    place.note(event)
                    if event.event == "endpoint" and found is not None and not found.done():
                        named = (event.data or b"").decode("utf-8", "replace")
                        found.set_result(self._endpoint.within(named))
                    elif event.data and event.event in (None, "", "message"):
                        await self._hear(event.data, post)
        except StopAsyncIteration:
            inside = " in the middle of an event" if events.end().strip() else ""
            place.ended = f"the server's event stream ended{inside}"
        except LOST as error:
            place.ended = f"the server's event stream broke off: {reason(error)}"

    async def _hear(self, raw: bytes, post: ClientRequest | None) -> None:
        """Take a message of the server from the stream of `post`."""
        raw = message.one_line(raw)
        keys = posting.answered(raw)
        if keys == [b"null"] and post is not None and len(post.asked) == 1:
            # The server could not read the id of the request, and there is only one.
            keys = list(post.asked)
            raw = message.replaced(raw, id=Raw(keys[0]))
        posts = []
        for key in keys:
            asked = post if post is not None and key in post.asked else self._open.get(key)
            if asked is not None:
                self._learn(self._retire(key, asked), raw)
                posts.append(asked)
        await self._go_on(await self._driver.from_server(raw))
        for each in posts:
            if not each.asked:
                each.over.set()

    def _learn(self, method: str, raw: bytes) -> None:
        if method == "initialize":
            self._version = posting.negotiated(raw)
        elif method == "tools/list":
            learn(self._parameters, raw)

    def _retire(self, key: bytes, post: ClientRequest) -> str:
        if self._open.get(key) is post:
            del self._open[key]
        if key in self._probes:
            self._probes.pop(key).cancel()
        return post.asked.pop(key)

    # A server of 2024-11-05

    async def _find_old(self) -> bool:
        """Return True if there is a stream of HTTP+SSE, which begins with the endpoint's URL."""
        found: asyncio.Future[URL] = asyncio.get_running_loop().create_future()
        hearing = self._started(self._hear_old(found))
        both: set[asyncio.Future[Any]] = {found, hearing}
        await asyncio.wait(both, timeout=_ENDPOINT, return_when=asyncio.FIRST_COMPLETED)
        if not found.done():
            hearing.cancel()
            return False
        self._old = found.result()
        self._log.debug("the server speaks HTTP+SSE of 2024-11-05")
        return True

    async def _hear_old(self, found: "asyncio.Future[URL]") -> None:
        place = StreamPosition()
        try:
            async with self._endpoint.ask("GET", {"Accept": _STREAM}) as response:
                if response.status == 200 and response.content_type == _STREAM:
                    await self._read(response, place, None, found)
        except LOST as error:
            place.ended = reason(error)
        except AbridgeError as error:
            place.ended = str(error)
            if not found.done():
                found.set_exception(error)
                return
        if found.done():
            self._lost(place.ended)

    # Headers

    def _headers(self, post: ClientRequest) -> dict[str, str]:
        if not post.modern:
            return {**_BOTH, **({} if post.begins else self._handshake())}
        own = request_headers(post.raw, self._parameters)
        if not own and self._version is not None:
            own = {VERSION: encoded(self._version), METHOD: encoded(post.method)}
        return {**_BOTH, **own}

    def _handshake(self) -> dict[str, str]:
        given = {_SESSION: self._session, VERSION: self._version}
        return {name: value for name, value in given.items() if value is not None}
