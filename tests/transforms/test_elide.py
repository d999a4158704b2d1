from proxy.document.paths import Path
from proxy.document.tree import Document, Pieces
from proxy.transforms.base import Notice
from proxy.transforms.elide import Elide
from tests.documents import call, shaped


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
