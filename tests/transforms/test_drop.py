import pytest

from proxy.document.paths import Path
from proxy.document.tree import Document, Pieces, compact
from proxy.transforms.drop import Drop
from tests.documents import call


def drop(*paths: str, at: str = "") -> Drop:
    return Drop(tuple(map(Path.parse, paths)), Path.parse(at))


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
