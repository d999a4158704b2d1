"""Random documents, looked at within random budgets: what a look says, and the views it offers.

Hypothesis draws the documents (tests/looks/documents.py), a few for each input, and shrinks the one
that fails.
"""

from collections.abc import Hashable, Iterator

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from tests.fuzz.fuzzer import Stuck, Wrong
from tests.looks.documents import BUDGETS, RESULTS, Sample
from tests.looks.test_looks import findings

EACH = 10
"""How many documents are drawn for each input."""

_QUICKLY = (Phase.generate,)
_SMALLEST = (Phase.generate, Phase.shrink)


def check_one(seed: int, index: int) -> Iterator[Hashable]:
    states: set[Hashable] = set()
    try:
        _check(states, seed, index, _QUICKLY)
    except Wrong as first:
        try:
            _check(states, seed, index, _SMALLEST)
        except Stuck:
            raise first from None
    yield from states


def _check(states: set[Hashable], seed: int, index: int, phases: tuple[Phase, ...]) -> None:
    @seeded(seed * 1_000_003 + index)
    @settings(
        max_examples=EACH,
        phases=phases,
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        suppress_health_check=[*HealthCheck],
    )
    @given(RESULTS, BUDGETS)
    def check(sample: Sample, budget: int) -> None:
        for each in findings(sample, budget, states=states):
            raise Wrong(str(each), f"\nbudget {budget}, result {sample.result}")

    check()
