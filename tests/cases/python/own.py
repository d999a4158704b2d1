"""Transforms and guards that rule files name, with options of many kinds."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from mcp_abridge.plugin import (
    Allow,
    Call,
    Decision,
    Parameter,
    Path,
    Query,
    QueryResult,
    Respond,
    Slot,
)
from msgspec import Meta, Struct


class Noise(Struct, frozen=True):
    name: ClassVar[str] = "noise"
    shorthand: ClassVar[str | None] = "words"
    window: ClassVar[bool] = False
    cuts: ClassVar[bool] = False

    words: tuple[str, ...] = ()
    at: Path | None = None
    fails: Literal["at once", "later", ""] = ""
    most: Annotated[int, Meta(ge=1)] = 1

    def __post_init__(self) -> None:
        if "none" in self.words:
            raise ValueError("'words' must not hold 'none'")
        if self.fails == "at once":
            raise KeyError("no such thing")

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        if self.fails:
            raise RuntimeError("not now")
        return {}

    def __call__(self, root: Slot, call: Call) -> None:
        root.set(list(self.words))


class Gate(Struct, frozen=True):
    name: ClassVar[str] = "gate"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {"strict": Parameter({"type": "boolean"})}

    level: int = 1

    def __call__(self, call: Call, result: QueryResult | None) -> Decision:
        return Allow()


class Odd(Struct, frozen=True):
    name: ClassVar[str] = "odd"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {"a": Parameter({})}

    def __call__(self, call: Call, result: QueryResult | None) -> Decision:
        return Allow()


class Careful(Struct, frozen=True):
    """Lets a call go on only if the server allows it."""

    name: ClassVar[str] = "careful"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    def __call__(self, call: Call, result: QueryResult | None) -> Decision:
        if result is None:
            return Query("may", {"path": call.argument("path")})
        if result.failure is not None:
            call.warn("not asked", result.failure)
            return Allow({"careful": True})
        if result.document == "yes":
            return Allow(facts={"asked": "may"})
        return Respond({"status": "blocked"})


class Strange(Noise, frozen=True):
    name: ClassVar[str] = "strange"
    kinds: set[str] = set()
