"""What is noted of members that no element has; what views make of it is in test_view.py."""

from typing import Any

import pytest

from proxy.document.fuel import LITTLE, MOST, Fuel
from proxy.document.lookups import Lookups
from proxy.document.patterns import Expression
from proxy.errors import OutOfFuel


def looked(text: str, rows: list[Any], fuel: Fuel | None = None, *, guess: bool = True) -> Lookups:
    expression = Expression(text)
    lookups = Lookups(expression, guess=guess)
    lookups.corrected(expression.tree, rows, lambda value: value, fuel or Fuel())
    return lookups


@pytest.mark.fault(36, "inside")
def test_members_are_looked_for_as_long_as_the_fuel_lasts() -> None:
    text = " || ".join(f"a == b{number}" for number in range(100))
    fuel = Fuel()
    looked(text, [{"a": 1}] * 1000, fuel)
    assert 100_000 < MOST - fuel.remaining < 120_000
    with pytest.raises(OutOfFuel):
        looked(text, [{"a": 1}] * 1000, Fuel(LITTLE))


@pytest.mark.fault(36, "inside")
def test_of_very_many_missing_members_a_few_are_told() -> None:
    names = [f"member{number:04}" for number in range(200)]
    told = looked(" || ".join(f"{name} == 'x'" for name in names), [{"a": 1}]).slips
    assert len(told) == 3


def test_what_is_not_to_be_guessed_is_told() -> None:
    told = looked('status == "open"', [{"status": "open"}], guess=False).slips
    assert told == [
        "the document has no 'open'; members: status; did you mean the text 'open', "
        "in single quotes?"
    ]


def test_names_that_a_terminal_or_a_line_could_not_bear_are_left_out() -> None:
    [told] = looked("a == 'x'", [{"b\nc": 1, "d\x1b[31m": 2, "e": 3}]).slips
    assert told == "the document has no 'a'; members: e"
