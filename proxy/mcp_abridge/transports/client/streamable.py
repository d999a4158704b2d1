"""The connection of one client to a server behind a URL: messages to the server and from it.

Streamable HTTP, with sessions and stateless, and HTTP+SSE of 2024-11-05 if a server has nothing
else. Invariants: no call is ever sent twice; each request gets one response, made by the proxy if
the server can no longer send one; every message of the server passes through the driver.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from msgspec import Raw, Struct, field
from yarl import URL

from mcp_abridge.document import message
from mcp_abridge.document.masks import masked_url
from mcp_abridge.errors import AbridgeError
from mcp_abridge.transports.aio import Tasks
from mcp_abridge.transports.client.endpoint import (
    BrokenOff,
    ConnectionLost,
    HttpClient,
    HttpResponse,
    excerpt,
)
from mcp_abridge.transports.client.request import ClientRequest, client_request
from mcp_abridge.transports.correlation import answered_ids, negotiated_version, refuses
from mcp_abridge.transports.driver import Driver, Routed
from mcp_abridge.transports.http.headers import (
    METHOD,
    SESSION,
    VERSION,
    Parameters,
    encoded,
    learn,
    request_headers,
    trace_headers,
)
from mcp_abridge.transports.http.negotiation import JSON, MEDIA_TYPES, STREAM
from mcp_abridge.transports.http.sse import ENDPOINT, Event
from mcp_abridge.transports.log import Log

_BOTH = {"Accept": MEDIA_TYPES, "Content-Type": JSON}

_ACCEPTED = 30.0  # seconds for a notification to be accepted; then later lines overtake it
_LINGER = 2.0  # seconds for a stream to end by itself after all responses
_ENDPOINT = 5.0  # seconds for the first event of a server of 2024-11-05
_DELETE = 2.0  # seconds for the end of the session
_CANCELLED = 5.0  # seconds for the server to end the stream of a cancelled request
_TRIES = 5  # to resume a stream that has not brought all responses
_SHORTEST_PAUSE = 0.1  # seconds: zero, which a server may name, stays zero however often doubled
_LONGEST_PAUSE = 60.0

_MAY_BE_OLD = (400, 404, 405)  # status of a server of 2024-11-05 for the POST of `initialize`
_NOT_FOR_US = (401, 403)
_NOT_NOW = (408, 409, 425, 429)
_NEVER = (501, 505)


class StreamPosition(Struct):
    """The event id to resume a stream from, the seconds until then, and why it ended."""

    last: str | None = None
    retry: float = 1.0
    count: int = 0
    end_reason: str = ""

    def record(self, event: Event) -> None:
        self.count += 1
        if event.id is not None:
            self.last = event.id if event.id and event.id.isprintable() else None
        if event.retry is not None:
            self.retry = max(event.retry / 1000, _SHORTEST_PAUSE)

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after so many tries without an event.

        >>> [StreamPosition().pause(failures) for failures in (0, 1, 2, 10)]
        [1.0, 2.0, 4.0, 60.0]
        """
        return max(self.retry, min(self.retry * 2.0**failures, _LONGEST_PAUSE))


