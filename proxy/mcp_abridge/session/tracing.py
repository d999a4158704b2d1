"""The facts that a tracer is given: without them, nobody sees which program took the time.

Names follow W3C Trace Context; a session knows no more of it.
"""

from msgspec import Struct

TRACEPARENT = "traceparent"
"""The header, and the member of `_meta` (SEP-414), that name a trace and the caller's span."""


class Arrival(Struct):
    """The HTTP request by which a call arrived: its trace context, and facts for the call's span.

    `trace_id` is that of the client, or, once the call has a span, of this.
    """

    headers: dict[str, str] = {}
    facts: dict[str, str | int] = {}
    trace_id: str = ""
