"""Which expressions are refused for all matches in a text: each with a text that bears witness."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.patterns import Pattern, PatternError
from proxy.transforms.parse import Parse
from proxy.transforms.quadratic import refusal, witness
from proxy.transforms.replace import Replace

QUADRATIC = [
    r"a(.*b)?",
    r"(.*b)?",
    r"a.*b|c",
    r"a.*?b|a",
    r"\w+:|\d+",
    r"(?s)<!--.*?-->|<",
    r"//.*|/\*[\s\S]*?\*/|/",
    r"\[(?:[^\]]*\])?",
    r"\d(?:\d*\.)?",
    r"\s*\n|\s",
    r"\s(?:\s*$)?",
    r"(?s)x.*y.*z|x",
]
LINEAR = [
    r"\[cursor=pointer\]",
    r"(?m)^(?P<ahead>Commit: )",
    r"\r?\n(?:\r?\n)+",
    r"\s+",
    r"(?m)[ \t]+$",
    r".*foo",
    r"a.*b",
    r"https?://\S+",
    r"https?://[^\s?]+(?:\?\S*)?",
    r"(a+)+",
    r"^(a+)+$",
    r'"(?:[^"\\]|\\.)*"',
    r'"[^"]*"|"',
    r"(?s)<!--.*?-->",
    r"/\*[\s\S]*?\*/",
    r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?",
    r"(?m)^.*password.*$",
    r"!\[[^\]]*\]\([^)]*\)",
    r"(?:\s*,\s*)+",
    r"a(.{0,99}b)?",
    r"x*",
    r"(?:)",
]


@pytest.mark.parametrize("text", QUADRATIC)
def test_a_quadratic_expression_has_a_witness(text: str) -> None:
    found = witness(text)
    assert found is not None
    word, end = found
    # At a match at the start, in the middle and wherever between, the far end decides.
    pattern, many = Pattern(text), word * 500
    other = next(
        each for each in (*ENDS, "") if _first(pattern, many + each) != _first(pattern, many + end)
    )
    for start in (0, 100 * len(word), 250 * len(word)):
        near = pattern.search(many + end, start)
        far = pattern.search(many + other, start)
        assert near.end() < start + 50 * len(word)
        assert far is None or far.span() != near.span()


ENDS = ("b", ":", "-->", "*/", "]", ".", "\n", "-", "yz", "ab")


def _first(pattern: Pattern, subject: str) -> tuple[int, int] | None:
    found = pattern.search(subject)
    return None if found is None else found.span()


@pytest.mark.parametrize("text", LINEAR)
def test_an_ordinary_expression_has_none(text: str) -> None:
    assert witness(text) is None
    assert refusal(text) is None


@pytest.mark.parametrize(
    "text", [r"\z(a.*b)?", r"(?U)a(.*b)?", r"[[:alpha:]](.*b)?", "(" * 900 + ")" * 900]
)
def test_what_python_would_not_read_is_not_judged_by_an_error(text: str) -> None:
    witness(text)


@given(st.lists(st.sampled_from(["a", "b", ".*", "[^a]+", "(?:", ")", "|", "?", "*"]), max_size=9))
def test_any_expression_is_judged(parts: list[str]) -> None:
    with suppress(PatternError):
        found = witness(Pattern("".join(parts)).text)
        assert found is None or found[0]


def test_steps_that_look_for_all_matches_refuse_it() -> None:
    said = (
        "'a(.*b)?' takes quadratic time, in 'aaaa…' for one: at every match it reads on to the "
        "end for another; bound what repeats, as in {0,200}"
    )
    with pytest.raises(ValueError, match=f"^pattern: {re.escape(said)}$"):
        Replace(pattern=Pattern("a(.*b)?"), with_="x")
    with pytest.raises(ValueError, match=f"^split: {re.escape(said)}$"):
        Parse(as_="records", split="a(.*b)?")


@pytest.mark.fault(37, "inside")
@pytest.mark.parametrize(
    "text", ["(?:" * 900 + "a.*|b" + ")*" * 900, "(a|b.*)?" * 25_000, "a(.*b)?" + "c" * 10_000]
)
def test_an_expression_that_would_take_long_to_judge_is_left_to_the_fuel(text: str) -> None:
    assert witness(text) is None
