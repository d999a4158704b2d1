"""Makes the answers of an MCP server short inside its process: without it, it needs a wrapper.

It stands among the middleware of the SDK's server, where requests and results are as on the wire,
so that a client gets what it would get through the wrapper.
"""

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any, TypeAlias, TypeVar, Unpack

from anyio import fail_after
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Raw
from multidict import CIMultiDict
from pydantic_core import from_json

from mcp_abridge.document import message
from mcp_abridge.document.message import members, string_at
from mcp_abridge.document.tree import encode
from mcp_abridge.errors import raised
from mcp_abridge.session.active_rules import PeerInfo
from mcp_abridge.session.guards import LATE
from mcp_abridge.session.outputs import Probe
from mcp_abridge.session.session import Session
from mcp_abridge.storage.snapshots import ANYBODY, digest
from mcp_abridge.transports.driver import Driver, Routed
from mcp_abridge.transports.http.hop_headers import identity
from mcp_abridge.transports.inprocess.abridge import dumped, params_of, request
from mcp_abridge.transports.inprocess.parts import AbridgeOptions, Rules, new_states
from mcp_abridge.transports.workers.pool import Workers

Context: TypeAlias = ServerRequestContext[Any, Any]
Server = TypeVar("Server")

_SSE_SESSION = "session_id"  # in the query of HTTP+SSE
_MOST = 1000  # callers without a session that are remembered
_STATE = "mcp_abridge"


