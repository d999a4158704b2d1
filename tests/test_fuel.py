import pytest

from proxy.errors import Spent
from proxy.fuel import Fuel


def test_fuel_lasts_to_the_last_unit() -> None:
    fuel = Fuel(10)
    fuel.burn(4)
    fuel.burn(6)
    assert fuel.left == 0


def test_what_is_spent_stays_spent() -> None:
    fuel = Fuel(10)
    for _ in range(2):
        with pytest.raises(Spent, match=r"^it takes more than 10 units of work$"):
            fuel.burn(11)
