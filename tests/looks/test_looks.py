"""A look at a document: what it states is so for the whole, each view that it offers works."""

from collections.abc import Hashable, Iterator
from typing import Any

import pytest
from hypothesis import given

from tests.looks.documents import BUDGETS, RESULTS, Sample, dumps
from tests.looks.offers import breaches, offers
from tests.looks.reading import Conversation
from tests.looks.statements import Falsehood, falsehoods

KNOWN = frozenset({"empty"})
"""The kinds of those falsehoods that have an example below, which fails."""


def findings(
    sample: Sample, budget: int, states: set[Hashable] | None = None, exempt: frozenset[str] = KNOWN
) -> Iterator[Falsehood]:
    """Yield what is false in the looks at a result and at the views that they offer."""
    conversation = Conversation(sample.result, budget)
    for look in conversation.first():
        if states is not None:
            labels = tuple(offer.label for offer in offers(look))
            states.add((type(sample.value), type(look.value), len(look.notes), *labels[:2]))
        if look.size > budget:
            yield Falsehood("size", "@", f"{look.size} of {budget}")
        every = [
            *falsehoods(sample.source(look.value), look, lossy=sample.lossy),
            *breaches(sample, conversation, look),
        ]
        yield from (each for each in every if each.kind not in exempt)


@given(RESULTS, BUDGETS)
def test_what_a_look_states_is_so_for_the_whole_and_what_it_offers_shows_what_it_says(
    sample: Sample, budget: int
) -> None:
    assert [*findings(sample, budget)] == []


def as_json(value: Any) -> Sample:
    return Sample((dumps(value),), value)


@pytest.mark.parametrize(
    ("sample", "budget", "kind"),
    [
        pytest.param(
            as_json({f"key{n}": {"name": "x" * n, "empty": {}} for n in range(40)}),
            *(600, "empty"),
            marks=pytest.mark.xfail(strict=True, reason="members that are cut look empty"),
        ),
        (as_json({f"key{n}": n for n in range(100)}), 300, "remark"),
    ],
)
def test_a_falsehood_is_told_no_more(sample: Sample, budget: int, kind: str) -> None:
    every = findings(sample, budget, exempt=frozenset())
    assert [each for each in every if each.kind == kind] == []
