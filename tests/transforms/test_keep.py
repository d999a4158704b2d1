import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.paths import Path
from proxy.document.tree import Document, Pieces, Slot
from proxy.errors import ShapeMismatch
from proxy.transforms.keep import Keep
from tests.documents import call, shaped, values


def keep(*paths: str, at: str = "") -> Keep:
    return Keep(tuple(map(Path.parse, paths)), Path.parse(at))


# What is kept, of what, and what is left of it.
CASES: dict[str, tuple[Keep, str, str]] = {
    "members come in the order of the rule": (
        keep("b", "a"),
        '{"a": 1, "b": 2, "c": 3}',
        '{"b":2,"a":1}',
    ),
    "a path goes through objects and arrays": (
        keep("items.user.login", "items.id"),
        '{"items": [{"id": 1, "user": {"login": "x", "id": 2}}, {"user": {"login": "y"}}], "n": 2}',
        '{"items":[{"user":{"login":"x"},"id":1},{"user":{"login":"y"}}]}',
    ),
    "an array stays an array of as many elements": (
        keep("labels.name"),
        '{"labels": [{"name": "x", "id": 1}, {"id": 2}, {}]}',
        '{"labels":[{"name":"x"},{},{}]}',
    ),
    "what is no object stays where one was expected": (
        keep("a.x", "b.x", "c.x"),
        '{"a": null, "b": [1, "\\/", {"x": 1, "y": 2}], "c": "text", "d": 1}',
        '{"a":null,"b":[1,"\\/",{"x":1}],"c":"text"}',
    ),
    "the whole of a member counts more than a part of it": (
        keep("a.x", "b", "a"),
        '{"b": 1, "a": {"x": 1, "y": 2}}',
        '{"a":{"x":1,"y":2},"b":1}',
    ),
    "a pattern keeps what it fits, in the order of the document": (
        keep("z", "*Ids"),
        '{"fooIds": 1, "z": 2, "barIds": [3], "id": 4}',
        '{"z":2,"fooIds":1,"barIds":[3]}',
    ),
    "what only a pattern leads to goes where it holds nothing that is named": (
        keep("*.name", "id"),
        '{"a": {"name": 2, "x": 3}, "b": {"x": 4}, "c": 5, "d": [], "id": 1}',
        '{"a":{"name":2},"id":1}',
    ),
    "any depth is found below arrays too": (
        keep("**.name"),
        '{"a": {"b": [{"name": 1, "x": 2}, {"x": 3}]}, "c": {"x": 4}, "name": {"name": 5, "y": 6}}',
        '{"a":{"b":[{"name":1},{}]},"name":{"name":5,"y":6}}',
    ),
    "elements are kept by position": (
        keep("a[0]", "b[-1].n", "c[].n"),
        '{"a": [1, 2], "b": [{"n": 1}, {"n": 2, "m": 3}], "c": [{"n": 1, "m": 2}]}',
        '{"a":[1],"b":[{"n":2}],"c":[{"n":1}]}',
    ),
    "a place to work at may be many": (
        keep("n", at="items.user"),
        '{"items": [{"user": {"n": 1, "m": 2}, "k": 3}, {"user": null}, {}]}',
        '{"items":[{"user":{"n":1},"k":3},{"user":null},{}]}',
    ),
    "places inside others are worked at first": (
        keep("id", "a", at="**"),
        '{"id": 1, "x": 2, "a": {"id": 3, "y": 4}}',
        '{"id":1,"a":{"id":3}}',
    ),
    "the last of equal names counts, as everywhere": (
        keep("a.x"),
        '{"a": 1, "a": {"x": 1, "x": 2, "\\u0079": 3}}',
        '{"a":{"x":2}}',
    ),
    "an empty object is what it is": (keep("a"), "{}", "{}"),
    "so is null": (keep("a"), "null", "null"),
}


