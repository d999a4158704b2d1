"""A guard that does what the arguments of a call say: what it asks first, what it does then."""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from proxy.ruleset.guard import Allow, Decision, Query, QueryResult, Respond
from proxy.transforms.base import Call, Parameter


class Gate(Struct, frozen=True):
    """Calls `fault` with what the call `says`; allows the call, or else responds with the answer.

    The call has `allow` if it is allowed then.
    """

    name: ClassVar[str] = "gate"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    def __call__(self, call: Call, answer: QueryResult | None) -> Decision:
        """Decide on a call."""
        if answer is None:
            return Query("fault", {"says": call.argument("asks")}, 20.0)
        return Allow() if call.argument("allow") else Respond(answer.failure or answer.document)
