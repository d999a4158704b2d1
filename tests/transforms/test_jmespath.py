import pytest

from proxy.document.fuel import LITTLE, Fuel
from proxy.document.paths import Path
from proxy.document.patterns import Expression
from proxy.document.tree import encode
from proxy.errors import AbridgeError, OutOfFuel, TransformError
from proxy.transforms.jmespath import Jmespath
from proxy.transforms.parse import Parse
from tests.documents import call, said, shaped
from tests.explosive import EXPLOSIVE


def test_the_value_becomes_what_the_expression_gives() -> None:
    raw = b'{"items": [{"id": 1.50, "tags": []}, {"id": 1e400}], "at": {"x": -0}}'
    assert shaped(raw, Jmespath(Expression("items[*].{n: id}"))) == b'[{"n":1.50},{"n":1e400}]'
    inside = Jmespath(Expression("id"), at=Path.parse("items"))
    assert shaped(raw, inside) == b'{"items":null,"at":{"x":-0}}'
    each = Jmespath(Expression("id"), at=Path.parse("items[]"))
    assert shaped(raw, each) == b'{"items":[1.50,1e400],"at":{"x":-0}}'


def test_an_argument_of_the_call_can_be_used() -> None:
    step = Jmespath(Expression("items[?id == argument('id')]"))
    assert shaped(b'{"items":[{"id":1},{"id":2}]}', step, at=call(id=2)) == b'[{"id":2}]'


def test_lines_that_an_expression_picked_are_joined_again() -> None:
    step = Jmespath(Expression("[?contains(@, 'b')]"))
    assert said("ab\ncd\nbe\n", Parse(as_="lines"), step) == "ab\nbe\n"


def test_an_expression_that_does_not_fit_the_value_raises_and_says_why() -> None:
    with pytest.raises(TransformError, match="invalid type"):
        shaped(b'{"a": 1}', Jmespath(Expression("length(a)")))


def test_a_result_that_grows_without_end_is_refused_unwritten() -> None:
    explosive = " | ".join(["[@, @]"] * 40)
    with pytest.raises(AbridgeError, match=r"gives more than 1048604 bytes$"):
        shaped(b'{"a":1}', Jmespath(Expression(explosive)))


def test_a_path_that_matches_nothing_is_reported() -> None:
    told = call()
    assert shaped(b'{"a":1}', Jmespath(Expression("a"), at=Path.parse("b")), at=told) == b'{"a":1}'
    assert told.missing == ["b"]


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize("name", EXPLOSIVE)
def test_an_explosive_expression_fails_where_the_fuel_ends(name: str) -> None:
    text, value = EXPLOSIVE[name]
    told = call()
    told.fuel = Fuel(LITTLE)
    with pytest.raises(OutOfFuel):
        shaped(encode(value), Jmespath(Expression(text)), at=told)