@pytest.mark.parametrize(("step", "before", "after"), CASES.values(), ids=CASES)
def test_what_is_named_is_kept_and_nothing_else(step: Keep, before: str, after: str) -> None:
    assert shaped(before.encode(), step).decode() == after


MISMATCHES: list[tuple[Keep, str, str]] = [
    (keep("id", "user.login"), '{"message": "Not Found"}', "no id, user.login in the document"),
    (keep("items.id"), '{"items": [{"x": 1}]}', "no items.id in the document"),
    (keep("id"), '"a text"', "no id in the document"),
    (keep("id"), "[1, 2]", "no id in the document"),
    (keep("user.login"), '{"user": "a"}', "no user.login in the document"),
    (keep("id", at="items"), '{"rows": []}', "no id in items"),
    (keep("**.id"), '{"a": [{"x": 1}]}', "no **.id in the document"),
]


@pytest.mark.parametrize(("step", "before", "message"), MISMATCHES)
def test_a_document_of_another_shape_is_a_mismatch(step: Keep, before: str, message: str) -> None:
    with pytest.raises(ShapeMismatch) as mismatch:
        shaped(before.encode(), step)
    assert str(mismatch.value) == message


EMPTY = [
    (keep("id", at="items"), "{}"),
    (keep("id", at="items.user"), '{"items": []}'),
    (keep("id", at="items.user"), '{"items": [{"user": null}]}'),
    (keep("user.login"), '{"user": null, "x": 1}'),
]


@pytest.mark.parametrize(("step", "before"), EMPTY)
def test_a_document_with_nothing_in_it_is_no_mismatch(step: Keep, before: str) -> None:
    shaped(before.encode(), step)


def test_a_text_read_as_lines_is_a_mismatch() -> None:
    with pytest.raises(ShapeMismatch):
        keep("id")(Document(Pieces(["a", "b"])).root, call())


MISSING: list[tuple[Keep, str, list[str]]] = [
    (keep("id", "nope", "user.nope"), '{"id": 1, "user": {"x": 1}}', ["nope", "user.nope"]),
    (keep("id", "nope"), '[{"id": 1}, {"nope": 2}]', []),
    (keep("id", "a.x", "b.x"), '{"id": 1, "a": [], "b": null}', []),
    (keep("id", "a.x"), '[{"a": [{"y": 1}]}, {"id": 1}]', ["a.x"]),
    (keep("a", "a.x"), '{"a": 1}', []),
    (keep("id", "nope", at="items"), '{"items": [{"id": 1}]}', ["items.nope"]),
]


@pytest.mark.parametrize(("step", "before", "missing"), MISSING)
@pytest.mark.parametrize("read", ["unopened", "opened"])
def test_paths_that_match_nothing_are_noted(
    step: Keep, before: str, missing: list[str], read: str
) -> None:
    document, told = Document.read(before.encode()), call()
    if read == "opened":
        open_all(document.root)
    step(document.root, told)
    assert told.missing == missing


def open_all(slot: Slot) -> None:
    for child in slot.children():
        open_all(child)


def spelled(data: bytes) -> Any:
    return json.loads(data, parse_float=str, parse_int=str, object_pairs_hook=list)


NAMES = st.sampled_from(["id", "body", "items", "more", "text", '"a.b"', '""'])


@given(values(), st.lists(st.lists(NAMES, min_size=1, max_size=3).map(".".join), min_size=1))
def test_rows_and_the_tree_keep_the_same(data: bytes, paths: list[str]) -> None:
    outcomes: list[Any] = []
    for opening in (False, True):
        document, told = Document.read(data), call()
        if opening:
            open_all(document.root)
        try:
            keep(*paths)(document.root, told)
        except ShapeMismatch as mismatch:
            outcomes.append(str(mismatch))
        else:
            outcomes.append((spelled(document.encode()), told.missing))
    assert outcomes[0] == outcomes[1]


def test_a_rule_that_keeps_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no path to keep"):
        Keep(())
