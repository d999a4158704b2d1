import pytest

from proxy.document.paths import Path
from proxy.document.tree import Document, Pieces, compact
from proxy.transforms.drop import Drop
from tests.documents import call, shaped


def drop(*paths: str, at: str = "") -> Drop:
    return Drop(tuple(map(Path.parse, paths)), Path.parse(at))


# What is dropped, from what, and what is left of it.
CASES: dict[str, tuple[Drop, str, str]] = {
    "members of elements go": (
        drop("items.body", "items.user.id"),
        '{"items": [{"body": 1, "user": {"id": 2, "n": 3}}, null, {"user": [{"id": 4}]}]}',
        '{"items":[{"user":{"n":3}},null,{"user":[{}]}]}',
    ),
    "also among elements that are no objects": (
        drop("items.a"),
        '{"items": [1.0, {"a": 1}, [{"a": 2, "b": 3}]]}',
        '{"items":[1.0,{},[{"b":3}]]}',
    ),
    "a whole member goes with all its parts": (
        drop("a.x", "a"),
        '{"a": {"x": 1, "y": 2}, "b": 3}',
        '{"b":3}',
    ),
    "a pattern drops what it fits": (
        drop("*Ids"),
        '{"fooIds": [1], "id": 2, "Ids": 3, "idsx": 4}',
        '{"id":2,"idsx":4}',
    ),
    "any depth is dropped from": (
        drop("**.secret"),
        '{"a": [{"secret": 1, "b": {"secret": {"secret": 2}, "c": 3}}], "secret": 4}',
        '{"a":[{"b":{"c":3}}]}',
    ),
    "elements go by the positions they had": (
        drop("a[0]", "a[1]", "b[-1]", "c[]"),
        '{"a": [1, 2, 3], "b": [4, 5], "c": [6]}',
        '{"a":[3],"b":[4],"c":[]}',
    ),
    "places inside others are worked at first": (
        drop("id", "a[]", at="**"),
        '{"a": [{"id": 1}], "b": {"id": 2, "c": 3}, "id": 4}',
        '{"a":[],"b":{"c":3}}',
    ),
    "the last of equal names goes with the others": (
        drop("a"),
        '{"a": 1, "b": 2, "a": 3}',
        '{"b":2}',
    ),
}


@pytest.mark.parametrize(("step", "before", "after"), CASES.values(), ids=CASES)
def test_what_is_named_goes_and_the_rest_stays(step: Drop, before: str, after: str) -> None:
    assert shaped(before.encode(), step).decode() == after


@pytest.mark.parametrize("before", ['{"a": {"c": 1}}', "[]", "null", '"text"', "[1, [2]]"])
@pytest.mark.parametrize("step", [drop("b"), drop("a.b"), drop("**.b"), drop("b[0]")])
def test_a_document_without_what_is_dropped_is_not_changed(step: Drop, before: str) -> None:
    document = Document.read(before.encode())
    step(document.root, call())
    assert not document.changed
    assert document.encode() == compact(before.encode())


def test_lines_go_by_position() -> None:
    document = Document(Pieces(["a", "b", "c"]))
    drop("[0]", "[-1]")(document.root, call())
    assert isinstance(document.cell[0], Pieces)
    assert document.cell[0] == ["b"]


MISSING: list[tuple[Drop, str, list[str]]] = [
    (drop("a", "b", "c.d"), '{"a": 1, "c": {}}', ["b", "c.d"]),
    (drop("a.b", "c.d"), '{"a": null, "c": []}', []),
    (drop("a.b"), "[]", []),
    (drop("b", at="a"), '{"a": {"x": 1}}', ["a.b"]),
    (drop("b", at="a"), '{"x": 1}', ["a"]),
    (drop("b", at="a.c"), '{"a": []}', []),
    (drop("a", "a.b"), '{"a": 1}', []),
]


@pytest.mark.parametrize(("step", "before", "missing"), MISSING)
def test_paths_that_match_nothing_are_noted(step: Drop, before: str, missing: list[str]) -> None:
    told = call()
    shaped(before.encode(), step, at=told)
    assert told.missing == missing


@pytest.mark.parametrize("path", ["", "**"])
def test_a_rule_that_drops_all_there_is_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="names the whole; name what goes of it"):
        drop(path)


def test_a_rule_that_drops_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no path to drop"):
        drop()
