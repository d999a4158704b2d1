"""Holds patterns to what Python 3.11.0 to 3.11.4 match as later versions do."""

import re
import tracemalloc

import pytest
from mcp_abridge.document.possessive import possessive

from tests.wrapped import ROOT

# After a group, or after a name whose value may be one; `\)*+` and `[…]*+` are right everywhere.
POSSESSIVE = re.compile(r"(?<!\\)(?:[)}]|%[bs])(?:[*+?]|\{+[\d,]+\}+)\+")


def test_no_pattern_has_a_possessive_group_which_the_oldest_python_matches_wrong() -> None:
    """Debian 12 comes with 3.11.2, whose `(?:ab?c)*+` takes all of "aca" (python/cpython#106052).

    Lone surrogates and base64 passed the budget by that, without an error.
    """
    patterns = [
        f"{file}: {match[0]}: use mcp_abridge.document.possessive"
        for folder in ("proxy", "examples")
        for file in (ROOT / folder).rglob("*.py")
        for match in POSSESSIVE.finditer(file.read_text())
    ]
    assert patterns == []


@pytest.mark.parametrize("pattern", ["(?:a|b)*+", "(a){1,2}+", "(?:a){{2,}}+", "%b++", "{PART}?+"])
def test_a_possessive_group_is_found_in_a_source(pattern: str) -> None:
    assert POSSESSIVE.search(pattern)


@pytest.mark.parametrize("pattern", [r"\)*+", "[^()]*+", r"\s*+\{", "a?+", "(a)+", "(?>(?:a)*)"])
def test_other_patterns_are_left_alone(pattern: str) -> None:
    assert not POSSESSIVE.search(pattern)


@pytest.mark.parametrize(
    ("group", "text", "end"),
    [
        ("ab?c", "aca", 2),
        (".(?!D)", "ABCDE", 2),
        ("ab", "", 0),
        *(("ab", "ab" * count, 2 * count) for count in (1, 999, 1000, 1001, 2500)),
    ],
)
def test_a_group_repeats_as_often_as_it_fits_and_gives_nothing_back(
    group: str, text: str, end: int
) -> None:
    assert re.match(f"({possessive(group)})", text).span(1) == (0, end)  # type: ignore[union-attr]
    assert re.match(f"{possessive(group)}ab", text) is None


def test_a_long_text_costs_no_memory() -> None:
    text, pattern = r"\n" * 200_000, re.compile(possessive(r"\\.|[^'\\]") + r"\Z")
    tracemalloc.start()
    try:
        assert pattern.match(text)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
