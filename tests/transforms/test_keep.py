import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.paths import Path
from proxy.document.tree import Document, Pieces
from proxy.errors import ShapeMismatch
from proxy.transforms.keep import Keep
from tests.documents import call, open_all, shaped, values


def keep(*paths: str, at: str = "") -> Keep:
    return Keep(tuple(map(Path.parse, paths)), Path.parse(at))


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
