"""A guard that does what the arguments of a call say: what it asks first, what it does then."""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from proxy.ruleset.guard import Allow, Decision, Query, QueryResult, Respond
from proxy.transforms.base import Call, Parameter


class Gate(Struct, frozen=True):
    """Asks `check` with the call's `how`, and then does what its `then` says."""

    name: ClassVar[str] = "gate"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    def __call__(self, call: Call, answer: QueryResult | None) -> Decision:
        """Decide on a call; without `how` nothing is asked."""
        how, then = call.argument("how"), call.argument("then")
        if answer is None and how is not None:
            return Query("check", {"how": how}, call.argument("seconds") or 20.0)
        if then == "pass":
            return Allow()
        return Respond("no question" if answer is None else answer.failure or answer.document)
