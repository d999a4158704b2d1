import json

from hypothesis import given
from hypothesis import strategies as st

from proxy.document.paths import Path
from proxy.document.tree import Document
from proxy.transforms.sort import Sort
from tests.documents import call, shaped

ITEMS = Path.parse("items")


def test_a_sorted_array_is_not_changed() -> None:
    document = Document.read(b"[1, 2.0, 2]")
    Sort()(document.root, call())
    assert not document.changed


@given(st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_are_sorted_as_python_sorts_them(numbers: list[float]) -> None:
    assert json.loads(shaped(json.dumps(numbers).encode(), Sort())) == sorted(numbers)


@given(st.lists(st.text()), st.booleans())
def test_texts_are_sorted_by_their_bytes(texts: list[str], descending: bool) -> None:
    found = json.loads(shaped(json.dumps(texts).encode(), Sort(descending=descending)))
    assert found == sorted(texts, key=str.encode, reverse=descending)
