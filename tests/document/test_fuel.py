import pytest
from msgspec import Raw, Struct

from proxy.document.fuel import LITTLE, MOST, Fuel, charge
from proxy.errors import OutOfFuel


class Row(Struct):
    f0: Raw


def paid(value: object, times: int = 1) -> int:
    fuel = Fuel()
    charge(value, fuel, times)
    return MOST - fuel.remaining


@pytest.mark.parametrize(
    ("value", "units"),
    [
        (None, 0),
        ("x" * 64, 4),
        ("é" * 64, 16),
        ([1, 2.5, True], 4),
        ([["x" * 32]] * 3, 4 + 3 * (2 + 2)),
        ({"a": 1, "b" * 16: [1]}, 5 + 1 + 2),
        (2**1280, 10),
        (Raw(b'"' + b"x" * 638 + b'"'), 10),
        (Row(Raw(b"1" * 640)), 10),
    ],
)
def test_a_value_is_paid_for_by_what_there_is_of_it(value: object, units: int) -> None:
    assert paid(value) == units


def test_several_walks_cost_as_often() -> None:
    assert paid(["x" * 64, 2**1280], 4) == 4 * paid(["x" * 64, 2**1280])


@pytest.mark.fault(36, "inside")
def test_a_part_in_several_places_is_paid_for_in_each() -> None:
    value: object = "x"
    for _ in range(65):
        value = [value, value]
    with pytest.raises(OutOfFuel):
        charge(value, Fuel(LITTLE))
