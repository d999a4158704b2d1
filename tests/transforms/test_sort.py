import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.paths import Path
from proxy.document.patterns import Expression
from proxy.document.tree import Document, compact
from proxy.transforms.jmespath import Jmespath
from proxy.transforms.sort import Sort
from tests.documents import call, shaped

ITEMS = Path.parse("items")
N = Path.parse("n")

# A sort, a document, and what comes of it.
CASES: dict[str, tuple[Sort, str, str]] = {
    "by a member, numbers by value": (
        Sort(at=ITEMS, by=N),
        '{"items": [{"n": 10}, {"n": 9.50}, {"n": -1e1}, '
        '{"n": 1e9999999999999999999}, {"n": 12345678901234567890123}], "t": 1}',
        '{"items":[{"n":-1e1},{"n":9.50},{"n":10},{"n":12345678901234567890123},'
        '{"n":1e9999999999999999999}],"t":1}',
    ),
    "texts by their bytes": (
        Sort(),
        '["b", "a", "B", "é", "z", "😀", "\uffff", "a\\u0062"]',
        '["B","a","a\\u0062","b","z","é","\uffff","😀"]',
    ),
    "what compares alike keeps its order": (
        Sort(by=N),
        '[{"n": 1.0, "i": 1}, {"n": 0}, {"n": 1, "i": 2}, {"n": 1e0, "i": 3}]',
        '[{"n":0},{"n":1.0,"i":1},{"n":1,"i":2},{"n":1e0,"i":3}]',
    ),
    "also descending": (
        Sort(by=N, descending=True),
        '[{"n": 0}, {"n": 1.0, "i": 1}, {"i": 4}, {"n": 1, "i": 2}, {"n": null}]',
        '[{"n":1.0,"i":1},{"n":1,"i":2},{"n":0},{"i":4},{"n":null}]',
    ),
    "types have an order, nothing comes last": (
        Sort(),
        '[null, {"b": 1}, true, "a", [2], false, 3, {"a": 1}]',
        '[3,"a",false,true,{"b":1},[2],{"a":1},null]',
    ),
}


@pytest.mark.parametrize(("step", "before", "after"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("read", ["unopened", "opened"])
def test_an_array_is_sorted(step: Sort, before: str, after: str, read: str) -> None:
    document = Document.read(before.encode())
    if read == "opened":
        for child in document.root.children():
            list(child.children())
    step(document.root, call())
    assert document.encode().decode() == after


def test_numbers_that_an_expression_made_are_sorted_too() -> None:
    assert shaped(b'{"a": [3, 1.50]}', Jmespath(Expression("a")), Sort()) == b"[1.50,3]"


def test_a_sorted_array_is_not_changed() -> None:
    document = Document.read(b"[1, 2.0, 2]")
    Sort()(document.root, call())
    assert not document.changed


MISSING: list[tuple[Sort, str, list[str]]] = [
    (Sort(at=ITEMS, by=N), '{"items": [{"x": 1}, {"x": 0}]}', ["items.n"]),
    (Sort(at=ITEMS, by=N), '{"items": [{"n": null}]}', []),
]


@pytest.mark.parametrize(("step", "before", "missing"), MISSING)
def test_what_is_not_there_is_noted(step: Sort, before: str, missing: list[str]) -> None:
    told = call()
    assert shaped(before.encode(), step, at=told) == compact(before.encode())
    assert told.missing == missing


@given(st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_are_sorted_as_python_sorts_them(numbers: list[float]) -> None:
    assert json.loads(shaped(json.dumps(numbers).encode(), Sort())) == sorted(numbers)


@given(st.lists(st.text()), st.booleans())
def test_texts_are_sorted_by_their_bytes(texts: list[str], descending: bool) -> None:
    found = json.loads(shaped(json.dumps(texts).encode(), Sort(descending=descending)))
    assert found == sorted(texts, key=str.encode, reverse=descending)
