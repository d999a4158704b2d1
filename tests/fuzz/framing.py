"""Everything that cuts bytes into messages: lines, event streams, envelopes, ends of pipes."""

from collections.abc import Hashable, Iterator
from typing import Any

from msgspec.structs import asdict

from tests.fuzz import envelopes, events, outlets, streams
from tests.fuzz.dice import Dice

# How many of a hundred inputs are of each kind.
KINDS: tuple[tuple[Any, Any, int], ...] = (
    (streams, streams.stream, 42),
    (envelopes, envelopes.said, 36),
    (events, events.stream, 20),
    (outlets, outlets.talk, 2),
)


class Framing:
    """The fuzzer."""

    name = "framing"

    def try_one(self, seed: int, index: int) -> Iterator[Hashable]:
        """Try an input of one of the kinds."""
        kind, given = made(seed, index)
        for state in kind.check(given):
            yield kind.__name__, state

    def shown(self, seed: int, index: int) -> str:
        """Return Python that tries the same input."""
        kind, given = made(seed, index)
        held = ",\n    ".join(f"{name}={value!r}" for name, value in asdict(given).items())
        name = type(given).__name__
        return f"from {kind.__name__} import {name}, check\nlist(check({name}(\n    {held},\n)))"


def made(seed: int, index: int) -> tuple[Any, Any]:
    """Return the input of this number, with the module that it is for."""
    dice = Dice.of(seed, "framing", index)
    chosen = dice.below(100)
    for kind, make, share in KINDS:
        chosen -= share
        if chosen < 0:
            return kind, make(dice)
    raise AssertionError
