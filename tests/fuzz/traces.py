"""Random sessions: what becomes of each request, whoever says what in whichever order.

Most are sessions alone, whose outputs are carried out in any order. Some have the driver of the
sidecar around them, in an event loop, and a few are the wrapper as a process.
"""

from collections.abc import Hashable, Iterator, Sequence

from tests.fuzz import driving, relaying
from tests.fuzz.actions import step
from tests.fuzz.dice import Dice
from tests.fuzz.fuzzer import raised
from tests.fuzz.world import World

STEPS = 60
DRIVEN, RELAYED = 100, 500  # each how many-th trace is one of these


class Traces:
    """The fuzzer."""

    name = "traces"

    def try_one(self, seed: int, index: int) -> Iterator[Hashable]:
        """Go through one trace."""
        if index % RELAYED == RELAYED - 1:
            yield from relaying.check(seed, index)
        elif index % DRIVEN == DRIVEN - 1:
            yield from driving.check(seed, index)
        else:
            yield from trace(seed, index, range(steps(seed, index)))

    def shown(self, seed: int, index: int) -> str:
        """Return Python that goes through as few steps of the trace as show the same."""
        for every, kind in ((RELAYED, relaying), (DRIVEN, driving)):
            if index % every == every - 1:
                return f"from {kind.__name__} import check\nlist(check({seed}, {index}))"
        kept = shortest(seed, index)
        said = "\n".join(
            f"# {what} {by.decode()}{raw!r}" for what, by, raw in told(seed, index, kept)
        )
        return f"from tests.fuzz.traces import trace\nlist(trace({seed}, {index}, {kept}))\n{said}"


def steps(seed: int, index: int) -> int:
    """Return of how many steps a trace is."""
    return Dice.of(seed, "steps", index).within(4, STEPS)


def trace(seed: int, index: int, chosen: Sequence[int]) -> Iterator[Hashable]:
    """Go through some steps of a trace, each by a die of its own. Raises Wrong."""
    world = World(Dice.of(seed, "world", index))
    yield from _through(world, seed, index, chosen)


def told(seed: int, index: int, chosen: Sequence[int]) -> list[tuple[str, bytes, bytes]]:
    """Return what was said and heard in some steps of a trace."""
    world = World(Dice.of(seed, "world", index))
    raised(lambda: list(_through(world, seed, index, chosen)))
    return world.history


def shortest(seed: int, index: int) -> list[int]:
    """Return as few steps of a trace as show the same as all of them."""
    kept = list(range(steps(seed, index)))
    said = _said(seed, index, kept)
    size = len(kept) // 2
    while size and said is not None:
        for start in range(len(kept) - size, -1, -size):
            fewer = kept[:start] + kept[start + size :]
            if _said(seed, index, fewer) == said:
                kept = fewer
        size //= 2
    return kept


def _through(world: World, seed: int, index: int, chosen: Sequence[int]) -> Iterator[Hashable]:
    for number in chosen:
        yield step(world, Dice.of(seed, "step", index, number))
    world.end()


def _said(seed: int, index: int, chosen: Sequence[int]) -> str | None:
    """Return the first line of what steps show, None where they show nothing."""
    said = raised(lambda: list(trace(seed, index, chosen)))
    if said is None or not said.startswith("Traceback"):
        return None if said is None else said.partition(":")[0]
    return said.strip().splitlines()[-1][:60]
