from contextlib import suppress
from random import Random
from time import perf_counter_ns
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.fuel import LITTLE, MOST, Fuel
from mcp_abridge.errors import OutOfFuel, Refusal
from mcp_abridge.query.patterns import Expression, Pattern, PatternError

from tests.faults.scale import scaled

TOKENS = ["a", "b", "*", ".", "[", "]", "[?", "[::0]", "`1`", "'x'", "sum(", "max_by(", ")", ","]
TOKENS += [" == ", "||", "&&", "!", "|", "{", "}", ":", "-1", '"', "&", "@", "\ud800"]
DEEP = ["(" * 5000 + "a" + ")" * 5000, "`" + "[" * 100_000 + "]" * 100_000 + "`"]


@pytest.mark.fault(37, "inside")
@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (Pattern, "(a", "'(a' is not a regular expression RE2 takes: missing ): (a"),
        (
            Pattern,
            "(" * 400,
            f"'{'(' * 60}…' is not a regular expression RE2 takes: missing ): {'(' * 49}…",
        ),
        (Expression, f"a[{'9' * 5000}]", f"'a[{'9' * 58}…' has a number too long to read"),
        (
            Expression,
            f"{'a' * 400} b",
            f"'{'a' * 60}…' is not a JMESPath expression: 'b' at column 402",
        ),
    ],
)
def test_the_error_of_an_invalid_expression_quotes_its_beginning(
    kind: type[Pattern | Expression], text: str, message: str
) -> None:
    with pytest.raises(PatternError) as error:
        kind(text)
    assert str(error.value) == message


@pytest.mark.fault(37, "inside")
def test_a_pattern_that_blows_others_up_takes_linear_time() -> None:
    assert Pattern("^(a+)+$").search("a" * 50_000 + "b") is None


@pytest.mark.fault(37, "inside")
def test_a_search_that_would_take_too_long_is_not_begun() -> None:
    slow = Pattern("(?:a|b)*a(?:a|b){1000}c")  # five microseconds for each character
    subject = "".join(Random(1).choices("ab", k=scaled(100_000, 10_000_000)))
    with pytest.raises(OutOfFuel):
        # Nothing stops it once it has begun.
        slow.search(subject, fuel=Fuel(scaled(LITTLE, MOST)))


@pytest.mark.fault(37, "inside")
def test_matches_that_take_quadratic_time_end_with_the_fuel() -> None:
    subject, fuel = "a" * 300_000, Fuel(LITTLE)
    with pytest.raises(OutOfFuel, match=r"^it takes more than 20000 units of work$"):
        list(Pattern("a(.*b)?").finditer(subject, fuel))


def test_time_in_which_other_processes_ran_costs_no_fuel() -> None:
    fuel = Fuel(2000)

    fuel.burn_since(perf_counter_ns() - 10**10)  # of these ten seconds, this thread worked none

    start_ns = perf_counter_ns()
    sum(range(1_000_000))
    with pytest.raises(OutOfFuel):
        fuel.burn_since(start_ns)


def test_an_expression_of_a_model_may_need_an_eighth_of_the_memory_only() -> None:
    assert Pattern(r"\pL{60}").search("a" * 60) is not None
    with pytest.raises(PatternError, match=r"pattern too large - compile failed$"):
        Pattern(r"\pL{60}", modest=True)


@pytest.mark.parametrize("text", DEEP, ids=["parentheses", "a literal"])
def test_an_expression_that_nests_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(PatternError, match="nested too deeply"):
        Expression(text)


@given(st.lists(st.sampled_from(TOKENS), max_size=10).map("".join))
def test_any_expression_of_a_model_is_evaluated_or_refused(text: str) -> None:
    with suppress(PatternError, Refusal):
        Expression(text).search({"a": [1, "x", {"b": 2}], "b": None})


@pytest.mark.parametrize("value", [{"a": "secret" * 100}, ["secret"] * 100, "secret" * 100])
def test_a_refusal_does_not_repeat_a_document(value: Any) -> None:
    with pytest.raises(Refusal, match=r"abs\(\) takes a number") as error:
        Expression("abs(@)").search(value)
    assert len(str(error.value)) < 200
    assert str(error.value).count("secret") <= 10


NAMING = ["a", "a.b[0].c", "a && !b || c == 'x'", "starts_with(a, argument('p'))", "`1`"]
NAMING += ["a[?b].c | [0]", "{x: a, y: [b, c.d]}", "sort_by(a, &b)", "a[].b[1:2]"]


@pytest.mark.parametrize(
    "text", ["@", "*.a", "[0]", "[?a]", "keys(@) && a", "grep('x')", "a == $.b"]
)
def test_an_expression_that_may_read_any_member_names_none(text: str) -> None:
    assert Expression(text).names is None


@given(
    st.sampled_from(NAMING),
    st.dictionaries(
        st.sampled_from("abcdx"),
        st.sampled_from([1, "x", None, True, {"b": 2}, [{"b": 1, "c": 2}, {"b": 3}]]),
    ),
)
def test_the_members_named_are_enough(text: str, value: dict[str, Any]) -> None:
    expression = Expression(text)
    names = expression.names
    assert names is not None

    def outcome(members: dict[str, Any]) -> Any:
        try:
            return expression.search(members)
        except Refusal:
            return "refused"

    assert outcome(value) == outcome({name: value[name] for name in names if name in value})
