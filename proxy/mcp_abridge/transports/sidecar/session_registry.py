"""The session that a request belongs to: one of the handshake era, or that of its caller.

In the stateless era a caller has one for each client's name.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import count

from msgspec import Struct, field

from mcp_abridge.errors import StoreError
from mcp_abridge.session.active_rules import PeerInfo
from mcp_abridge.storage.snapshots import Key, Snapshot
from mcp_abridge.transports.aio import threaded
from mcp_abridge.transports.driver import Driver, Routed
from mcp_abridge.transports.http.headers import SESSION
from mcp_abridge.transports.sidecar.caller import (
    NO_SESSION,
    digest,
    of_the_largest_holders,
    scope_of,
)
from mcp_abridge.transports.sidecar.refusal import INVALID, RequestRefused, unavailable
from mcp_abridge.transports.sidecar.request import PostedBody, client_name
from mcp_abridge.transports.sidecar.response_writer import ResponseWriter
from mcp_abridge.transports.sidecar.route import AccessRecord, Request, Route, Services

_KEPT = 10_000  # sessions remembered at most; the least recently used is forgotten first
_TEACHES = frozenset(("initialize", "server/discover", "tools/list"))


class RequestContext(Struct):
    """A POST, its request, its session and its answer.

    `exchange` tells its requests from others in a session that many callers share; if it is empty,
    its answers may come later, on another stream. `scope` decides which snapshots it may read:
    knowing the id of a session is no proof of having begun it. `ours` are messages for the answer
    besides those of the upstream.
    """

    request: Request
    post: PostedBody
    driver: Driver
    exchange: bytes
    memory: Key
    scope: str
    ours: list[bytes] = []
    answer: ResponseWriter | None = None

    @property
    def record(self) -> AccessRecord:
        return self.request.record

    @property
    def slots(self) -> list[bytes]:
        """Those of its requests in the session."""
        return [self.exchange + id for id in self.post.ids]

    @property
    def withholds(self) -> bool:
        """True if one of its requests awaits an answer that its rule may withhold."""
        return self.driver.session.withholds(self.slots)

    @property
    def complete(self) -> bool:
        """True once none of its requests awaits an answer; False if there are none."""
        return bool(self.slots) and not self.driver.session.awaits(self.slots)

    async def enter(self, line: bytes) -> Routed:
        """Give the client's line to the session, and note whose it is."""
        routed = await self.driver.from_client(line, self.exchange, self.scope, self.record)
        self.record.client = self.driver.session.rules.peer.client or ""
        return routed

    def end(self, cause: str) -> list[bytes]:
        return self.driver.session.fail_pending(cause, self.slots)

    def drop(self) -> None:
        self.driver.session.forget_pending(self.slots)


class _Known(Struct):
    """A session that is remembered: its key, the name of its caller's token, and its driver.

    `rests`: it was not used since the last look at all of them.
    """

    key: tuple[str, str | None]
    caller: str
    driver: Driver
    rests: bool = False