class Streamable(Struct, eq=False):
    """A remote server.

    `_say` takes lines for the client, and returns once it accepts more. `_on_lost` is called with
    the reason if the connection can no longer be used.
    """

    _endpoint: HttpClient
    _driver: Driver
    _log: Log
    _say: Callable[[list[bytes]], Awaitable[None]]
    _on_lost: Callable[[str], None]
    _tasks: Tasks = field(default_factory=Tasks)
    _listening: "asyncio.Task[None] | None" = None
    _open: dict[bytes, ClientRequest] = {}
    _parameters: Parameters = {}
    _connected: bool = False  # the server has sent an HTTP response
    _session: str | None = None
    _version: str | None = None
    _modern: bool = False
    _old: URL | None = None  # the endpoint for messages of a server of 2024-11-05

    def __post_init__(self) -> None:
        self._driver.late = self._dispatch

    async def send(self, raw: bytes) -> None:
        """Send a line; returns as soon as the next line may follow."""
        post = client_request(raw)
        if post.waiting:
            self._modern = post.modern
            if post.modern:
                self._version = post.version
        else:
            post.modern = self._modern
        if post.cancels is not None and self._cancelled(post.cancels, post.modern):
            return
        if post.begins:
            self._session = self._version = None
        # From here on, messages about its requests may follow.
        self._open |= dict.fromkeys(post.waiting, post)
        post.task = self._tasks.spawn(self._answer(post))
        if not post.waiting:
            await asyncio.wait({post.task}, timeout=_ACCEPTED)
        elif post.begins:
            await post.over.wait()
        else:
            await post.upload.wait()

    async def answered(self) -> None:
        """Return once every request has its response, except `subscriptions/listen`."""
        while posts := [post for post in self._open.values() if post.method != message.LISTEN]:
            await posts[0].over.wait()

    def stop(self) -> None:
        self._tasks.cancel()
        self._driver.stop()

    async def close(self) -> None:
        if self._session is not None:
            with suppress(AbridgeError, TimeoutError):
                ask = self._endpoint.request("DELETE", self._handshake())
                async with asyncio.timeout(_DELETE), ask as response:
                    self._log.debug(f"the end of the session: HTTP {response.status}")
        await self._endpoint.close()

    def _cancelled(self, key: bytes, modern: bool) -> bool:
        """Retire a cancelled request; return True if the server needs no notification of it.

        A stateless server sees the end of the HTTP request (MCP 2026-07-28: Cancellation).
        """
        post = self._open.get(key)
        if post is None:
            return modern
        self._retire(key, post)
        if not post.waiting and post.task is not None:
            post.over.set()
            # The server may leave the stream open forever, though no response is expected.
            wait = 0.0 if post.modern else _CANCELLED
            asyncio.get_running_loop().call_later(wait, post.task.cancel)
        return post.modern

    # To the server

    async def _answer(self, post: ClientRequest) -> None:
        unreachable = False
        try:
            failure = await self._ask(post)
        except ConnectionLost as error:
            failure = f"the server at {masked_url(str(self._endpoint.url))} gave no answer: {error}"
            unreachable = not self._connected
        except AbridgeError as error:
            failure = str(error)
        except Exception as error:  # one line must never end all others
            failure = f"the proxy failed on a message: {type(error).__name__}: {error}"
        finally:
            post.upload.set()
        if failure is not None:
            await self._fail(post, failure)
            if unreachable:
                self._on_lost(failure)

    async def _ask(self, post: ClientRequest) -> str | None:
        headers = self._headers(post)
        async with self._endpoint.request(
            "POST", headers, post.raw, post.upload, self._old
        ) as response:
            self._connected = True
            if response.status < 300:
                return await self._on_success(post, response)
            reason = await self._on_refusal(post, headers, response)
        may_be_old = self._old is None and post.begins and response.status in _MAY_BE_OLD
        if reason is not None and may_be_old and await self._find_old():
            return await self._ask(post)
        return reason

    async def _on_success(self, post: ClientRequest, response: HttpResponse) -> str | None:
        if self._old is not None:
            return None  # the responses come on its stream
        if post.begins:
            self._session = response.headers.get(SESSION)
        if post.method == "notifications/initialized" and not post.modern:
            if self._listening is not None:
                self._listening.cancel()
            self._listening = self._tasks.spawn(self._read_own_stream())
        return await self._pass_on(post, response)

    async def _on_refusal(
        self, post: ClientRequest, headers: dict[str, str], response: HttpResponse
    ) -> str | None:
        raw = await response.refusal()
        if len(post.waiting) == 1 and refuses(raw, next(iter(post.waiting))):
            if response.status in _NOT_FOR_US:
                # The client gets the server's message; the log gets the advice.
                self._log.warning(f"{post.method}: {response.describe(b'')}")
            await self._on_message(raw, post)
            return None
        reason = response.describe(raw)
        if response.status == 404 and SESSION in headers:
            reason = f"the server has ended the session, start anew: {reason}"
            self._session = None
            self._on_lost(reason)
        return reason

    async def _pass_on(self, post: ClientRequest, response: HttpResponse) -> str | None:
        if response.content_type == STREAM:
            position = StreamPosition()
            await self._read(response, position, post)
            if post.waiting and position.last is not None and not post.modern:
                await self._resume_stream(position, post)
            return f"no answer came: {position.end_reason}" if post.waiting else None
        if not post.waiting:
            return None
        raw = await response.whole()
        if response.content_type == JSON or response.content_type.endswith("+json"):
            await self._on_message(raw, post)
            if not post.waiting:
                return None
        reason = f"HTTP {response.status} without an answer to it"
        if self._driver.session.withholds(post.waiting):
            return reason
        kind = response.headers.get("Content-Type", "no Content-Type")
        return f"{reason}: {kind}, {excerpt(raw) or 'empty'}"

    async def _fail(self, post: ClientRequest, reason: str) -> None:
        self._log.warning(f"{post.method or 'an answer of the client'}: {reason}")
        keys = list(post.waiting)
        for key in keys:
            self._retire(key, post)
        await self._dispatch(await self._driver.fail(keys, reason))
        post.over.set()

    async def _dispatch(self, routed: Routed) -> None:
        for line in routed.all_to_server:
            self._tasks.spawn(self.send(line))
        await self._say(routed.to_client)

    # From the server

    async def _read_own_stream(self) -> None:
        position = StreamPosition()
        try:
            await self._resume_stream(position, None)
            self._log.debug(f"no event stream: {position.end_reason}")
        except AbridgeError as error:
            self._log.warning(f"the server's event stream is read no further: {error}")

    async def _resume_stream(self, position: StreamPosition, post: ClientRequest | None) -> None:
        failures = 0
        pause = 0.0 if post is None else position.pause(0)
        while post is None or post.waiting:
            await asyncio.sleep(pause)
            position.count = 0
            headers = {"Accept": STREAM, **self._handshake()}
            if position.last is not None:
                headers["Last-Event-ID"] = position.last
            try:
                async with self._endpoint.request("GET", headers) as response:
                    status = response.status
                    if status == 200 and response.content_type == STREAM:
                        await self._read(response, position, post)
                    else:
                        position.end_reason = response.describe(await response.refusal())
                        if status in _NEVER or (status < 500 and status not in _NOT_NOW):
                            return
            except ConnectionLost as error:
                position.end_reason = str(error)
            failures = 0 if position.count else failures + 1
            if post is not None and failures >= _TRIES:
                return
            pause = position.pause(failures)

    async def _read(
        self,
        response: HttpResponse,
        position: StreamPosition,
        post: ClientRequest | None,
        endpoint: "asyncio.Future[URL] | None" = None,
    ) -> None:
        """Pass on a stream until it ends; `endpoint` gets the URL of a server of 2024-11-05."""
        events = response.events()
        try:
            while True:
                complete = post is not None and not post.waiting
                async with asyncio.timeout(_LINGER if complete else None):
                    event = await anext(events)
                position.record(event)
                if event.event == ENDPOINT and endpoint is not None and not endpoint.done():
                    url = (event.data or b"").decode("utf-8", "replace")
                    endpoint.set_result(self._endpoint.within(url))
                elif event.data and event.event in (None, "", "message"):
                    await self._on_message(event.data, post)
        except StopAsyncIteration:
            position.end_reason = "the server's event stream ended"
        except TimeoutError:
            position.end_reason = "the server's event stream goes on after the last response"
        except BrokenOff as error:
            position.end_reason = str(error)

    async def _on_message(self, raw: bytes, post: ClientRequest | None) -> None:
        raw = message.one_line(raw)
        keys = answered_ids(raw)
        if keys == [b"null"] and post is not None and len(post.waiting) == 1:
            # The server could not read the id of the request, and there is only one.
            keys = list(post.waiting)
            raw = message.replaced(raw, id=Raw(keys[0]))
        posts = []
        for key in keys:
            owner = post if post is not None and key in post.waiting else self._open.get(key)
            if owner is not None:
                posts.append(owner)
                method = self._retire(key, owner)
                if method == "initialize":
                    self._version = negotiated_version(raw)
                elif method == "tools/list":
                    learn(self._parameters, raw)
        await self._dispatch(await self._driver.from_server(raw))
        for each in posts:
            if not each.waiting:
                each.over.set()

    def _retire(self, key: bytes, post: ClientRequest) -> str:
        if self._open.get(key) is post:
            del self._open[key]
        return post.waiting.pop(key)

    # A server of 2024-11-05

    async def _find_old(self) -> bool:
        endpoint: asyncio.Future[URL] = asyncio.get_running_loop().create_future()
        reading = self._tasks.spawn(self._read_old(endpoint))
        either: set[asyncio.Future[Any]] = {endpoint, reading}
        await asyncio.wait(either, timeout=_ENDPOINT, return_when=asyncio.FIRST_COMPLETED)
        if not endpoint.done():
            reading.cancel()
            return False
        self._old = endpoint.result()
        self._log.debug("the server speaks HTTP+SSE of 2024-11-05")
        return True

    async def _read_old(self, endpoint: "asyncio.Future[URL]") -> None:
        position = StreamPosition()
        try:
            async with self._endpoint.request("GET", {"Accept": STREAM}) as response:
                if response.status == 200 and response.content_type == STREAM:
                    await self._read(response, position, None, endpoint)
        except AbridgeError as error:
            position.end_reason = str(error)
            if not endpoint.done() and not isinstance(error, ConnectionLost):
                endpoint.set_exception(error)
                return
        if endpoint.done():
            self._on_lost(position.end_reason)

    # Headers

    def _headers(self, post: ClientRequest) -> dict[str, str]:
        traced = self._driver.session.state.tracer is not None
        both = {**_BOTH, **(trace_headers(post.raw) if traced else {})}
        if not post.modern:
            return {**both, **({} if post.begins else self._handshake())}
        own = request_headers(post.raw, self._parameters)
        if not own and self._version is not None:
            own = {VERSION: encoded(self._version), METHOD: encoded(post.method)}
        return {**both, **own}

    def _handshake(self) -> dict[str, str]:
        headers = {SESSION: self._session, VERSION: self._version}
        return {name: value for name, value in headers.items() if value is not None}
