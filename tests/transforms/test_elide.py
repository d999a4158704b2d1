import pytest

from proxy.document.paths import Path
from proxy.document.tree import Document, Pieces, compact
from proxy.transforms.base import Notice
from proxy.transforms.elide import Elide
from tests.documents import call, shaped

A = Path.parse("a")

# What is shortened, of what, and what comes of it.
CASES: dict[str, tuple[Elide, str, str]] = {
    "the first few stay, and beside them stands how many there were": (
        Elide(A, first=2),
        '{"a": [1.0, 2, 3], "b": 1}',
        '{"a":[1.0,2],"b":1,"_elided":{"a":"2 of 3"}}',
    ),
    "three of them where the rule does not say": (
        Elide(A),
        '{"a": [1, 2, 3, 4]}',
        '{"a":[1,2,3],"_elided":{"a":"3 of 4"}}',
    ),
    "or both": (
        Elide(A, first=1, last=2),
        '{"a": [1, 2, 3, 4]}',
        '{"a":[1,3,4],"_elided":{"a":"first 1 and last 2 of 4"}}',
    ),
    "the last few": (
        Elide(A, last=2),
        '{"a": [1, 2, 3]}',
        '{"a":[2,3],"_elided":{"a":"last 2 of 3"}}',
    ),
    "an array that is not longer stays": (Elide(A, 1, 1), '{"a": [1, 2]}', '{"a":[1,2]}'),
    "in every object that holds one": (
        Elide(Path.parse("items.tags"), 1),
        '{"items": [{"tags": [1, 2]}, {"tags": [1]}, {"tags": null}, {"tags": [1, 2, 3]}]}',
        '{"items":[{"tags":[1],"_elided":{"tags":"1 of 2"}},{"tags":[1]},{"tags":null},'
        '{"tags":[1],"_elided":{"tags":"1 of 3"}}]}',
    ),
    "several arrays of one object share a note": (
        Elide(Path.parse("*s"), 1),
        '{"as": [1, 2], "bs": [3, 4, 5], "c": [6, 7]}',
        '{"as":[1],"bs":[3],"c":[6,7],"_elided":{"bs":"1 of 3","as":"1 of 2"}}',
    ),
    "a note that upstream calls the same stays, and ours has a free name": (
        Elide(Path.parse("*s"), 1),
        '{"as": [1, 2], "_elided": {"as": "mine"}, "bs": [3, 4]}',
        '{"as":[1],"_elided":{"as":"mine"},"bs":[3],"_elided_":{"bs":"1 of 2","as":"1 of 2"}}',
    ),
    "arrays in an array are counted together at the top": (
        Elide(Path.parse("grid[]"), 1),
        '{"grid": [[1, 2], [3], [4, 5, 6]]}',
        '{"grid":[[1],[3],[4]],"_elided":{"grid[]":"2 of 5"}}',
    ),
    "arrays inside each other are shortened too": (
        Elide(Path.parse("**"), 1),
        '{"a": [{"b": [1, 2]}, 3]}',
        '{"a":[{"b":[1],"_elided":{"b":"1 of 2"}}],"_elided":{"a":"1 of 2"}}',
    ),
}


@pytest.mark.parametrize(("step", "before", "after"), CASES.values(), ids=CASES)
def test_an_array_is_shortened_and_its_object_says_so(step: Elide, before: str, after: str) -> None:
    document, told = Document.read(before.encode()), call(structured=True)
    step(document.root, told)
    assert document.encode().decode() == after
    assert document.changed == (after.encode() != compact(before.encode()))
    assert told.notices == []


def test_two_steps_share_a_note() -> None:
    steps = Elide(A, 1), Elide(Path.parse("b"), 2)
    assert shaped(b'{"a": [1, 2], "b": [1, 2, 3]}', *steps) == (
        b'{"a":[1],"b":[1,2],"_elided":{"a":"1 of 2","b":"2 of 3"}}'
    )


def test_a_root_array_has_its_note_beside_it() -> None:
    told = call()
    assert shaped(b"[1, 2.0, 3]", Elide(first=2), at=told) == b"[1,2.0]"
    assert told.notices == [Notice("_elided", {"items": "2 of 3"})]


def test_arrays_in_a_root_array_have_their_note_beside_it_too() -> None:
    told, step = call(), Elide(Path.parse("[]"), 1)
    assert shaped(b"[[1, 2], [3, 4]]", step, at=told) == b"[[1],[3]]"
    assert told.notices == [Notice("_elided", {"[]": "2 of 4"})]


def test_lines_are_shortened_as_a_text_with_a_notice() -> None:
    document, told = Document(Pieces(["a", "b", "c"])), call(structured=True)
    Elide(first=1, last=1)(document.root, told)
    assert isinstance(document.cell[0], Pieces)
    assert document.cell[0] == ["a", "c"]
    assert told.notices == [Notice("_elided", "first 1 and last 1 of 3")]