class SessionRegistry(Struct, eq=False):
    """At most `_most` sessions of a route; `_on_noise` receives output that is no message."""

    _route: Route
    _shared: Services
    _most: int = _KEPT
    _on_noise: Callable[[bytes], None] | None = None
    _sessions: OrderedDict[tuple[str, str | None], _Known] = field(default_factory=OrderedDict)
    _numbers: Iterator[int] = field(default_factory=count)

    def __len__(self) -> int:
        return len(self._sessions)

    def has_session(self, request: Request) -> bool:
        """Return True if a request names a session that is remembered."""
        session = request.headers.get(SESSION)
        return session is not None and (self._name_of(session), None) in self._sessions

    async def context(self, request: Request, read: PostedBody) -> RequestContext:
        """Return the context of a POST: its session, exchange and scope."""
        token, client, exchange = request.record.token, None, b""
        scope = scope_of(request, self._route, token)
        if read.initializes and not read.modern:
            driver = self.begin(scope, resumable=True)
        elif (session := request.headers.get(SESSION)) is not None and not read.modern:
            return await self.of_session(request, read, session)
        else:
            client, exchange = client_name(read), b"%d:" % next(self._numbers)
            driver = await self._driver(scope, client, token, resumable=False)
        return RequestContext(request, read, driver, exchange, _memory(scope, client), scope)

    async def of_session(self, request: Request, read: PostedBody, session: str) -> RequestContext:
        """Return the context of a request in the session with this id."""
        token, name = request.record.token, self._name_of(session)
        own = scope_of(request, self._route, token)
        driver = await self._driver(name, None, token, resumable=True)
        scope, memory = f"{own}\n{name}", _memory(name, None)
        return RequestContext(request, read, driver, b"", memory, scope)

    async def check_owner(self, request: Request) -> None:
        """Raise RequestRefused if a request names a session that another caller has begun."""
        session = request.headers.get(SESSION)
        names = {each.name for each in self._route.access.tokens()}
        if session is None or not names or self._route.auth == "forward":
            return
        name = self._name_of(session)
        token, owner = request.record.token, None
        if (entry := self._sessions.get((name, None))) is not None:
            owner = entry.caller
        elif self._shared.store.remote:
            try:
                snapshot = await threaded(self._shared.store.get, _owner(name))
            except StoreError as error:
                reason = f"whose session this is cannot be looked up now: {error}"
                raise unavailable(reason, 1) from None
            owner = None if snapshot is None else snapshot.raw.decode()
        # One begun before a restart is of nobody known: it goes on if there is one caller only.
        if owner != token and not (owner is None and names == {token}):
            raise RequestRefused(404, INVALID, NO_SESSION)

    def _name_of(self, session: str) -> str:
        return digest(f"{self._route.path}\n{self._route.upstream}\n{session}")

    def begin(self, scope: str, *, resumable: bool) -> Driver:
        """Begin a session for this scope; no later request finds it unless it is kept."""
        return self._shared.begin(self._route, scope, self._on_noise, resumable=resumable)

    async def initialized(self, context: RequestContext, session: str | None) -> None:
        """Record the session that an upstream has begun, and whose it is."""
        if session is None:
            return
        name, token = self._name_of(session), context.record.token
        context.memory = _memory(name, None)
        self._keep(name, None, token, context.driver)
        if token and self._shared.store.remote:
            try:
                note = Snapshot(b"", token.encode())
                await threaded(self._shared.store.put, _owner(name), note)
            except StoreError as error:
                what = "other replicas will not know a session: "
                context.driver.session.state.store_failed(error, what)

    def ended(self, session: str) -> None:
        self._sessions.pop((self._name_of(session), None), None)

    def rest(self) -> None:
        """Reduce the memory of sessions unused since the last call: clients leave unannounced."""
        for entry in self._sessions.values():
            if entry.rests:
                entry.driver.session.rest()
            entry.rests = True

    async def share(self, context: RequestContext) -> None:
        """Share facts about the server with other replicas if the request asked for these."""
        if context.post.method not in _TEACHES:
            return
        if context.post.initializes and (context.memory.scope, None) not in self._sessions:
            # The upstream has begun no session, so later requests cannot be attributed to one.
            scope, token = context.memory.scope, context.record.token
            driver = await self._driver(scope, None, token, resumable=False)
            facts = context.driver.session.rules.peer
            driver.session.rules.recall(
                PeerInfo(server=facts.server, shows_widgets=facts.shows_widgets)
            )
            await driver.share(context.memory)
        else:
            await context.driver.share(context.memory)

    async def _driver(
        self, scope: str, client: str | None, token: str, *, resumable: bool
    ) -> Driver:
        entry = self._sessions.get((scope, client))
        if entry is not None:
            self._sessions.move_to_end((scope, client))
            entry.rests = False
            return entry.driver
        driver = self.begin(scope, resumable=resumable)
        self._keep(scope, client, token, driver)
        # It may be forgotten meanwhile.
        await driver.recall(_memory(scope, client))
        return driver

    def _keep(self, scope: str, client: str | None, token: str, driver: Driver) -> None:
        self._sessions[scope, client] = _Known((scope, client), token, driver)
        if len(self._sessions) > self._most:
            del self._sessions[of_the_largest_holders(self._sessions.values(), token)[0].key]


def _owner(name: str) -> Key:
    return Key(name, "", "owner")


def _memory(scope: str, client: str | None) -> Key:
    return Key(scope, "", f"known to {client or 'anybody'}")
