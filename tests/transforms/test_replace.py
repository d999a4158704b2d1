from typing import Any

import pytest

from proxy.document.fuel import LITTLE, Fuel
from proxy.document.paths import Path
from proxy.document.patterns import Pattern
from proxy.errors import OutOfFuel
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


@pytest.mark.fault(37, "inside")
def test_what_takes_long_to_replace_ends_where_the_fuel_does() -> None:
    told = call()
    told.fuel = Fuel(LITTLE)
    step = replace("a(.*b)?", "x", at=Path.parse("a"))
    with pytest.raises(OutOfFuel):
        shaped(b'{"a":"%s"}' % (b"a" * 300_000), step, at=told)