class AbridgeMiddleware:
    """Middleware for servers of the official SDK, and by `install` for FastMCP's.

    `rules` and `options` are those of Abridge. `caller` returns whose a request is: nobody reads
    what is kept of another's answers. Without it the session decides, and the headers that may
    identify somebody, as in `serve`. Needs asyncio. Raises RuleErrors if the rules cannot be used.

        MCPServer("shop", middleware=[AbridgeMiddleware()])
        AbridgeMiddleware(rules="rules.yaml").install(FastMCP("shop"))
    """

    def __init__(
        self,
        rules: Rules = None,
        *,
        caller: Callable[[Context], str] | None = None,
        **options: Unpack[AbridgeOptions],
    ) -> None:
        self._new_state = new_states(rules, options)
        self._caller = _identity if caller is None else caller
        self._numbers = count(1)
        # By caller and client, which has limits of its own.
        self._driver_of = lru_cache(_MOST)(lambda *_: self._begin())
        self._latest: Driver | None = None

    def install(self, server: Server) -> Server:
        """Add this to a server of FastMCP 4 or of the official SDK 2, and return that server.

        What FastMCP's own `add_middleware` takes sees no result as it goes to the client. Raises
        TypeError for another object.
        """
        chain: Any = getattr(getattr(server, "_mcp_server", server), "middleware", None)
        if not isinstance(chain, list):
            kind = f"{type(server).__module__}.{type(server).__name__}"
            raise TypeError(f"a server of FastMCP 4 or of the MCP SDK 2 is expected, not {kind}")
        chain.append(self)
        return server

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer a request, or have the server answer it; called by the SDK."""
        if not isinstance(ctx, ServerRequestContext):
            raise TypeError("AbridgeMiddleware: call install(server) in place of add_middleware")
        if ctx.request_id is None:
            return await call_next(ctx)
        driver, scope = self._conversation(ctx)
        return await _Request(driver, next(self._numbers), ctx, call_next).answer(scope)

    def _conversation(self, ctx: Context) -> tuple[Driver, str]:
        """Return the driver for a request, and the scope of the answers that it may look into."""
        name = self._caller(ctx)
        caller = digest(name) if name else f"{ANYBODY}-{digest(_query(ctx))}"
        # It has no public name yet; FastMCP reads this one, too.
        connection, http = ctx.session._connection, ctx.request is not None
        old = _SSE_SESSION in getattr(ctx.request, "query_params", ())  # HTTP+SSE of 2024-11-05
        lasts = old or not http or connection.session_id is not None
        if lasts and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            if _STATE not in connection.state:
                connection.state[_STATE] = self._begin(), str(uuid.uuid4())
            driver, session = connection.state[_STATE]
            return driver, f"{caller}\n{session}"
        params = ctx.session.client_params
        client = "" if params is None else params.client_info.name[: message.LONGEST_NAME]
        return self._driver_of(caller, client), caller

    def _begin(self) -> Driver:
        session = Session(self._new_state())
        if self._latest is not None:
            info = self._latest.session.rules.peer
            session.rules.recall(PeerInfo(server=info.server, facts=info.facts))
        # Without processes, a long answer is shaped in a thread, while the event loop goes on.
        workers = Workers(processes=0)
        self._latest = Driver(session, workers)
        return self._latest


class _Request:
    """A request of a client, on its way to the server and back."""

    def __init__(self, driver: Driver, number: int, ctx: Context, call_next: CallNext) -> None:
        self._driver, self._ctx, self._call_next = driver, ctx, call_next
        self._number, self._id = number, b"%d" % number
        self._line = b""
        self._outcome: HandlerResult | MCPError = None

    async def answer(self, scope: str) -> HandlerResult:
        line = request(self._number, self._ctx.method, self._ctx.params)
        answer = b""
        try:
            routed = await self._driver.from_client(line, b"", scope)
            while not answer:
                for each in routed.to_client:
                    if "id" in members(each):
                        answer = each
                    else:
                        await self._ctx.session.send_tool_list_changed()
                if not answer:
                    routed = await self._go_on(routed, line)
        finally:
            self._driver.session.forget_pending([self._id])
        if answer == self._line:  # as the server gave it
            if isinstance(self._outcome, MCPError):
                raise self._outcome
            return self._outcome
        parts = members(answer)
        if "error" in parts:
            raise MCPError(**from_json(bytes(parts["error"])))
        result: dict[str, Any] = from_json(bytes(parts["result"]))
        return result

    async def _go_on(self, routed: Routed, line: bytes) -> Routed:
        """Have the server answer the request, or a question before it."""
        if routed.queries:
            return await self._ask(routed.queries[0])
        [raw] = routed.to_server
        ctx = self._ctx if raw == line else replace(self._ctx, params=params_of(raw))
        try:
            self._outcome = result = await self._call_next(ctx)
            self._line = message.result(self._id, Raw(dumped(result or {})))
        except MCPError as error:
            self._outcome = error
            self._line = dumped({"jsonrpc": "2.0", "id": self._number, "error": error.error})
        return await self._driver.from_server(self._line)

    async def _ask(self, query: Probe) -> Routed:
        """Ask the server what a guard, or the session itself, must know before the call."""
        own = members(query.raw)
        method = string_at(Raw(query.raw), "method") or ""
        ctx = replace(self._ctx, method=method, params=params_of(query.raw))
        try:
            with fail_after(self._driver.session.time_left([self._id])):
                result = await self._call_next(ctx)
        except Exception as error:
            cause = LATE if isinstance(error, TimeoutError) else raised(error)
            return await self._driver.fail([bytes(own["id"])], cause)
        line = message.result(own["id"], Raw(dumped(result or {})))
        return await self._driver.from_server(line)


def _identity(ctx: Context) -> str:
    """Return the credentials of a request over HTTP, and what else may identify its sender."""
    headers = getattr(ctx.request, "headers", None)
    if headers is None:
        return ""
    parts = identity(CIMultiDict(headers.items()), credentials=True)
    who = "\n".join([headers.get("authorization", ""), *parts]).strip()
    return who and f"{who}\n{_query(ctx)}"


def _query(ctx: Context) -> str:
    """Return the query of a request over HTTP: a server may tell by it whose the request is."""
    query = getattr(ctx.request, "query_params", None)
    pairs = [] if query is None else query.multi_items()
    return encode([pair for pair in pairs if pair[0] != _SSE_SESSION]).decode()
