import pytest

from proxy.document.tree import Document, Pieces
from proxy.transforms.prune import Prune
from tests.documents import call

EMPTY = Prune(empty=True)


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
