"""Two callers of one server: what the one is answered, told, kept and refused is not the other's.

`make callers` does for minutes what this does for seconds; both try CALLERS_PROGRAM if it is set.
"""

import sys
from pathlib import Path

import pytest

from tests.callers.play import TRESPASSES, Play, Step, steps
from tests.callers.roads import (
    ALICE,
    BOB,
    COMMAND,
    FORWARD,
    HANDSHAKE,
    INSIDE,
    SSE,
    STATELESS,
    URL,
    WRAPPED,
    WRAPPED_URL,
    opened,
)
from tests.faults.scale import scaled

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")

# Each place of an answer, and each road once.
ORDERS = (
    (WRAPPED_URL, "folder"),
    (COMMAND, "redis of two replicas"),
    (FORWARD, "memory"),
    (INSIDE, "memory"),
    (WRAPPED, "folder"),
    (COMMAND, "memory"),
    (URL, "redis of two replicas"),
)


def outcome(road: str, store: str, folder: Path, *scene: Step) -> Play:
    """Do the steps of a scene, or random ones."""
    with opened(road, store, folder) as place:
        play = Play(place)
        play.run(scene or steps(place, seed=1, number=scaled(60, 400)))
    return play


@pytest.mark.fault(10, "stdio")
@pytest.mark.fault(14, "http")
@pytest.mark.parametrize(("road", "store"), ORDERS[: scaled(4, 7)])
def test_neither_of_two_callers_ever_sees_the_others_secret(
    road: str, store: str, tmp_path: Path
) -> None:
    play = outcome(road, store, tmp_path)
    assert play.findings == []
    assert play.sightings.total() > 10, "they hardly see their own"


@pytest.mark.parametrize("fault", ["half", "rest"][: scaled(1, 2)])
def test_a_half_answer_never_carries_the_next_callers_answer(fault: str, tmp_path: Path) -> None:
    scene = (Step(ALICE, "list", STATELESS), Step(ALICE, "read", STATELESS, fault))
    play = outcome(COMMAND, "memory", tmp_path, *scene, Step(BOB, "read", STATELESS))
    assert play.findings == []
    assert play.sightings["read"] == 1, "the next caller is not answered"


def test_the_last_words_of_a_server_are_told_only_to_the_caller_whom_it_served(
    tmp_path: Path,
) -> None:
    scene = (Step(ALICE, "read", STATELESS), Step(BOB, "read", STATELESS, "dies"))
    assert outcome(COMMAND, "memory", tmp_path, *scene).findings == []


@pytest.mark.parametrize("action", ["read", "stream"][: scaled(1, 2)])
def test_a_late_log_line_never_comes_to_the_next_caller(action: str, tmp_path: Path) -> None:
    scene = (Step(ALICE, "say", STATELESS, "late"), Step(BOB, action, STATELESS))
    again = Step(ALICE, "list", STATELESS)
    assert outcome(COMMAND, "memory", tmp_path, *scene, again).findings == []


PLACES = (
    (WRAPPED, "folder", HANDSHAKE),
    (WRAPPED_URL, "folder", HANDSHAKE),
    (COMMAND, "memory", STATELESS),
    (COMMAND, "memory", HANDSHAKE),
    (URL, "memory", HANDSHAKE),
    (URL, "memory", STATELESS),
    (INSIDE, "memory", STATELESS),
    (INSIDE, "memory", HANDSHAKE),
)
KINDS = (("read", "view"), ("resource", "resource's view"))
# Each second place with one kind, or each place with both.
SCENES = [
    (*place, *KINDS[(at + more) % 2])
    for at, place in enumerate(PLACES[:: scaled(2, 1)])
    for more in range(scaled(1, 2))
]


@pytest.mark.parametrize(("road", "store", "era", "kind", "view"), SCENES)
def test_a_stored_answer_never_goes_to_another_account(
    road: str, store: str, era: str, kind: str, view: str, tmp_path: Path
) -> None:
    mine = (Step(ALICE, action, era) for action in (kind, view))
    play = outcome(road, store, tmp_path, *mine, Step(BOB, f"the other's {view}", era))
    assert play.findings == []
    assert play.sightings[view] == 1, "whose it is cannot see it either"


@pytest.mark.parametrize("store", ["redis", "memory"][: scaled(1, 2)])
def test_the_session_of_another_token_does_not_exist(store: str, tmp_path: Path) -> None:
    scene = []
    for what in TRESPASSES:
        scene += [Step(ALICE, action, HANDSHAKE) for action in ("read", "say")]
        scene.append(Step(BOB, f"{what} in the other's session", HANDSHAKE))
    play = outcome(COMMAND, store, tmp_path, *scene)
    assert play.findings == []
    assert play.combinations.total() == len(scene)


def test_the_stream_of_another_token_does_not_exist(tmp_path: Path) -> None:
    scene = []
    for what in TRESPASSES[:3]:
        scene += [Step(ALICE, action, SSE) for action in ("read", "say")]
        scene.append(Step(BOB, f"{what} in the other's session", SSE))
    play = outcome(URL, "memory", tmp_path, *scene)
    assert play.findings == []
    assert play.combinations.total() == len(scene)


def test_a_session_of_ones_own_does_not_resume_anothers_stream(tmp_path: Path) -> None:
    mine = (Step(ALICE, action, HANDSHAKE) for action in ("say", "resume"))
    other = Step(BOB, "resume the other's stream", HANDSHAKE)
    play = outcome(COMMAND, "memory", tmp_path, *mine, other)
    assert play.findings == []
    assert play.sightings["resume"] == 1, "whose it is cannot resume it either"
