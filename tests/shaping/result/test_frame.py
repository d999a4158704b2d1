"""What stands around a document: blocks, texts and sizes, found again without the document."""

import json

import pytest

from proxy.ruleset.clients import Shows
from tests.given import document, said
from tests.result.given import reading


@pytest.mark.parametrize(
    ("shows", "size"),
    [("structured", 7), ("text", 10), ("either", 10), ("both", 17), ("once", 17)],
)
def test_visible_bytes_are_counted_for_each_kind_of_client(shows: Shows, size: int) -> None:
    shown = reading(said("ä" * 4, '"c', structuredContent={"a": 1})).size

    assert (shown.to(shows), shown.most) == (size, 10)


def test_a_copy_that_is_equal_to_the_byte_is_counted_once_for_clients_that_show_it_once() -> None:
    size = reading(document({"a": 1}, structured=True)).size

    assert (size.to("once"), size.to("both")) == (7, 14)


def test_escapes_count_for_clients_that_show_json_of_the_blocks_or_of_the_result() -> None:
    value = said('"a"\n', "ä", structuredContent={"a": 1})
    size = reading(value).size

    shown = json.dumps(value["content"], ensure_ascii=False, separators=(",", ":")).encode()
    assert len(shown) <= size.to("blocks") <= len(shown) + 2
    whole = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert len(whole) <= size.to("result") <= len(whole) + 50
