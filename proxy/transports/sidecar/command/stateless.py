"""Answer the requests of the stateless era (MCP 2026-07-28) with a few shared servers.

Each POST is one request and its answer. A client that disconnects has cancelled it.
"""

import asyncio
from contextlib import suppress

from aiohttp import web

from proxy.document import message
from proxy.document.tree import ABSENT
from proxy.transports.aio import others
from proxy.transports.correlation import address, progress_token
from proxy.transports.driver import Routed
from proxy.transports.http import headers
from proxy.transports.http.negotiation import Wanted
from proxy.transports.sidecar import header_checks as envelope
from proxy.transports.sidecar.command.pool import Pool, PooledRequest, PooledServer, Start
from proxy.transports.sidecar.command.streams import PING, SILENCE
from proxy.transports.sidecar.request import FAILED, INVALID, PostedBody, RequestRefused
from proxy.transports.sidecar.response_writer import ResponseWriter, unframed
from proxy.transports.sidecar.route import AccessRecord, Route, Rules, Services
from proxy.transports.sidecar.session_registry import RequestContext, SessionRegistry

_KEPT = 1000  # callers remembered at most; the least recently used is forgotten first
_LISTEN = "subscriptions/listen"
_RETRY_AFTER = "1"
_LATE = "the server did not answer in time"


class Stateless:
    """The stateless requests of a route whose upstream is a command."""

    def __init__(self, route: Route, rules: Rules, shared: Services, start: Start) -> None:
        self._shared = shared
        limits = shared.limits
        most, total = limits.children, limits.sessions
        self._pool = Pool(start, most, total, shared.log, limits.message)
        aside = shared.log.noise
        self._callers = SessionRegistry(route, rules, shared, most=_KEPT, aside=aside)
        self._parameters: headers.Parameters = {}

    async def post(
        self, request: web.BaseRequest, read: PostedBody, asked: AccessRecord
    ) -> web.StreamResponse:
        """Answer one POST; raises RequestRefused."""
        refused = envelope.refusal(read, request.headers, self._parameters)
        if refused is None and read.method == _LISTEN and read.wanted == "json":
            refused = RequestRefused(406, INVALID, "the answer is an event stream")
        if refused is not None:
            asked.answered_by, asked.failure = "proxy", str(refused)
            return refused.response(*read.ids)
        if not read.ids and read.first is not None and read.first.id is not ABSENT:
            refused = RequestRefused(400, INVALID, "the method is no text")
            asked.answered_by, asked.failure = "proxy", str(refused)
            return refused.response()
        if not read.ids:
            # No notification of one client may go to a server that all share.
            asked.answered_by = "proxy"
            return web.Response(status=202)
        exchange = await self._callers.exchange(request, read)
        try:
            return await _Answering(self, request, exchange, asked).answered()
        except RequestRefused as cause:
            asked.answered_by, asked.failure = "proxy", str(cause)
            return cause.response(*read.ids)
        finally:
            exchange.drop()

    def reap(self) -> None:
        """End servers that have been idle for too long."""
        self._pool.reap(self._shared.limits.idle)

    async def close(self) -> None:
        """End all servers."""
        await self._pool.close()

    @property
    def pool(self) -> Pool:
        """The servers."""
        return self._pool

    def unheard(self) -> None:
        """Log that a message of a server was dropped."""
        self._shared.log.debug("a message that came while a call was held was dropped")

    async def learn(self, exchange: RequestContext, raw: bytes) -> None:
        """Share the facts of a server's response with other requests and replicas."""
        if exchange.post.method == "tools/list":
            headers.learn(self._parameters, raw)
        await self._callers.share(exchange)


