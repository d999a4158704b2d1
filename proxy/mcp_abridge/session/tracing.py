"""The calls as a tracer follows them: without it, nobody sees which program took the time.

Names are those of W3C Trace Context; a session knows no more of it.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Raw, Struct

from mcp_abridge.storage.meter import Row

TRACEPARENT = "traceparent"
"""The header, and the member of `_meta` (SEP-414), that name a trace and the caller's span."""

CONTEXT = (TRACEPARENT, "tracestate", "baggage")
"""All the headers, and members of `_meta`, of a trace context."""

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""OpenTelemetry's boundaries for the durations of MCP, in seconds."""


class Arrival(Struct):
    """The HTTP request by which a call arrived: its trace context, and facts for the call's span.

    `peer` is the address of the client, `http` the version of HTTP, `session` a digest of the
    session's id. `trace_id` is that of the client, or, once the call has a span, of this.
    """

    headers: dict[str, str] = {}
    peer: str | None = None
    http: str = ""
    route: str = ""
    session: str = ""
    protocol: str | None = None
    trace_id: str = ""


class CallTrace(Protocol):
    """One call, from its request to its answer; none of its methods raises."""

    def forward(self, raw: bytes) -> bytes:
        """Return a line for the server with the trace context of the call; its time begins."""

    def respond(self, raw: bytes) -> None:
        """Record the server's response."""

    def end(self, raw: bytes, row: Row | None = None, *, view: bool = False) -> None:
        """Record the answer to the client, empty if it was streamed, and how it is counted.

        Only the first answer counts. A call without one ends when nothing refers to it any more.
        """


Tracer = Callable[[str, str, bytes, Raw, Arrival | None], CallTrace | None]
"""Begins the trace of a request, by its method, the name of the tool or prompt or the URI, its id
and `_meta`: the child of the client's span."""
