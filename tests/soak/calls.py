"""The calls of the soak: whatever a rule, a server or a client may make of one, mixed."""

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

from msgspec import Struct

from tests.soak.server import SIZES

Arguments = dict[str, Any]


class Call(Struct, frozen=True):
    """One call; its answer has `expected` in it. One that is `cancelled` gets none."""

    tool: str
    arguments: Arguments
    expected: bytes
    cancelled: bool = False
    progress: bool = False


def sized(random: Random, least: int = 0) -> Arguments:
    # Of small documents there are more, as everywhere.
    size = min(random.randrange(least, len(SIZES)), random.randrange(least, len(SIZES)))
    return {"size": size}


def fresh(random: Random, **more: Any) -> Arguments:
    """Name a document that nobody has asked for before: what is kept of it is its own."""
    return {**sized(random, 3), "key": random.getrandbits(64), **more}


def again(random: Random, **more: Any) -> Arguments:
    """Name one of a few documents that are asked for over and over."""
    return {"size": random.randrange(4, 8), "key": random.randrange(8), **more}


PAGE, CUT = b"pagination", b"totalLength"

# How many of a hundred calls are of a kind, and how one is made.
KINDS: tuple[tuple[int, Callable[[Random], Call]], ...] = (
    (8, lambda random: Call("rows", fresh(random), PAGE)),
    (6, lambda random: Call("rows", again(random), PAGE)),
    (8, lambda random: Call("rows", again(random, offset=random.randrange(1, 40)), PAGE)),
    (5, lambda random: Call("note", fresh(random), CUT)),
    (7, lambda random: Call("note", again(random, startIndex=random.randrange(1, 9000)), CUT)),
    (10, lambda random: Call("both", sized(random), b"structuredContent")),
    (8, lambda random: Call("long", fresh(random), b"_abridged")),
    (8, lambda random: Call("long", again(random, view="rows[1:4]"), b"Instruction")),
    (2, lambda random: Call("long", again(random, view="rows["), b"write a JMESPath")),
    (2, lambda random: Call("once", fresh(random, offset=6), PAGE)),
    (13, lambda random: Call("plain", sized(random), b'"plain ')),
    (3, lambda random: Call("checked", {}, b'\\"count\\":7')),
    (2, lambda random: Call("checked", {"wrong": True}, b"breaks its contract")),
    (2, lambda random: Call("bounded", {"most": 11}, b"greater than the maximum")),
    (2, lambda random: Call("bounded", {"most": 10}, b"within its bounds")),
    (3, lambda random: Call("failing", {}, b'\\"rows\\":7')),
    (3, lambda random: Call("broken", {}, b"FIRE")),
    (2, lambda random: Call("hidden", {}, b"Unknown tool")),
    (2, lambda random: Call("nowhere", {}, b"there is no nowhere")),
    (3, lambda random: Call("slow", {}, b"done", progress=True)),
    (1, lambda random: Call("never", {}, b"", cancelled=True)),
)

LARGEST = [Call("both", {"size": len(SIZES) - 1}, b"structuredContent")] * 5
"""What a sidecar shapes in processes of its own: asked at once, it has as many as it ever will."""


def calls(random: Random, first: Iterable[Call] = ()) -> Callable[[], Call]:
    """Return a function that gives the next call, without end: some before all others."""
    shares, kinds = zip(*KINDS, strict=True)

    def endless() -> Iterator[Call]:
        yield from first
        while True:
            yield random.choices(kinds, shares)[0](random)

    return endless().__next__
