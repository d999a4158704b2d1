"""Random sessions: what becomes of each request, whoever says what in whichever order."""

from collections.abc import Hashable, Iterator

from tests.fuzz.actions import step
from tests.fuzz.dice import Dice
from tests.fuzz.world import World

STEPS = 60
_SHOWN = 30  # of the last lines, beside a finding


def check_one(seed: int, index: int) -> Iterator[Hashable]:
    dice = Dice.of(seed, "trace", index)
    world = World(dice)
    try:
        for _ in range(dice.within(4, STEPS)):
            yield step(world, dice)
        world.end()
    except Exception as error:
        error.add_note("\n".join(world.history[-_SHOWN:]))
        raise
