"""The calls of the soak: whatever a rule, a server or a client may make of one, mixed."""

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

from msgspec import Struct

from tests.soak.answers import SIZES

Arguments = dict[str, Any]


class Call(Struct, frozen=True):
    """One call; its answer has `wanted` in it. One that is `cancelled` gets none."""

    tool: str
    arguments: Arguments
    wanted: bytes
    cancelled: bool = False
    progress: bool = False


class Kind(Struct, frozen=True):
    """A kind of call: how many of a hundred are of it, and how one is made."""

    share: int
    tool: str
    wanted: bytes
    make: Callable[[Random], Arguments]
    cancelled: bool = False
    progress: bool = False

    def call(self, random: Random) -> Call:
        return Call(self.tool, self.make(random), self.wanted, self.cancelled, self.progress)


def sized(random: Random, least: int = 0) -> Arguments:
    # Of small documents there are more, as everywhere.
    size = min(random.randrange(least, len(SIZES)), random.randrange(least, len(SIZES)))
    return {"size": size}


def fresh(random: Random, least: int = 3) -> Arguments:
    """Name a document that nobody has asked for before: what is kept of it is its own."""
    return {**sized(random, least), "key": random.getrandbits(64)}


def again(random: Random, **more: Any) -> Arguments:
    """Name one of a few documents that are asked for over and over."""
    return {"size": random.randrange(4, 8), "key": random.randrange(8), **more}


PAGE, CUT = b"pagination", b"totalLength"
KINDS = (
    Kind(8, "rows", PAGE, fresh),
    Kind(6, "rows", PAGE, lambda random: again(random)),
    Kind(8, "rows", PAGE, lambda random: again(random, offset=random.randrange(1, 40))),
    Kind(5, "note", CUT, fresh),
    Kind(7, "note", CUT, lambda random: again(random, startIndex=random.randrange(1, 9000))),
    Kind(10, "both", b"structuredContent", sized),
    Kind(8, "long", b"_abridged", fresh),
    Kind(8, "long", b"Instruction", lambda random: again(random, view="rows[1:4]")),
    Kind(2, "long", b"write a JMESPath", lambda random: again(random, view="rows[")),
    Kind(2, "once", PAGE, lambda random: {**fresh(random), "offset": 6}),
    Kind(13, "plain", b'"plain ', sized),
    Kind(3, "checked", b'\\"count\\":7', lambda random: {}),
    Kind(2, "checked", b"breaks its contract", lambda random: {"wrong": True}),
    Kind(2, "bounded", b"greater than the maximum", lambda random: {"most": 11}),
    Kind(2, "bounded", b"within its bounds", lambda random: {"most": 10}),
    Kind(3, "failing", b'\\"rows\\":7', lambda random: {}),
    Kind(3, "broken", b"FIRE", lambda random: {}),
    Kind(2, "hidden", b"Unknown tool", lambda random: {}),
    Kind(2, "nowhere", b"there is no nowhere", lambda random: {}),
    Kind(3, "slow", b"done", lambda random: {}, progress=True),
    Kind(1, "never", b"", lambda random: {}, cancelled=True),
)


LARGEST = [Call("both", {"size": len(SIZES) - 1}, b"structuredContent")] * 5
"""What a sidecar shapes in processes of its own: asked at once, it has as many as it ever will."""


def calls(random: Random, first: Iterable[Call] = ()) -> Callable[[], Call]:
    """Return what gives the next call, without end: some before all others."""
    shares = [kind.share for kind in KINDS]

    def endless() -> Iterator[Call]:
        yield from first
        while True:
            yield random.choices(KINDS, shares)[0].call(random)

    return endless().__next__
