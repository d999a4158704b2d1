import re
from typing import Any

import pytest

from proxy.document.fuel import LITTLE, Fuel
from proxy.document.paths import Path
from proxy.document.patterns import Pattern
from proxy.errors import OutOfFuel
from proxy.transforms.parse import Parse
from proxy.transforms.replace import Replace
from tests.documents import call, said, shaped


def replace(pattern: str, replacement: str, **options: Any) -> Replace:
    return Replace(pattern=Pattern(pattern), with_=replacement, **options)


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "changed"),
    [
        (r" \[cursor=pointer\]", "", "link [cursor=pointer]", "link"),
        (r"(\w+)@(\w+)", r"\2 at \1", "me@home", "home at me"),
        (r"(?P<k>key)=\S+", r"\g<k>=…é", "key=1 key=2", "key=…é key=…é"),
        ("é", r"\\n is not \n", "é", "\\n is not \n"),
        ("^", "> ", "a\nb", "> a\nb"),
        ("(?m)^", "> ", "a\nb", "> a\n> b"),
        ("(a)|b", r"[\1]", "ab", "[a][]"),
    ],
)
def test_every_match_is_replaced(pattern: str, replacement: str, text: str, changed: str) -> None:
    assert said(text, replace(pattern, replacement)) == changed


def test_only_strings_at_the_path_that_match_are_written_anew() -> None:
    raw = b'{"a": ["x1", "\\/", 1.0], "b": "x1"}'
    found = shaped(raw, replace("[0-9]", "#", at=Path.parse("a")))
    assert found == b'{"a":["x#","\\/",1.0],"b":"x1"}'


def test_lines_are_changed_each_for_itself() -> None:
    assert said("ab\nab", Parse(as_="lines"), replace("b$", "c")) == "ac\nac"


def test_a_path_that_matches_nothing_is_reported() -> None:
    told = call()
    shaped(b"{}", replace("a", "b", at=Path.parse("x.y")), at=told)
    assert told.missing == ["x.y"]


@pytest.mark.parametrize(
    ("replacement", "message"),
    [
        (r"\2", r"with: '\\2' names a group that '(a)' does not have"),
        (r"\g<n>", r"with: '\\g<n>' names a group that '(a)' does not have"),
        (
            r"\d",
            r"with: '\\d' stands for nothing; groups are '\1' or '\g<name>', a backslash is '\\'",
        ),
        (
            "a\\",
            r"with: '\\' stands for nothing; groups are '\1' or '\g<name>', a backslash is '\\'",
        ),
    ],
)
def test_a_replacement_that_cannot_work_is_refused(replacement: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace("(a)", replacement)


@pytest.mark.fault(37, "inside")
def test_what_takes_long_to_replace_ends_where_the_fuel_does() -> None:
    told = call()
    told.fuel = Fuel(LITTLE)
    step = replace("a(.*b)?", "x", at=Path.parse("a"))
    with pytest.raises(OutOfFuel):
        shaped(b'{"a":"%s"}' % (b"a" * 300_000), step, at=told)
