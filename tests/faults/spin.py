"""A transform that takes its time, all of it in Python."""

from collections.abc import Mapping
from time import monotonic
from typing import ClassVar

from msgspec import Struct

from proxy.document.tree import Slot
from proxy.transforms.base import Call, Parameter, Schema


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

    def reshape(self, schema: Schema) -> Schema | None:
        """Nothing changes."""
        return schema
