"""A route whose upstream is an HTTP server: each request is passed on, each answer shaped.

Status, headers, events and bytes go through as they are wherever no rule changes them. Nothing is
sent twice, and the end of one side is the end of the other: a client that goes away ends the
request to the upstream, which then does what it does for a client that went away.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import aiohttp
import msgspec
from aiohttp import web
from msgspec import Struct
from multidict import CIMultiDict
from yarl import URL

from proxy import sse
from proxy.errors import AbridgeError
from proxy.message import string_at
from proxy.session import Known, Session
from proxy.snapshots import Key
from proxy.sse import Event
from proxy.transports.driver import Driver
from proxy.transports.http import body, headers, legacy, passing, post
from proxy.transports.http.answer import Answer, unframed
from proxy.transports.http.post import FAILED, SESSION, Post, Refused
from proxy.transports.http.route import Asked, Route, Rules, Shared

_KEPT = 10_000  # sessions remembered at most; the one that was silent longest is forgotten first
_CONNECT = 30.0  # seconds
_IDLE = 4.0  # seconds: less than servers keep a connection, which would close as we use it
_REDIRECTS = 3
_STREAM = "text/event-stream"
_JSON = "application/json"
_TEACHES = frozenset(("initialize", "server/discover", "tools/list"))
_LOST = (aiohttp.ClientError, asyncio.TimeoutError, OSError)


class _Lost(AbridgeError):
    """The upstream could not be reached, or ended before its answer did."""


class _Exchange(Struct):
    """A POST and the session it is of.

    `mark` tells its requests from others in a session that many callers share; it is empty where
    there is no need, and its answers may then come later, on another stream.
    """

    post: Post
    driver: Driver
    mark: bytes
    memory: Key

    def end(self, cause: str) -> list[bytes]:
        """Return an answer for each request that has none yet."""
        return self.driver.ended(cause, self.mark, self.post.ids)

    def drop(self) -> None:
        """Forget its requests."""
        self.driver.session.dropped(self.mark, self.post.ids)


class Remote:
    """Answers the requests of a route by asking a server at a URL."""

    def __init__(self, route: Route, rules: Rules, shared: Shared) -> None:
        assert isinstance(route.upstream, str)
        self._route = route
        self._rules = rules
        self._shared = shared
        self._upstream = URL(route.upstream)
        self._drivers: OrderedDict[tuple[str, str | None], Driver] = OrderedDict()
        self._streams: dict[str, legacy.Stream] = {}
        self._listening: dict[Driver, Answer] = {}
        self._parameters: headers.Parameters = {}
        self._numbers = count()
        self._http: aiohttp.ClientSession

    async def open(self) -> None:
        """Get ready to be asked."""
        self._http = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT),
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )

    def unready(self) -> str | None:
        """Return None: whether its server can answer is for that server to say."""
        return None

    def population(self) -> tuple[int, int]:
        """Return how many sessions are known; the servers are not ours."""
        return len(self._drivers), 0

    async def close(self) -> None:
        """Let all connections go."""
        await self._http.close()

    async def handle(self, request: web.BaseRequest, asked: Asked) -> web.StreamResponse:
        """Answer one request."""
        try:
            if request.method == "POST" and not self._route.passes:
                if (name := request.query.get(legacy.QUERY)) is not None:
                    return await self._to_endpoint(request, name, asked)
                return await self._post(request, asked)
            return await self._other(request, asked)
        except Refused as refused:
            asked.answered_by, asked.failure = "proxy", str(refused)
            return refused.response()
        except _Lost as lost:
            asked.answered_by, asked.failure = "proxy", str(lost)
            return Refused(502, FAILED, str(lost)).response()

    async def _post(self, request: web.BaseRequest, asked: Asked) -> web.StreamResponse:
        read = await post.read(request, self._route, self._shared.limits, asked)
        exchange = await self._exchange(request, read)
        driver = exchange.driver
        sent = await driver.from_client(read.raw, exchange.mark)
        asked.client = driver.session.client or ""
        if not sent.to_server:
            asked.answered_by = "proxy"
            if not read.ids:
                return web.Response(status=202)
            answer = _answer(request, read, streams=False)
            return await self._finish(answer, sent.to_client, asked)
        raw = sent.to_server[0]
        ours = [*await self._told(exchange, sent.told), *sent.to_client]
        try:
            async with self._ask(request, raw, read) as upstream:
                return await self._answered(request, exchange, ours, upstream, asked)
        except _Lost as lost:
            exchange.drop()
            asked.answered_by, asked.failure = "proxy", str(lost)
            return Refused(502, FAILED, str(lost)).response(*read.ids[:1])
        finally:
            if exchange.mark:
                exchange.drop()

    async def _told(self, exchange: _Exchange, told: list[bytes]) -> list[bytes]:
        """Tell a client what answers nothing, and return it where it has no stream for such."""
        stream = self._listening.get(exchange.driver)
        if stream is None:
            return told
        for line in told:
            await stream.put(unframed(line))
        return []

    async def _exchange(self, request: web.BaseRequest, read: Post) -> _Exchange:
        caller = post.caller(request, self._route)
        if read.initializes and not read.modern:
            return _Exchange(read, self._begun(caller, b""), b"", _memory(caller, None))
        if read.session is not None and not read.modern:
            return await self._of_session(read, read.session)
        client = post.client_name(read)
        mark = b"%d:" % next(self._numbers)
        driver = await self._known(caller, client, mark)
        return _Exchange(read, driver, mark, _memory(caller, client))

    async def _of_session(self, read: Post, session: str) -> _Exchange:
        scope = post.digest(session)
        return _Exchange(read, await self._known(scope, None, b""), b"", _memory(scope, None))

    async def _known(self, scope: str, client: str | None, mark: bytes) -> Driver:
        """Return who drives the session of that name, which another replica may have begun."""
        driver = self._drivers.get((scope, client))
        if driver is None:
            driver = self._begun(scope, mark)
            self._keep(scope, client, driver)
            await driver.recall(_memory(scope, client))
        self._drivers.move_to_end((scope, client))
        return driver

    def _begun(self, scope: str, mark: bytes) -> Driver:
        shared, log = self._shared, self._shared.log
        session = Session(
            self._rules, shared.meters.of, log.warning, scope=scope, resumable=not mark
        )
        return Driver(session, shared.store, shared.workers, log)

    def _keep(self, scope: str, client: str | None, driver: Driver) -> None:
        self._drivers[scope, client] = driver
        if len(self._drivers) > _KEPT:
            self._drivers.popitem(last=False)

    def _initialized(self, exchange: _Exchange, session: str | None) -> None:
        """Take note of the session that an upstream has begun."""
        if session is not None:
            scope = post.digest(session)
            exchange.driver.session.scope = scope
            exchange.memory = _memory(scope, None)
            self._keep(scope, None, exchange.driver)

    async def _answered(
        self,
        request: web.BaseRequest,
        exchange: _Exchange,
        ours: list[bytes],
        upstream: aiohttp.ClientResponse,
        asked: Asked,
    ) -> web.StreamResponse:
        """Pass on an upstream's answer; `ours` are what we have to say ourselves."""
        read = exchange.post
        if read.initializes:
            self._initialized(exchange, upstream.headers.get(SESSION))
        self._forget_ended(request, upstream)
        kind = upstream.content_type.lower()
        if not read.ids or not 200 <= upstream.status < 300 or kind not in (_JSON, _STREAM):
            exchange.drop()
            return await self._as_it_is(request, upstream, asked)
        passed = passing.to_client(upstream.headers)
        answer = _answer(request, read, kind == _STREAM, upstream.status, passed)
        if kind == _STREAM:
            await answer.begin()
            for line in ours:
                await answer.put(unframed(line))
            await self._events(answer, exchange, upstream, asked)
            return await self._finish(answer, [], asked)
        # Nothing is sent before it is there: what breaks off can still be an error of ours.
        try:
            raw = await self._whole(upstream)
        except body.TooLarge as large:
            asked.failure = f"the server's answer is too long: {large}"
            lines = exchange.end(asked.failure)
        else:
            asked.received = len(raw)
            lines = await self._tell(exchange, raw)
        return await self._finish(answer, [*ours, *lines], asked)

    async def _finish(self, answer: Answer, lines: list[bytes], asked: Asked) -> web.StreamResponse:
        for line in lines[:-1]:
            await answer.put(unframed(line))
        response = await answer.end(unframed(lines[-1]) if lines else None)
        asked.sent = answer.sent
        return response

    async def _events(
        self,
        answer: Answer,
        exchange: _Exchange,
        upstream: aiohttp.ClientResponse,
        asked: Asked,
    ) -> None:
        """Pass on a stream of events until it ends, or nobody needs more of it."""
        resumable = False
        cause = "the server ended its stream before it had answered"
        try:
            async for event in self._stream(upstream, asked):
                resumable |= event.id is not None and not exchange.mark
                for each in await self._translated(exchange, event):
                    await answer.put(each)
                if answer.complete:
                    return
        except (_Lost, sse.TooLong) as broken:
            cause = f"the server's stream broke off: {broken}"
            asked.failure = cause
        if not resumable:
            for line in exchange.end(cause):
                asked.failure = cause
                await answer.put(unframed(line))

    async def _translated(self, exchange: _Exchange, event: Event) -> list[Event]:
        """Return what becomes of an event: mostly itself."""
        if not event.data:
            return [event]
        lines = await self._tell(exchange, event.data)
        if lines == [event.data]:
            return [event]
        *first, last = lines or [event.data]
        raw = sse.replaced(event, last)
        return [*map(unframed, first), msgspec.structs.replace(event, raw=raw, data=last)]

    async def _tell(self, exchange: _Exchange, raw: bytes) -> list[bytes]:
        """Let the session take a message of the upstream; return what goes to the client."""
        if exchange.post.modern and exchange.post.method == "tools/list":
            self._parameters |= headers.declared(raw)
        sent = await exchange.driver.from_server(raw, exchange.mark)
        if exchange.post.method in _TEACHES:
            await self._share(exchange)
        return sent.to_client

    async def _share(self, exchange: _Exchange) -> None:
        """Let others go on with what was learned of the server."""
        if exchange.post.initializes and (exchange.memory.scope, None) not in self._drivers:
            # The upstream has begun no session. Whose the next requests are, nobody can tell.
            driver = await self._known(exchange.memory.scope, None, b":")
            driver.session.recall(Known(server=exchange.driver.session.server))
            await driver.share(exchange.memory)
        else:
            await exchange.driver.share(exchange.memory)

    async def _other(self, request: web.BaseRequest, asked: Asked) -> web.StreamResponse:
        """Pass on a request that brings no message: GET, DELETE, and whatever else there is."""
        raw = b""
        if request.body_exists:
            try:
                encoding = request.headers.get("Content-Encoding")
                raw = await body.whole(request.content, encoding, self._shared.limits.body)
            except body.TooLarge as large:
                raise Refused(413, post.INVALID, str(large)) from None
            except body.Unreadable as cause:
                raise Refused(400, post.NOT_JSON, str(cause)) from None
        session = request.headers.get(SESSION)
        if session is not None:
            asked.session = post.digest(session)
        async with self._ask(request, raw) as upstream:
            self._forget_ended(request, upstream)
            streams = upstream.content_type.lower() == _STREAM and not self._route.passes
            if not streams or not 200 <= upstream.status < 300:
                return await self._as_it_is(request, upstream, asked)
            passed = passing.to_client(upstream.headers)
            answer = _answer(request, _NOTHING, True, upstream.status, passed)
            await answer.begin()
            if session is not None:
                exchange = await self._of_session(_NOTHING, session)
                self._listening[exchange.driver] = answer
                try:
                    await self._events(answer, exchange, upstream, asked)
                finally:
                    self._listening.pop(exchange.driver, None)
            else:
                await self._legacy(answer, upstream, asked)
            return await self._finish(answer, [], asked)

    async def _legacy(self, answer: Answer, upstream: aiohttp.ClientResponse, asked: Asked) -> None:
        """Pass on a stream of no session: the one of HTTP+SSE, where it names its endpoint."""
        name = secrets.token_urlsafe(16)
        exchange = _Exchange(_NOTHING, self._begun(name, b":"), b"", _memory(name, None))
        try:
            async for event in self._stream(upstream, asked):
                if event.event == legacy.ENDPOINT:
                    url = legacy.named(event, upstream.url)
                    self._streams[name] = legacy.Stream(url, exchange.driver, answer)
                    await answer.put(legacy.announcement(event, name))
                else:
                    for each in await self._translated(exchange, event):
                        await answer.put(each)
        except (_Lost, sse.TooLong, legacy.Elsewhere) as broken:
            asked.failure = f"the server's stream broke off: {broken}"
            for line in exchange.driver.ended(asked.failure):
                await answer.put(unframed(line))
        finally:
            self._streams.pop(name, None)

    async def _to_endpoint(
        self, request: web.BaseRequest, name: str, asked: Asked
    ) -> web.StreamResponse:
        """Pass a message on to the endpoint of a stream, on which its answer will come."""
        stream = self._streams.get(name)
        if stream is None:
            raise Refused(404, post.INVALID, "the stream of this endpoint is over")
        read = await post.read(request, self._route, self._shared.limits, asked)
        sent = await stream.driver.from_client(read.raw)
        asked.client = stream.driver.session.client or ""
        for line in sent.to_client:
            await stream.answer.put(unframed(line))
        if not sent.to_server:
            asked.answered_by = "proxy"
            return web.Response(status=202, text="Accepted")
        async with self._ask(request, sent.to_server[0], url=stream.url) as upstream:
            return await self._as_it_is(request, upstream, asked)

    def _forget_ended(self, request: web.BaseRequest, upstream: aiohttp.ClientResponse) -> None:
        session = request.headers.get(SESSION)
        ended = request.method == "DELETE" and 200 <= upstream.status < 300
        if session is not None and (ended or upstream.status == 404):
            self._drivers.pop((post.digest(session), None), None)

    async def _as_it_is(
        self, request: web.BaseRequest, upstream: aiohttp.ClientResponse, asked: Asked
    ) -> web.StreamResponse:
        response = web.StreamResponse(
            status=upstream.status,
            reason=upstream.reason,
            headers=passing.to_client(upstream.headers, whole=True),
        )
        await response.prepare(request)
        try:
            async for chunk in _read(upstream.content.iter_any()):
                asked.received += len(chunk)
                await response.write(chunk)
        except _Lost:
            # What was promised cannot be kept: the client is to see that too.
            if request.transport is not None:
                request.transport.abort()
            raise
        await response.write_eof()
        asked.sent = asked.received
        return response

    async def _stream(self, upstream: aiohttp.ClientResponse, asked: Asked) -> AsyncIterator[Event]:
        """Yield the events of a stream; raises _Lost, sse.TooLong."""
        events = sse.Events(self._shared.limits.message)
        encoding = upstream.headers.get("Content-Encoding")
        async for chunk in _read(body.chunks(upstream.content, encoding)):
            asked.received += len(chunk)
            for event in events.feed(chunk):
                yield event
        if rest := events.end():
            raise _Lost(f"it ended within an event, after {len(rest)} bytes of it")

    async def _whole(self, upstream: aiohttp.ClientResponse) -> bytes:
        encoding = upstream.headers.get("Content-Encoding")
        try:
            return await body.whole(upstream.content, encoding, self._shared.limits.message)
        except body.Unreadable as cause:
            raise _Lost(f"the server's answer cannot be read: {cause}") from None
        except _LOST as cause:
            raise _Lost(f"the server's answer broke off: {_reason(cause)}") from None

    @asynccontextmanager
    async def _ask(
        self,
        request: web.BaseRequest,
        raw: bytes,
        read: Post | None = None,
        url: URL | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request to the upstream; raises _Lost."""
        passed = self._headers(request, raw, read)
        upstream = await self._sent(request, url or self._url(request), raw, passed)
        redirects = 0
        while (target := self._redirection(upstream)) is not None:
            upstream.release()
            redirects += 1
            if redirects > _REDIRECTS:
                raise _Lost(f"the server redirects more than {_REDIRECTS} times")
            upstream = await self._sent(request, target, raw, passed)
        try:
            yield upstream
        finally:
            # A connection on which more would come is closed: that tells the upstream.
            upstream.release()

    async def _sent(
        self, request: web.BaseRequest, url: URL, raw: bytes, passed: CIMultiDict[str]
    ) -> aiohttp.ClientResponse:
        try:
            return await self._http.request(
                request.method, url, headers=passed, data=raw or None, allow_redirects=False
            )
        except _LOST as cause:
            raise _Lost(f"the server cannot be reached: {_reason(cause)}") from None

    def _redirection(self, upstream: aiohttp.ClientResponse) -> URL | None:
        """Return where a request is to be sent again as it is; raises _Lost for elsewhere."""
        location = upstream.headers.get("Location")
        if upstream.status not in (301, 302, 303, 307, 308) or location is None:
            return None
        try:
            target = upstream.url.join(URL(location))
            elsewhere = target.origin() != self._upstream.origin()
        except ValueError:  # no URL, or one that has no origin
            target, elsewhere = upstream.url, True
        if elsewhere:
            upstream.release()
            raise _Lost("the server redirects to another origin; that is refused")
        return target if upstream.status in (307, 308) else None

    def _url(self, request: web.BaseRequest) -> URL:
        if not (self._route.passes or request.query_string):
            return self._upstream
        url = str(self._upstream)
        if self._route.passes:
            url = str(self._upstream.origin()) + request.rel_url.raw_path
        if request.query_string:
            url += ("&" if "?" in url else "?") + request.rel_url.raw_query_string
        return URL(url, encoded=True)

    def _headers(self, request: web.BaseRequest, raw: bytes, read: Post | None) -> CIMultiDict[str]:
        route = self._route
        # A token that opens this route is not for the upstream.
        credentials = route.auth == "forward" and not route.access.opened_by(request.headers)
        passed = passing.to_upstream(request.headers, credentials=credentials, fixed=route.headers)
        if read is None:
            return passed
        passed["Accept"] = f"{_JSON}, {_STREAM}"
        if read.modern and raw != read.raw:
            known = self._parameters.get(self._tool(read), ())
            for name in (header for _, header in known):
                passed.popall(name, None)
            passed.update(headers.request_headers(raw, self._parameters))
        return passed

    @staticmethod
    def _tool(read: Post) -> str:
        return "" if read.first is None else string_at(read.first.params, "name") or ""


_NOTHING = Post(
    raw=b"",
    messages=[],
    batch=False,
    ids=(),
    wanted="stream",
    session=None,
    version=None,
    modern=False,
)


def _answer(
    request: web.BaseRequest,
    read: Post,
    streams: bool,
    status: int = 200,
    passed: CIMultiDict[str] | None = None,
) -> Answer:
    return Answer(
        request,
        read.wanted,
        streams=streams,
        expected=len(read.ids),
        batch=read.batch,
        status=status,
        headers=passed or CIMultiDict(),
    )


def _memory(scope: str, client: str | None) -> Key:
    """Name what replicas tell each other of a session's server."""
    return Key(scope, "", f"known to {client or 'anybody'}")


async def _read(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield what comes from an upstream; raises _Lost where it breaks off."""
    try:
        async for chunk in chunks:
            yield chunk
    except body.Unreadable as cause:
        raise _Lost(str(cause)) from None
    except _LOST as cause:
        raise _Lost(_reason(cause)) from None


def _reason(cause: BaseException) -> str:
    if isinstance(cause, aiohttp.ClientPayloadError):
        return "the connection broke off in the middle of it"
    if isinstance(cause, aiohttp.ClientResponseError):
        # The rest of its text is the URL, whose query may be secret, and what the server sent.
        return f"it does not speak HTTP as it should: {cause.message.partition(':')[0].lower()}"
    said = str(cause) or type(cause).__name__
    return said[:1].lower() + said[1:]
