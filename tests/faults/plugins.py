"""Python that rules name: a guard that does what a call says, a transform that takes its time."""

from collections.abc import Mapping
from time import monotonic
from typing import ClassVar

from mcp_abridge.document.tree import Slot
from mcp_abridge.query.call import Call
from mcp_abridge.ruleset.guard import Allow, Decision, Query, QueryResult, Respond
from mcp_abridge.transforms.base import Parameter
from msgspec import Struct


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


class Spin(Struct, frozen=True):
    """Does nothing for some seconds, and lets nobody else do anything meanwhile if it can."""

    name: ClassVar[str] = "spin"
    shorthand: ClassVar[str | None] = "seconds"
    window: ClassVar[bool] = False
    cuts: ClassVar[bool] = False
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    seconds: float

    def __call__(self, root: Slot, call: Call) -> None:
        """Spin."""
        end = monotonic() + self.seconds
        while monotonic() < end:
            pass
