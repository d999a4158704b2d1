"""Expressions over plain values: what they give is the library's, and they end with their fuel."""

import tracemalloc
from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jmespath.functions import Functions, signature
from jmespath.visitor import TreeInterpreter
from mcp_abridge.document.fuel import LITTLE, Fuel
from mcp_abridge.errors import Refusal
from mcp_abridge.query.patterns import Expression, PatternError

from tests.explosive import EXPLOSIVE, ended
from tests.faults.scale import scaled


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize("name", EXPLOSIVE)
def test_an_explosive_expression_ends_with_its_fuel(name: str) -> None:
    assert ended(name, Fuel(LITTLE)) == "it takes more than 20000 units of work"


@pytest.mark.slow
@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize("name", [*EXPLOSIVE][:: scaled(6, 1)])
def test_results_of_an_expression_take_about_16_bytes_a_unit(name: str) -> None:
    units = 100_000
    ended(name, Fuel(1))  # whatever is made only once
    tracemalloc.start()
    try:
        ended(name, Fuel(units))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20 * units + 100_000


# The parts of expressions, and values to evaluate them over.
PARTS = ["a", "b", "[0]", "[-1]", "[*]", "[]", "[1:]", "[::-2]", "*", "@", "`1`", "`[1]`", "'x'"]
PARTS += ["[?a]", "[?a == `1`]", "[?@ > `1`].b", "{a: a, b: @}", "[a, @]", "!a", "a && b"]
PARTS += ["a || b", "a == @.b", "a != `true`", "a < b", "@ >= `0`", "a[].b", "not_null(a, b)"]
FUNCTIONS = ["length", "keys", "values", "reverse", "sort", "max", "min", "sum", "avg", "abs"]
FUNCTIONS += ["to_string", "to_number", "to_array", "type", "ceil", "floor", "nonsense"]
CALLS = [f"{name}({part})" for name in FUNCTIONS for part in ("@", "a")]
# Not max_by and min_by: unlike the library's, they leave out elements without a value.
CALLS += ["map(&a, @)", "sort_by(@, &a)", "join('-', @)"]
CALLS += ["contains(@, `1`)", "contains(@, b)", "contains(@, 'x')", "merge(@, {c: a})", "sum()"]
CALLS += ["starts_with(@, 'x')", "ends_with(a, b)", "map(&[0], a)"]
PLAIN = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 2.5, -1, "", "x", "xy", "é"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=12,
)


class Tests(Functions):
    """The library's functions; a value of another kind than theirs is no error, but no match."""

    @signature({"types": []}, {"types": []})
    def _func_contains(self, value: Any, part: Any) -> bool:
        holds = isinstance(value, list) or (isinstance(value, str) and isinstance(part, str))
        return holds and part in value


class Slicing(TreeInterpreter):
    """The library's interpreter, which slices strings too."""

    def __init__(self) -> None:
        super().__init__(jmespath.Options(custom_functions=Tests()))

    def visit_slice(self, node: Any, value: Any) -> Any:
        if isinstance(value, str):
            return value[slice(*node["children"])]
        return super().visit_slice(node, value)

    def visit_projection(self, node: Any, value: Any) -> Any:
        base = self.visit(node["children"][0], value)
        if isinstance(base, str) and "slice" in str(node["children"][0]):
            return base
        return super().visit_projection(node, value)


@given(st.lists(st.sampled_from(PARTS + CALLS), min_size=1, max_size=4), PLAIN)
def test_an_expression_gives_the_library_s_result_and_slices_texts(
    parts: list[str], value: Any
) -> None:
    text = " | ".join(parts)
    try:
        expected = Slicing().visit(jmespath.compile(text).parsed, value)
    except Exception:
        with pytest.raises(Refusal):
            Expression(text).search(value)
    else:
        assert repr(Expression(text).search(value)) == repr(expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a[0][0:2].b", [1, 2]),
        ("a[0][::-1].{b: b}", [{"b": 2}, {"b": 1}]),
        ("a[*][0:1].b", [[1], [3]]),
        ("a[0][0:2].b | [0]", 1),
        ("a[0][1].b", 2),
    ],
)
def test_what_follows_a_slice_is_asked_of_each_element_after_an_index_too(
    text: str, value: object
) -> None:
    rows = {"a": [[{"b": 1}, {"b": 2}], [{"b": 3}]]}
    assert Expression(text).search(rows) == value


@pytest.mark.parametrize("text", ["a[", "a[0][", "a[0][1", "a[0][1:", "a[0][:", "a[0][b]"])
def test_brackets_that_are_not_closed_are_a_mistake(text: str) -> None:
    with pytest.raises(PatternError):
        Expression(text)
