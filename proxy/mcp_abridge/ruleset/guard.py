"""The interface of guards: users' code that decides on a call before the server receives it."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from msgspec import Struct

from mcp_abridge.query.call import Call
from mcp_abridge.transforms.base import Parameter

FACTS = "guard"
"""The argument that holds the `facts` of a guard for the transforms of its rule."""


class Allow(Struct, frozen=True):
    """Let the call go to the server.

    `arguments`, by dotted name, override the arguments that are sent; msgspec's UNSET removes one.
    `facts` are for the rule's transforms, which read them as the argument `guard`; neither the
    client nor the server sees it.
    """

    arguments: dict[str, Any] = {}
    facts: dict[str, Any] = {}


class Respond(Struct, frozen=True):
    """Answer the call with `document`: plain values, or a text. The server never receives the call.

    If `error` is true, the result is marked `isError`. A tool with an outputSchema gets an
    object as structuredContent too.
    """

    document: Any
    error: bool = False


class Query(Struct, frozen=True):
    """Call a `tool` of the same server first; the guard then runs again with the QueryResult.

    If no response arrives within `seconds`, the QueryResult is a failure.
    """

    tool: str
    arguments: dict[str, Any] = {}
    seconds: float = 10.0


class QueryResult(Struct, frozen=True):
    """The `document` of the response to a Query as plain values, or why there is none."""

    document: Any = None
    failure: str | None = None


Decision = Allow | Respond | Query


class Guard(Protocol):
    """Decides on a call: a frozen Struct whose fields are its options in YAML.

    It may raise any exception: the call is then refused, unless the rule's `on_failure` is `pass`.
    It must not block: other calls of the session wait for it.
    """

    name: ClassVar[str]
    shorthand: ClassVar[str | None]
    """The option that takes the YAML value if that is not a mapping of options."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The arguments that the guard adds, by dotted name; never sent to the server."""

    def __call__(self, call: Call, result: QueryResult | None) -> Decision:
        """Decide on `call`, whose arguments are complete; `result` is that of a Query before."""


def run_guard(guard: Guard, call: Call, result: QueryResult | None) -> Decision:
    """Return the decision of `guard`; raises its exceptions, TypeError or ValueError if invalid.

    >>> run_guard(lambda call, result: Query("status"), Call("t"), QueryResult("ready"))
    Traceback (most recent call last):
    ValueError: it asks a second time
    """
    decision: object = guard(call, result)
    if isinstance(decision, Allow | Respond):
        return decision
    if not isinstance(decision, Query):
        raise TypeError(f"{decision!r} is no decision")
    if result is not None:
        raise ValueError("it asks a second time")
    if not 0 <= decision.seconds < float("inf"):
        raise ValueError(f"it gives the server {decision.seconds!r} seconds")
    return decision
