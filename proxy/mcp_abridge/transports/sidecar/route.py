"""A route of a sidecar, the choice of one by a path, and the services that all routes share."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import unquote

from aiohttp import hdrs, web
from aiohttp.http import SERVER_SOFTWARE
from msgspec import Struct

from mcp_abridge.ruleset.loading.config_model import TOKEN, LimitsSpec, RoutePath, RouteSpec
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.session.active_rules import Rules
from mcp_abridge.session.session import Session
from mcp_abridge.session.state import SessionState
from mcp_abridge.session.tracing import Arrival
from mcp_abridge.storage.calls import RecentCalls
from mcp_abridge.storage.meter import Meters
from mcp_abridge.storage.snapshots import Store
from mcp_abridge.transports.driver import Driver
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.access import Access
from mcp_abridge.transports.telemetry import Telemetry
from mcp_abridge.transports.workers.pool import Workers

if TYPE_CHECKING:
    from mcp_abridge.storage.recorder import Recorder


_SEPARATOR = re.compile(r"[/\\]")  # some servers treat them as separators even if escaped


class Route(Struct, kw_only=True):
    """One path of a sidecar and its upstream: a URL, or a command with its arguments.

    `path` may hold one segment `{token}`. With `auth: forward` the client's own credentials go to
    the upstream. `refresh` is awaited before a message about tools. `deadline` is how many seconds
    a call may go without an answer or progress. With `passes`, every request under `path` goes to
    the upstream unchanged. `spec` is what it was made from. All who serve it read it anew for each
    request, so that `adopt` is enough if a configuration is read again.
    """

    path: str = "/mcp"
    upstream: str | tuple[str, ...]
    refresh: Callable[[], Awaitable[None]] | None = None
    deadline: float | None = None
    auth: Literal["none", "forward"] = "none"
    access: Access
    headers: tuple[tuple[str, str], ...] = ()
    listen: str = "127.0.0.1:8808"
    malformed_status: int = 400
    passes: bool = False
    select: Rules | None = None
    spec: RouteSpec = RouteSpec(path=RoutePath("/mcp"))

    def adopt(self, other: "Route") -> None:
        """Become another route of the same path and upstream."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(other, name))

    def rules_for(self, server: str | None, client: str | None, version: str | None) -> RuleSet:
        assert self.select is not None
        return self.select(server, client, version)


class Services(Struct, frozen=True):
    """The services of all routes; without `calls`, as for replicas, no call is known as first."""

    meters: Meters
    store: Store
    calls: RecentCalls | None
    workers: Workers
    log: Log
    limits: LimitsSpec
    recorder: "Recorder | None" = None
    secrets: set[str] = set()
    """The variables of the environment that no server may see."""
    telemetry: Telemetry | None = None

    def begin(
        self,
        route: Route,
        scope: str,
        on_noise: Callable[[bytes], None] | None = None,
        *,
        resumable: bool = False,
    ) -> Driver:
        state = SessionState(
            route.rules_for,
            partial(self.meters.of, route=route.path),
            self.log.warning,
            self.store,
            store_failed=self.log.error,
            scope=scope,
            calls=self.calls,
            resumable=resumable,
            deadline=route.deadline,
            tracer=None if self.telemetry is None else self.telemetry.tracer(route.upstream),
            recorder=None if self.recorder is None else self.recorder.session(),
        )
        return Driver(Session(state), self.workers, on_noise)


class AccessRecord(Arrival):
    """The facts of one HTTP request and its answer, for the log; the handler fills them in.

    `bytes_received` counts the upstream's answer, `bytes_sent` the proxy's. `complete` means that
    all responses are sent, though their stream may go on.
    """

    id: bytes = b"null"
    method: str = ""
    tool: str = ""
    token: str = ""
    client: str = ""
    bytes_received: int = 0
    bytes_sent: int = 0
    answered_by: Literal["upstream", "proxy"] = "upstream"
    failure: str = ""
    complete: bool = False


class Request(web.BaseRequest):
    """A client's HTTP request and its record; its answer does not say which software runs here."""

    ATTRS = web.BaseRequest.ATTRS | {"record"}

    def __init__(self, *parts: Any, **options: Any) -> None:
        super().__init__(*parts, **options)
        self.record = AccessRecord()

    def cut(self) -> None:
        """Close its connection at once: the answer cannot be completed, or is not read."""
        if self.transport is not None:
            self.transport.abort()

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        # The same object: an equal text may be a server's own.
        if response.headers.get(hdrs.SERVER) is SERVER_SOFTWARE:
            del response.headers[hdrs.SERVER]


class Handler(Protocol):
    """The interface that answers the requests of one route, whose access was granted before.

    `unready` is the reason why no server can be started now. `counts` are the numbers of open
    sessions and of running child processes. `has_session` is True for a request in a session that
    began here.
    """

    unready: str | None

    async def open(self) -> None: ...
    def has_session(self, request: Request) -> bool: ...
    async def handle(self, request: Request) -> web.StreamResponse: ...
    def counts(self) -> tuple[int, int]: ...
    async def close(self) -> None: ...


class Mount(Struct, frozen=True):
    """A route and the handler of its requests.

    `earlier` are handlers whose upstream was replaced: their sessions go on.
    """

    route: Route
    handler: Handler
    earlier: tuple[Handler, ...] = ()

    def handler_of(self, request: Request) -> Handler:
        """Return the handler that began the session of a request, else that of all new ones."""
        return next((each for each in self.earlier if each.has_session(request)), self.handler)


Mounts = tuple[Mount, ...]
"""The routes of one listener, as `ranked` orders them."""


def ranked(mounts: Iterable[Mount]) -> Mounts:
    """Return mounts in the order in which they are tried.

    A literal path precedes a path with a token, and both precede a route that takes everything
    under its path; of several such routes the longest path wins.
    """
    return tuple(sorted(mounts, key=_rank))


def find(mounts: Mounts, path: str) -> tuple[Mount, str | None] | None:
    """Return the mount at a request's `path`, if any, and the token that the path holds."""
    segments = [unquote(segment) for segment in path.rstrip("/").split("/")]
    if any(map(_climbs, segments)):
        return None
    for mount in mounts:
        pattern = mount.route.path.rstrip("/").split("/")
        there = segments[: len(pattern)] if mount.route.passes else segments
        if len(there) == len(pattern) and _matches(pattern, there):
            token = there[pattern.index(TOKEN)] if TOKEN in pattern else None
            return mount, token
    return None


def _climbs(segment: str) -> bool:
    """Return True if any server may read a segment as a step up to the parent."""
    return any(part.partition(";")[0] in (".", "..") for part in _SEPARATOR.split(segment))


def _rank(mount: Mount) -> tuple[bool, int, bool]:
    path, passes = mount.route.path, mount.route.passes
    return passes, -len(path.split("/")) if passes else 0, TOKEN in path


def _matches(pattern: Sequence[str], there: Sequence[str]) -> bool:
    return all(
        one == other or (one == TOKEN and other) for one, other in zip(pattern, there, strict=True)
    )
