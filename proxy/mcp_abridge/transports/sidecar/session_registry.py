"""The session that a request belongs to: one of the handshake era, or that of its caller.

A caller is identified by its credentials, and in the stateless era by the client's name too.
"""

from collections import OrderedDict
from collections.abc import Callable
from itertools import count

from aiohttp import web
from msgspec import Struct

from mcp_abridge.session.active_rules import PeerInfo
from mcp_abridge.storage.snapshots import Key
from mcp_abridge.transports.driver import Driver
from mcp_abridge.transports.sidecar import request as post
from mcp_abridge.transports.sidecar.request import PostedBody
from mcp_abridge.transports.sidecar.route import Route, Rules, Services

_KEPT = 10_000  # sessions remembered at most; the least recently used is forgotten first
_TEACHES = frozenset(("initialize", "server/discover", "tools/list"))


class RequestContext(Struct):
    """A POST, its request and its session.

    `id_prefix` tells its requests from others in a session that many callers share; if it is empty,
    its answers may come later, on another stream. `scope` decides which snapshots it may read:
    knowing the id of a session is no proof of having begun it.
    """

    request: web.BaseRequest
    post: PostedBody
    driver: Driver
    id_prefix: bytes
    memory: Key
    scope: str

    @property
    def withholds(self) -> bool:
        """True if one of its requests awaits an answer that its rule may withhold."""
        return self.driver.session.withholds(self.id_prefix, self.post.ids)

    @property
    def complete(self) -> bool:
        """True once none of its requests awaits an answer; False if there are none."""
        ids = self.post.ids
        return bool(ids) and not self.driver.session.awaits(self.id_prefix, ids)

    def end(self, cause: str) -> list[bytes]:
        return self.driver.session.fail_pending(cause, self.id_prefix, self.post.ids)

    def drop(self) -> None:
        self.driver.session.forget_pending(self.id_prefix, self.post.ids)


class SessionRegistry:
    """At most `most` sessions of a route; `aside` receives output that is no message."""

    def __init__(
        self,
        route: Route,
        rules: Rules,
        shared: Services,
        *,
        most: int = _KEPT,
        aside: Callable[[bytes], None] | None = None,
    ) -> None:
        self._most = most
        self._aside = aside
        self._route = route
        self._rules = rules
        self._shared = shared
        self._drivers: OrderedDict[tuple[str, str | None], Driver] = OrderedDict()
        self._recent: set[tuple[str, str | None]] = set()  # keys used since the last `rest`
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._drivers)

    async def context(self, request: web.BaseRequest, read: PostedBody) -> RequestContext:
        """Return the context of a POST: its session, id prefix and scope."""
        caller = post.caller(request, self._route)
        if read.initializes and not read.modern:
            driver = self._begin(caller, b"")
            return RequestContext(request, read, driver, b"", _memory(caller, None), caller)
        if read.session is not None and not read.modern:
            return await self.of_session(request, read, read.session)
        client = post.client_name(read)
        id_prefix = b"%d:" % next(self._numbers)
        driver = await self._driver(caller, client, id_prefix)
        return RequestContext(request, read, driver, id_prefix, _memory(caller, client), caller)

    async def of_session(
        self, request: web.BaseRequest, read: PostedBody, session: str
    ) -> RequestContext:
        """Return the context of a request in the session with this id."""
        name = self._name_of(session)
        scope = f"{post.caller(request, self._route)}\n{name}"
        driver = await self._driver(name, None, b"")
        return RequestContext(request, read, driver, b"", _memory(name, None), scope)

    def _name_of(self, session: str) -> str:
        return post.digest(f"{self._route.path}\n{self._route.upstream}\n{session}")

    def _begin(self, scope: str, id_prefix: bytes) -> Driver:
        begin = self._shared.begin
        return begin(self._route, self._rules, scope, self._aside, resumable=not id_prefix)

    def alone(self, name: str) -> Driver:
        """Return a context in a session of this name that no other request can find."""
        return self._begin(name, b":")

    def initialized(self, context: RequestContext, session: str | None) -> None:
        """Record the session that an upstream has begun."""
        if session is not None:
            name = self._name_of(session)
            context.memory = _memory(name, None)
            self._keep(name, None, context.driver)

    def ended(self, session: str) -> None:
        """Forget a session that has ended."""
        self._forget((self._name_of(session), None))

    def rest(self) -> None:
        """Reduce the memory of sessions unused since the last call: clients leave unannounced."""
        for key, driver in self._drivers.items():
            if key not in self._recent:
                driver.session.rest()
        self._recent.clear()

    async def share(self, context: RequestContext) -> None:
        """Share facts about the server with other replicas if the request asked for these."""
        if context.post.method not in _TEACHES:
            return
        if context.post.initializes and (context.memory.scope, None) not in self._drivers:
            # The upstream has begun no session, so later requests cannot be attributed to one.
            driver = await self._driver(context.memory.scope, None, b":")
            driver.session.rules.recall(PeerInfo(server=context.driver.session.rules.server))
            await driver.share(context.memory)
        else:
            await context.driver.share(context.memory)

    async def _driver(self, scope: str, client: str | None, id_prefix: bytes) -> Driver:
        driver = self._drivers.get((scope, client))
        if driver is None:
            driver = self._begin(scope, id_prefix)
            self._keep(scope, client, driver)
            # It may be forgotten meanwhile.
            await driver.recall(_memory(scope, client))
        else:
            self._drivers.move_to_end((scope, client))
            self._recent.add((scope, client))
        return driver

    def _keep(self, scope: str, client: str | None, driver: Driver) -> None:
        self._drivers[scope, client] = driver
        self._recent.add((scope, client))
        if len(self._drivers) > self._most:
            self._forget(next(iter(self._drivers)))

    def _forget(self, key: tuple[str, str | None]) -> None:
        self._drivers.pop(key, None)
        self._recent.discard(key)


def _memory(scope: str, client: str | None) -> Key:
    return Key(scope, "", f"known to {client or 'anybody'}")
