"""Two callers of one server: what the one is answered, told, kept and refused is not the other's.

`make callers` does for minutes what this does for seconds; both try CALLERS_PROGRAM if it is set.
"""

import sys
from pathlib import Path

import pytest

from tests.callers.play import Play, Step, steps
from tests.callers.roads import (
    ALICE,
    BOB,
    COMMAND,
    HANDSHAKE,
    ROADS,
    SSE,
    STATELESS,
    WRAPPED,
    WRAPPED_URL,
    opened,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")

# A seed for each road, and a store for it.
ORDERS = [(road, store, seed) for seed, road in enumerate(ROADS) for store in ROADS[road][-1:]]


def played(road: str, store: str, folder: Path, *scene: Step, seed: int = 0) -> Play:
    """Do the steps of a scene, or random ones."""
    with opened(road, store, folder) as place:
        play = Play(place)
        play.run(scene or steps(place, seed, 60))
    return play


@pytest.mark.fault(10, "stdio")
@pytest.mark.fault(14, "http")
@pytest.mark.parametrize(("road", "store", "seed"), ORDERS)
def test_neither_of_two_callers_ever_sees_the_others_secret(
    road: str, store: str, seed: int, tmp_path: Path
) -> None:
    play = played(road, store, tmp_path, seed=seed)
    assert play.findings == []
    assert play.shown.total() > 15, "they hardly see their own"


@pytest.mark.parametrize("fault", ["half", "rest"])
def test_a_half_answer_never_carries_the_next_callers_answer(fault: str, tmp_path: Path) -> None:
    scene = (Step(ALICE, "list", STATELESS), Step(ALICE, "read", STATELESS, fault))
    play = played(COMMAND, "memory", tmp_path, *scene, Step(BOB, "read", STATELESS))
    assert play.findings == []
    assert play.shown["read"], "the next caller is not answered"


def test_a_late_log_line_never_comes_to_the_next_caller(tmp_path: Path) -> None:
    scene = (Step(ALICE, "say", STATELESS, "late"), Step(BOB, "read", STATELESS))
    assert played(COMMAND, "memory", tmp_path, *scene).findings == []


@pytest.mark.parametrize("road", [WRAPPED, WRAPPED_URL])
def test_a_stored_answer_never_goes_to_another_account(road: str, tmp_path: Path) -> None:
    scene = [
        Step(who, action, HANDSHAKE)
        for who, action in ((ALICE, "read"), (ALICE, "view"), (BOB, "the other's view"))
    ]
    play = played(road, "folder", tmp_path, *scene)
    assert play.findings == []
    assert play.shown["view"] == 1


TRESPASSES = [(HANDSHAKE, what) for what in ("view", "call", "cancel", "stream", "resume", "end")]


@pytest.mark.parametrize("store", ["memory", "redis"])
def test_the_session_of_another_token_does_not_exist(store: str, tmp_path: Path) -> None:
    scene = []
    for era, what in (*TRESPASSES, *((SSE, what) for what in ("view", "call", "cancel"))):
        scene += [Step(ALICE, action, era) for action in ("read", "say")]
        scene.append(Step(BOB, f"{what} in the other's session", era))
    play = played(COMMAND, store, tmp_path, *scene)
    assert play.findings == []
    assert len(play.combinations) == len(TRESPASSES) + 3 + 4


def test_a_session_of_ones_own_does_not_resume_anothers_stream(tmp_path: Path) -> None:
    scene = (Step(ALICE, "say", HANDSHAKE), Step(ALICE, "resume", HANDSHAKE))
    other = Step(BOB, "resume the other's stream", HANDSHAKE)
    play = played(COMMAND, "memory", tmp_path, *scene, other)
    assert play.findings == []
    assert play.shown["resume"] == 1
