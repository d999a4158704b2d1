"""What a guard is: code outside the project that decides what becomes of a call on its way in.

A rule file names it under `guards:` and a rule puts it before its calls with `guard:`. It is asked
once for each call that would go to the server, after the arguments were checked and completed; if
it wants to ask the server something first, the call is held, and the guard is asked once more with
what was found.

    >>> class Polite(Struct, frozen=True):
    ...     name: ClassVar[str] = "polite"
    ...     shorthand: ClassVar[str | None] = None
    ...     parameters: ClassVar[Mapping[str, Parameter]] = {}
    ...
    ...     word: str = "please"
    ...
    ...     def __call__(self, call: Call, found: QueryResult | None) -> Decision:
    ...         if call.argument("tone") == self.word:
    ...             return Allow()
    ...         return Respond(f"say {self.word!r}", error=True)
    >>> Polite()(Call("delete_note", {"tone": "now"}), None)
    Respond(document="say 'please'", error=True)
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from msgspec import Struct

from proxy.transforms.base import Call, Parameter

FACTS = "guard"
"""The argument under which the transforms of a rule find what its guard has found."""


class Allow(Struct, frozen=True):
    """Let the call go to the server.

    `arguments`, by dotted name, are set over those that are sent; UNSET of msgspec takes one away.
    `facts` are for the rule's transforms, which find them as the argument `guard`
    (`{argument: guard.warnings}`, `argument('guard').warnings`). Nothing that a client says can
    stand there, and the server never sees them.
    """

    arguments: dict[str, Any] = {}
    facts: dict[str, Any] = {}


class Respond(Struct, frozen=True):
    """Answer the call with `document`: plain values, or a text. The server never sees it.

    Where it is an `error`, the result is marked `isError`. A tool with an outputSchema gets an
    object as structuredContent too.
    """

    document: Any
    error: bool = False


class Query(Struct, frozen=True):
    """Call a `tool` of the same server first; the guard is asked again with what was found.

    After `seconds` without an answer that is what was found.
    """

    tool: str
    arguments: dict[str, Any] = {}
    seconds: float = 10.0


class QueryResult(Struct, frozen=True):
    """What came of an Ask: the `document` of the answer as plain values, or a `failure`.

    A failure says why there is no document: the words of an error, or what became of the question.
    """

    document: Any = None
    failure: str | None = None


Decision = Allow | Respond | Query


class Guard(Protocol):
    """Decides on a call: a frozen Struct whose fields are its options in YAML.

    It may raise anything: the call is then refused, unless the rule's `on_failure` is `pass`. It
    must not wait for anything: other calls of the session wait for it.
    """

    name: ClassVar[str]
    shorthand: ClassVar[str | None]
    """The option that is meant where the YAML value is not a mapping of options."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The arguments it adds to the tool, by dotted name; they never reach the server."""

    def __call__(self, call: Call, found: QueryResult | None) -> Decision:
        """Decide on `call`, whose arguments are complete.

        `found` is None the first time, and what came of the question after an Ask.
        """


def decided(guard: Guard, call: Call, found: QueryResult | None) -> Decision:
    """Return what `guard` decides; raises whatever it does, and for what is no decision.

    >>> decided(lambda call, found: Query("status"), Call("t"), QueryResult("ready"))
    Traceback (most recent call last):
    ValueError: it asks a second time
    """
    decision: object = guard(call, found)
    if isinstance(decision, Allow | Respond):
        return decision
    if not isinstance(decision, Query):
        raise TypeError(f"{decision!r} is no decision")
    if found is not None:
        raise ValueError("it asks a second time")
    if not 0 <= decision.seconds < float("inf"):
        raise ValueError(f"it gives the server {decision.seconds!r} seconds")
    return decision