class _Answering:
    """One request and its answer."""

    def __init__(
        self,
        whole: Stateless,
        request: web.BaseRequest,
        exchange: RequestContext,
        asked: AccessRecord,
    ) -> None:
        self._whole = whole
        self._request = request
        self._exchange = exchange
        self._read = exchange.post
        self._key = exchange.post.ids[0]
        self._driver = exchange.driver
        self._mark = exchange.mark
        self._asked = asked
        self._answer: ResponseWriter | None = None
        self._responded = False
        self._loop = asyncio.get_running_loop()
        self._probe: bytes | None = None  # the id of the proxy's query while it is pending
        self._due = 0.0  # its deadline

    async def answered(self) -> web.StreamResponse:
        """Send the client's request to a server, and return the answer; raises RequestRefused."""
        read = self._read
        line = message.one_line(read.raw.strip())
        sent = await self._driver.from_client(line, self._mark)
        self._asked.client = self._driver.session.client or ""
        if not (sent.to_server or sent.probes):
            self._asked.answered_by = "proxy"
            return await self._finished(sent.to_client)
        assert read.first is not None
        for probe in sent.probes:
            self._probe = probe.token.removeprefix(self._mark)
        asking = PooledRequest(
            self._key,
            progress_token(read.first),
            self._cut,
            lasts=read.method == _LISTEN,
            probe=self._probe,
        )
        try:
            member = await self._whole.pool.take(asking)
        except OSError as error:
            raise RequestRefused(502, FAILED, f"the server cannot be started: {error}") from None
        if member is None:
            said = "every server is busy with a request of this id or progress token"
            raise RequestRefused(503, FAILED, said, {"Retry-After": _RETRY_AFTER})
        try:
            member.child.post([*sent.to_server, *(probe.raw for probe in sent.probes)])
            self._driver.session.restart_deadlines(self._mark, self._read.ids)
            for probe in sent.probes:
                self._due = self._loop.time() + probe.seconds
            if asking.sent:
                await self._taken(member)
            for line in sent.to_client:
                await self._say(line)
            await self._pass_on(asking, member)
        finally:
            member.cancel(asking)
        if not asking.sent:
            self._asked.answered_by = "proxy"
        lines: list[bytes] = []
        if asking.over:
            self._asked.failure = asking.over
            lines = self._exchange.end(asking.over)
        return await self._finished(lines, asking.over or "the server gave no answer")

    async def _taken(self, member: PooledServer) -> None:
        """Wait while the server's input buffer is full, but not longer than for an answer."""
        seconds = self._driver.session.patience(self._mark, self._read.ids)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await member.child.ready()

    async def _overdue(self, asking: PooledRequest, member: PooledServer) -> bool:
        """Return True if the call is overdue; it is cancelled and answered with an error then."""
        sent = self._driver.overdue(self._mark, self._read.ids)
        if not sent.to_client:
            return False
        member.cancel(asking, sent.to_server)
        self._asked.answered_by, self._asked.failure = "proxy", _LATE
        for line in sent.to_client:
            await self._say(line)
        return True

    async def _pass_on(self, asking: PooledRequest, member: PooledServer) -> None:
        """Pass on the server's messages until it has answered, has ended, or is overdue."""
        while asking.sent or self._probe is not None:
            if await self._overdue(asking, member):
                return
            patience = self._patience()
            try:
                raw = await asking.next(patience)
            except TimeoutError:
                if self._probe is not None and self._loop.time() >= self._due:
                    member.settle(asking)
                    sent = await self._driver.unanswered(self._mark + self._probe)
                    await self._go_on(sent, asking, member)
                    continue
                if patience != PING:
                    continue
                # For intermediaries, which would take silence for the end.
                self._answer = self._answer or self._begun("stream")
                await self._answer.put(SILENCE)
                continue
            if raw is None:
                return
            sent = await self._driver.from_server(raw, self._mark)
            if self._probe is not None:
                await self._held(raw, sent, asking, member)
                continue
            self._asked.received += len(raw)
            await self._whole.learn(self._exchange, raw)
            for line in sent.to_client:
                await self._say(line)

    def _patience(self) -> float | None:
        """Return the seconds to wait for the server's next message, None if without limit."""
        ping = PING if self._streams else None
        left = self._driver.session.patience(self._mark, self._read.ids)
        if self._probe is not None:
            left = max(0.0, self._due - self._loop.time())
        return min((each for each in (left, ping) if each is not None), default=None)

    async def _held(
        self, raw: bytes, sent: Routed, asking: PooledRequest, member: PooledServer
    ) -> None:
        """Process a message that the server sends while the call is held."""
        if address(raw).answers in (self._probe, self._key):
            await self._go_on(sent, asking, member)
        elif self._answer is not None and self._answer.started:
            for line in sent.to_client:
                await self._say(line)
        elif sent.to_client:
            # The call may still be answered as JSON.
            self._whole.unheard()

    async def _go_on(self, sent: Routed, asking: PooledRequest, member: PooledServer) -> None:
        """Carry out the decision on a call that was held."""
        self._probe = None
        # All but the cancellation of the query is the call.
        asking.sent |= any(address(line).cancels is None for line in sent.to_server)
        member.child.post(sent.to_server)
        for line in sent.to_client:
            await self._say(line)

    async def _finished(self, lines: list[bytes], cause: str = "") -> web.StreamResponse:
        for line in lines:
            await self._say(line)
        ended = self._answer is not None and self._answer.started and not cause
        if not self._responded and self._read.method != _LISTEN and not ended:
            await self._say(message.error(self._key, FAILED, cause or "there is no answer"))
        self._answer = self._answer or self._begun("stream")
        try:
            return await self._answer.end()
        finally:
            self._asked.sent = self._answer.sent

    async def _say(self, line: bytes) -> None:
        """Send one message to the client; the first one decides the form and the status."""
        await others(len(line))
        responds = address(line).answers == self._key
        self._responded |= responds
        if self._answer is None:
            status = envelope.status_of(envelope.error_code(line)) if responds else 200
            json = status != 200 or (responds and self._read.wanted != "stream")
            self._answer = self._begun("json" if json else "stream", status)
        await self._answer.put(unframed(line))

    def _begun(self, form: str, status: int = 200) -> ResponseWriter:
        json = form == "json" or self._read.wanted == "json"
        wanted: Wanted = "json" if json else "stream"
        return ResponseWriter(self._request, wanted, streams=not json, expected=1, status=status)

    @property
    def _streams(self) -> bool:
        """True if an event stream has begun, or may begin."""
        if self._answer is not None:
            return self._answer.started
        return self._read.wanted in ("stream", "either")

    def _cut(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()
