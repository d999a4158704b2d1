import json
import re
from random import Random
from typing import Any

import pytest

from proxy.document.fuel import LITTLE, MOST, Fuel
from proxy.document.paths import Path
from proxy.document.patterns import Expression, Pattern
from proxy.document.tree import Document, compact
from proxy.errors import OutOfFuel, Refusal, ShapeMismatch, TransformError
from proxy.transforms.base import Argument
from proxy.transforms.filter import Filter
from tests.documents import call, shaped

ITEMS = Path.parse("items")
ID = Path.parse("id")

# A filter, a document, and what is left of it.
CASES: dict[str, tuple[Filter, str, str]] = {
    "elements for which an expression is true stay": (
        Filter(at=ITEMS, where=Expression("id && !gone && n > `1.5`")),
        '{"items": [{"id": "a", "n": 2.0}, {"id": "", "n": 2}, {"id": "b", "gone": 1, "n": 2}, '
        '{"id": "c", "n": 1.50}, {"id": "d", "n": 1e400, "x": {}}], "total": 5}',
        '{"items":[{"id":"a","n":2.0},{"id":"d","n":1e400,"x":{}}],"total":5}',
    ),
    "an expression sees the arguments of the call": (
        Filter(where=Expression("id == argument('id')")),
        '[{"id": "x"}, {"id": "y"}]',
        '[{"id":"y"}]',
    ),
    "texts themselves are looked at where there is no field": (
        Filter(glob="*.md"),
        '["a.md", "b/c.md", "a\\u002emd", 1, {"id": "d.md"}]',
        '["a.md","a\\u002emd"]',
    ),
    "a field further inside": (
        Filter(field=Path.parse("user.login"), match=Pattern("^b+$")),
        '[{"user": {"login": "bb", "x": 1.0}}, {"user": {"login": "ab"}}, {"user": null}]',
        '[{"user":{"login":"bb","x":1.0}}]',
    ),
    "any text of an array counts": (
        Filter(field=Path.parse("labels.name"), match=Pattern("bug")),
        '[{"labels": [{"name": "x"}, {"name": "bugs"}]}, {"labels": []}]',
        '[{"labels":[{"name":"x"},{"name":"bugs"}]}]',
    ),
    "what does not fit stays where that is asked": (
        Filter(field=ID, match=Pattern("^tmp"), invert=True),
        '[{"id": "tmp1"}, {"id": 1}, {}, {"id": "x"}]',
        '[{"id":1},{},{"id":"x"}]',
    ),
    "a constant comes from the call": (
        Filter(field=ID, prefix=Argument("id")),
        '[{"id": "x"}, {"id": "y%_"}]',
        '[{"id":"y%_"}]',
    ),
    "also one inside another argument, and an expression": (
        Filter(match=Argument("query.match")),
        '["abc", "xyz"]',
        '["abc"]',
    ),
    "an argument that the call lacks filters nothing": (
        Filter(glob=Argument("absent")),
        '["a", 1.0]',
        '["a",1.0]',
    ),
    "every array at the place is filtered": (
        Filter(at=Path.parse("items.tags"), prefix="a"),
        '{"items": [{"tags": ["a", "b"]}, {"tags": []}, {"tags": null}, {}]}',
        '{"items":[{"tags":["a"]},{"tags":[]},{"tags":null},{}]}',
    ),
}
CALL: dict[str, Any] = {"id": "y", "query": {"match": "b."}}


