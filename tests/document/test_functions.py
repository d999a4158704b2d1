"""What the functions of expressions cost; what they give is compared in test_interpreter.py."""

from typing import Any

import pytest

from proxy.document.fuel import MOST, Fuel
from proxy.document.functions import MeteredFunctions
from proxy.document.patterns import Expression
from proxy.errors import OutOfFuel, Refusal


def burned(text: str, value: Any) -> int:
    fuel = Fuel()
    Expression(text).bind({}, fuel)(value)
    return MOST - fuel.left


@pytest.mark.parametrize(
    ("text", "value", "less", "more"),
    [
        ("type(@)", 1, 4, 4),
        ("reverse(@)", list(range(1000)), 500, 600),
        ("reverse(@)", "é" * 1000, 250, 260),
        ("join('', @)", ["x" * 100] * 100, 600, 700),
        ("join('', @)", ["é" * 100] * 100, 2500, 2600),
        ("join(`é`, @)", ["x"] * 1000, 500, 700),
        ("to_string(@)", ["x" * 100] * 100, 2500, 2700),
        ("to_string(@)", [[[1]]], 8, 20),
        ("to_string(@)", {"k" * 1000: 1}, 250, 270),
        ("to_string(@)", 10**3990, 400, 450),
        ("to_string(@)", "x" * 10_000, 1, 10),
        ("to_number(@)", "9" * 4000, 125, 135),
        ("to_array(@)", 1, 8, 8),
        ("contains(@, `7`)", [1] * 1000, 125, 140),
        ("contains(@, `[[7]]`)", [[[1, 2]]] * 1000, 5000, 5200),
        ("contains(@, 'ab')", "a" * 100_000, 700, 900),
        ("contains([0], [1])", ["a" * 20_000, "b" * 99], 1900, 2200),
        ("sum(@)", [1] * 1000, 1000, 1200),
        ("abs(@)", -(10**3990), 100, 120),
        ("max(@)", ["x" * 4096] * 1000, 1000, 1200),
        ("sort(@)", [1] * 1000, 1200, 1500),
        ("sort(@)", ["x" * 4096] * 1000, 11_000, 12_000),
        ("sort_by(@, &@)", ["x" * 4096] * 1000, 17_000, 20_000),
        ("max_by(@, &@)", ["x" * 4096] * 1000, 16_000, 18_000),
        ("starts_with(@, @)", "x" * 409_600, 100, 110),
        ("map(&@, @)", [1] * 1000, 1000, 1010),
        ("merge(@, @)", {str(number): 1 for number in range(100)}, 800, 820),
        ("keys(@)", {str(number): 1 for number in range(100)}, 50, 60),
        ("values(@)", {str(number): 1 for number in range(100)}, 50, 60),
    ],
)
def test_a_function_is_paid_by_what_it_looks_at_and_makes(
    text: str, value: Any, less: int, more: int
) -> None:
    assert less <= burned(text, value) <= more


@pytest.mark.fault(36, "inside")
def test_nothing_is_made_where_it_cannot_be_paid_for() -> None:
    fuel = Fuel(1000)
    with pytest.raises(OutOfFuel):
        MeteredFunctions(fuel).call_function("join", ["", ["x" * 1000] * 1000])
    assert fuel.left < -50_000


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("nosuch(@)", 1, "Unknown function: nosuch()"),
        ("sum(@)", ["a"], "In function sum(), invalid type for value: a"),
        ("sum(@, @)", [1], "Expected 1 argument for function sum(), received 2"),
        ("sort_by(@, &a)", [{"a": 1}, {"a": "b"}], "In function sort_by(), invalid type"),
        ("join(@, @)", "a", "In function join(), invalid type for value: a"),
    ],
)
def test_what_a_function_does_not_take_is_refused_as_ever(text: str, value: Any, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        Expression(text).search(value)
    assert str(refused.value).startswith(said)
