"""What counts as nothing, and when a document is one of which nothing was left."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from proxy.document.paths import Path
from proxy.document.tree import Document, row_type
from proxy.shaping.steps import emptied, hollow
from proxy.transforms.base import Call
from proxy.transforms.drop import Drop

ROW = row_type(["id", "title"])


@pytest.mark.parametrize(
    ("value", "nothing"),
    [
        (None, True),
        ("", True),
        ({}, True),
        (Raw(b"null"), True),
        (Raw(b'""'), True),
        (Raw(b"{}"), True),
        ([{}, {}], True),
        ({"items": [{}, {"a": None}]}, True),
        ([msgspec.json.decode(b"{}", type=ROW)], True),
        ([msgspec.json.decode(b'{"id": null}', type=ROW), None], True),
        ([], False),
        (Raw(b"[]"), False),
        ({"items": []}, False),
        ({"a": {}, "n": 0}, False),
        (False, False),
        (0, False),
        ("text", False),
        ([{}, Raw(b"0")], False),
        (Raw(b'{"a":{}}'), False),
        ([msgspec.json.decode(b'{"title": "x"}', type=ROW)], False),
    ],
)
def test_nothing_is_what_holds_no_value(value: Any, nothing: bool) -> None:
    assert hollow(value) is nothing


@pytest.mark.parametrize(
    ("came", "left", "gone"),
    [
        ('{"a": 1}', {}, True),
        ('{"a": {}, "b": 1}', {}, True),
        ('{"items": [{"a": 1}]}', {"items": [{}]}, True),
        ('{"user": {"handle": "x"}}', {"login": None}, True),
        ('[{"a": 1}, {"a": 2}]', [{}, {}], True),
        # What came may be what is meant.
        ('{"user": null, "id": 1}', {"login": None}, False),
        ('{"out": "", "took": 5}', {"out": Raw(b'""')}, False),
        ('{"options": {}, "took": 5}', {"options": Raw(b"{}")}, False),
        # Nothing came.
        ("{}", {}, False),
        ('{"progress": null}', {"summary": None}, False),
        ('{"items": [{}, {}]}', {"items": [{}, {}]}, False),
        # Something is left.
        ('{"items": [1, 2]}', {"items": []}, False),
        ('{"items": [1, 2]}', [], False),
    ],
)
def test_a_document_is_emptied_where_it_held_something_and_nothing_of_it_is_left(
    came: str, left: Any, gone: bool
) -> None:
    document = Document.read(came.encode())
    document.root.set(left)
    assert emptied(document) is gone


def test_a_document_of_several_blocks_is_emptied_alike() -> None:
    document = Document([Raw(b'{"a":1}'), Raw(b'{"a":2}')])
    Drop((Path.parse("a"),))(document.root, Call("t"))
    assert document.encode() == b"[{},{}]"
    assert emptied(document)
