import pytest

from proxy.document.paths import Path
from proxy.document.tree import Document, Pieces
from proxy.transforms.prune import Prune
from tests.documents import call, shaped

EMPTY = Prune(empty=True)

# What is pruned, of what, and what is left of it.
CASES: dict[str, tuple[Prune, str, str]] = {
    "members that are null go, at any depth": (
        Prune(),
        '{"a": null, "b": {"c": null, "d": [{"e": null, "f": 1.0}]}}',
        '{"b":{"d":[{"f":1.0}]}}',
    ),
    "other values that say little stay": (
        Prune(),
        '{"a": "", "b": [], "c": {}, "d": false, "e": 0, "f": "null", "g": null}',
        '{"a":"","b":[],"c":{},"d":false,"e":0,"f":"null"}',
    ),
    "elements of arrays stay": (
        Prune(),
        '[null, [null], {"a": null}]',
        "[null,[null],{}]",
    ),
    "empty ones go if they are asked to, also by the loss of their members": (
        EMPTY,
        '{"a": "", "b": [ ], "c": { }, "d": {"e": null}, "f": {"g": {"h": ""}}, "i": 0, "j": " "}',
        '{"i":0,"j":" "}',
    ),
    "an array of nothing but nulls is not empty": (
        EMPTY,
        '{"a": [null, {"b": []}]}',
        '{"a":[null,{}]}',
    ),
    "what is elsewhere stays": (
        Prune(at=Path.parse("items")),
        '{"items": [{"a": null, "b": 1e400}], "c": null}',
        '{"items":[{"b":1e400}],"c":null}',
    ),
}


@pytest.mark.parametrize(("step", "given", "expected"), CASES.values(), ids=CASES)
def test_what_has_no_value_goes(step: Prune, given: str, expected: str) -> None:
    assert shaped(given.encode(), step) == expected.encode()
    assert shaped(expected.encode(), step) == expected.encode()


@pytest.mark.parametrize("step", [Prune(), EMPTY])
@pytest.mark.parametrize("given", ['{"a":"null and void","b":[1]}', '"null"', "null", "17"])
def test_a_document_without_any_is_not_changed(step: Prune, given: str) -> None:
    document = Document.read(given.encode())
    step(document.root, call())
    assert not document.changed
    assert document.encode() == given.encode()


def test_the_pieces_of_a_text_stay() -> None:
    pieces = Pieces(["", "a"])
    document = Document(pieces)
    EMPTY(document.root, call())
    assert document.cell[0] is pieces


def test_a_path_that_names_nothing_is_told() -> None:
    about = call()
    Prune(at=Path.parse("gone"))(Document.read(b'{"a": null}').root, about)
    assert about.missing == ["gone"]