@pytest.mark.parametrize(("step", "before", "after"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("read", ["unopened", "opened"])
def test_elements_that_fit_stay_as_they_came(
    step: Filter, before: str, after: str, read: str
) -> None:
    document = Document.read(before.encode())
    if read == "opened":
        for child in document.root.children():
            list(child.children())
    step(document.root, call(**CALL))
    assert document.encode().decode() == after
    assert document.changed == (after.encode() != compact(before.encode()))


# A glob, and the paths among PATHS that it fits.
PATHS = ["a.md", "b.png", "n/a.md", "n/s/a.md", "n/", "n", "[a].md", "é.md", "a\nb.md", "+.md"]
GLOBS: list[tuple[str, list[str]]] = [
    ("*.md", ["a.md", "[a].md", "é.md", "a\nb.md", "+.md"]),
    ("**.md", ["a.md", "n/a.md", "n/s/a.md", "[a].md", "é.md", "a\nb.md", "+.md"]),
    ("**/a.md", ["a.md", "n/a.md", "n/s/a.md"]),
    ("n/*", ["n/a.md", "n/"]),
    ("n/**", ["n/a.md", "n/s/a.md", "n/"]),
    ("n/**/*.md", ["n/a.md", "n/s/a.md"]),
    ("?.md", ["a.md", "é.md", "+.md"]),
    ("[a].md", ["[a].md"]),
    ("+.md", ["+.md"]),
    ("a", []),
    ("", []),
    ("**", PATHS),
]


@pytest.mark.parametrize(("glob", "fitting"), GLOBS)
def test_a_glob_fits_these_paths(glob: str, fitting: list[str]) -> None:
    document = Document(list(PATHS))
    Filter(glob=glob)(document.root, call())
    assert document.cell[0] == fitting


def test_an_argument_that_is_no_text_is_a_mismatch() -> None:
    with pytest.raises(ShapeMismatch, match="pattern: 5 is not a string"):
        shaped(b'["a"]', Filter(glob=Argument("pattern")), at=call(pattern=5))


def test_a_wrong_expression_of_the_model_is_refused_and_named() -> None:
    with pytest.raises(Refusal) as refused:
        shaped(b'["a"]', Filter(match=Argument("pattern")), at=call(pattern="(a"))
    assert str(refused.value) == (
        "pattern: '(a' is not a regular expression RE2 takes: missing ): (a"
    )


def test_an_expression_of_the_rule_that_does_not_fit_an_element_fails_the_rule() -> None:
    with pytest.raises(TransformError, match="filter: Refusal: "):
        shaped(b'[{"id": 1}]', Filter(where=Expression("starts_with(id, 'a')")))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "expected one of where, glob, match, prefix, found none"),
    (
        {"glob": "a", "prefix": "b"},
        "expected one of where, glob, match, prefix, found glob and prefix",
    ),
    (
        {"where": Expression("a"), "field": ID},
        "'field' goes with glob, match or prefix; name it in 'where' itself",
    ),
    ({"glob": "a" * 1001}, "glob: more than 1000 characters"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_a_filter_has_one_condition(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Filter(**options)


@pytest.mark.fault(37, "inside")
@pytest.mark.parametrize(
    ("step", "asked", "signs"),
    [
        (Filter(match=Argument("pattern")), "(?:a|b)*a(?:a|b){1000}c", "ab"),
        (Filter(glob=Argument("pattern")), "**/" * 300 + "c", "a/"),
    ],
)
def test_what_a_model_asks_for_and_takes_too_much_work_is_refused(
    step: Filter, asked: str, signs: str
) -> None:
    told = call(pattern=asked)
    told.fuel = Fuel(LITTLE)
    rows = json.dumps(["".join(Random(n).choices(signs, k=10_000)) for n in range(20)])
    with pytest.raises(Refusal) as refused:
        shaped(rows.encode(), step, at=told)
    said = "pattern: it takes more than 20000 units of work; ask for something simpler"
    assert str(refused.value) == said


@pytest.mark.parametrize("step", [Filter(match=Argument("glob")), Filter(glob=Argument("glob"))])
def test_what_a_model_asks_for_has_at_most_1000_characters(step: Filter) -> None:
    assert shaped(b'["a"]', step, at=call(glob="a" * 1000)) == b"[]"
    with pytest.raises(Refusal) as refused:
        shaped(b'["a"]', step, at=call(glob="a" * 1001))
    assert str(refused.value) == "glob: more than 1000 characters"


@pytest.mark.fault(36, "inside")
def test_a_condition_of_the_rule_that_takes_too_much_work_fails_the_rule() -> None:
    told = call()
    told.fuel = Fuel(1000)
    with pytest.raises(OutOfFuel):
        shaped(b"[%s]" % b",".join([b"1"] * 1000), Filter(where=Expression("@ > `0`")), at=told)


@pytest.mark.slow
@pytest.mark.fault(36, "inside")
def test_200000_rows_are_filtered_with_half_of_the_fuel_to_spare() -> None:
    told = call()
    rows = b",".join(b'{"id":%d,"state":"open","x":"y"}' % n for n in range(200_000))
    step = Filter(where=Expression("state == 'open' && id < `3`"))
    assert shaped(b"[" + rows + b"]", step, at=told).count(b"id") == 3
    assert told.fuel.remaining > MOST // 2
