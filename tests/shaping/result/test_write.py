"""How a document is written back into its result, and where notices stand."""

import json
from typing import Any

import pytest
from msgspec import Raw

from proxy.document.tree import Document, encode
from proxy.shaping.result.frame import Frame
from proxy.shaping.result.locate import read
from proxy.shaping.result.visible import VisibleSize
from proxy.shaping.result.write import made, write
from proxy.transforms.base import Notice
from tests.given import document, said
from tests.result.given import reading, written


def test_both_copies_are_rewritten_and_all_else_stays() -> None:
    value = {**document({"a": [1, 2]}, structured=True), "_meta": {"x": 1}, "vendor": None}
    value["content"][0]["annotations"] = {"priority": 1}

    assert written(value, {"a": [1]}) == {
        "content": [{"type": "text", "text": '{"a":[1]}', "annotations": {"priority": 1}}],
        "structuredContent": {"a": [1]},
        "_meta": {"x": 1},
        "vendor": None,
    }


@pytest.mark.parametrize(
    ("new", "text", "structured"),
    [
        ([1, 2], "[1,2]", {"items": [1, 2]}),
        (None, "null", {"text": "null"}),
        (7, "7", {"text": "7"}),
        ("a b", "a b", {"text": "a b"}),
    ],
)
def test_structured_content_that_was_an_object_is_one_still(
    new: Any, text: str, structured: dict[str, Any]
) -> None:
    value = document({"a": [1, 2]}, structured=True)

    assert written(value, new) == said(text, structuredContent=structured)


def test_structured_content_that_came_as_an_array_stays_one() -> None:
    value = document([1, 2], structured=True)

    assert written(value, [1]) == said("[1]", structuredContent=[1])
    assert written(value, None) == said("null", structuredContent={"text": "null"})
    frame = Frame.decode(reading(value).frame.encode())
    raw, _ = write(frame, Document.read(b"[2]"), [])
    assert json.loads(encode(raw)) == said("[2]", structuredContent=[2])


def test_an_array_with_a_notice_is_one_object_in_both_copies() -> None:
    value, notice = document({"a": 1}, structured=True), Notice("_elided", {"items": "2 of 3"})

    assert written(value, [1, 2], [notice]) == document(
        {"items": [1, 2], "_elided": {"items": "2 of 3"}}, structured=True
    )


def test_blocks_beside_the_document_stay_where_they_are() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    value = {"content": [image, {"type": "text", "text": "[1,2]"}, image]}

    assert written(value, [1])["content"] == [image, {"type": "text", "text": "[1]"}, image]


def test_the_text_of_a_resource_is_written_inside_it() -> None:
    resource = {"type": "resource", "resource": {"uri": "file:///a", "text": "[1,2]"}}

    assert written({"content": [resource]}, [1])["content"] == [
        {"type": "resource", "resource": {"uri": "file:///a", "text": "[1]"}}
    ]


def test_a_text_held_in_a_member_is_written_in_both_places() -> None:
    value = said("long text", structuredContent={"result": "long text"})

    assert written(value, "long") == said("long", structuredContent={"result": "long"})


def test_a_json_string_is_written_back_as_one() -> None:
    assert written(said('"two\\nlines"'), "a\nb") == said('"a\\nb"')


def test_an_array_of_blocks_is_written_a_block_for_each_element() -> None:
    value = said('{"a":1}', '{"a":2}', '{"a":3}')

    assert written(value, [{"a": 1}, "b"]) == said('{"a":1}', "b")
    assert written(value, []) == said()
    assert written(value, [1, 2, 3, 4]) == said("1", "2", "3", "4")


def test_blocks_that_become_an_object_are_written_as_one() -> None:
    assert written(said("[1]", "[2]"), {"items": []}) == said('{"items":[]}')


def test_the_blocks_of_elements_give_way_to_one_text() -> None:
    listed = said("1", "true", "x", structuredContent={"result": [1, True, "x"]})

    assert written(listed, {"a": 1}) == said('{"a":1}', structuredContent={"a": 1})


def test_one_copy_can_be_left_out() -> None:
    value = document({"a": [1, 2]}, structured=True)

    assert written(value, {"a": 1}, copies="text") == said('{"a":1}')
    assert written(value, {"a": 1}, copies="structured") == said(structuredContent={"a": 1})
    assert written(said("[1]"), [2], copies="structured") == said("[2]")
    nothing = said("[1]", structuredContent=None)
    assert written(nothing, [2], copies="structured") == nothing | said("[2]")
    prose = said("prose", structuredContent={"a": 1})
    assert written(prose, {"a": 2}, copies="text") == said("prose", structuredContent={"a": 2})


def test_the_layout_can_be_kept() -> None:
    assert written(said('{\n  "a": 1\n}'), {"a": [1]}, indent=2) == said(
        '{\n  "a": [\n    1\n  ]\n}'
    )


def test_a_value_that_was_not_opened_keeps_its_spelling_in_both_copies() -> None:
    spelled = rb'{"a":1.0,"b":1e400,"c":12345678901234567890123,"d":-0,"e":"\/ \u00e9"}'
    block = json.dumps({"type": "text", "text": spelled.decode()}).encode()
    raw = {"content": Raw(b"[" + block + b"]"), "structuredContent": Raw(spelled)}
    found = read(raw, "auto")
    assert found is not None

    again, _ = write(found.frame, found.document, [])

    assert bytes(again["structuredContent"]) == spelled
    assert json.loads(bytes(again["content"]))[0]["text"].encode() == spelled


def test_what_is_written_is_counted_too() -> None:
    found = reading(document({"a": "long"}, structured=True))
    found.document.root.set({"a": "b"})

    assert write(found.frame, found.document, [])[1] == VisibleSize(9, 9)


# Notices


NOTICE = Notice("pagination", {"total": 9})


def test_a_notice_stands_in_an_object() -> None:
    value = document({"a": 1}, structured=True)
    noticed = {"a": 1, "pagination": {"total": 9}}

    assert written(value, {"a": 1}, [NOTICE]) == document(noticed, structured=True)


def test_an_array_with_a_notice_is_one_block_with_an_object() -> None:
    assert written(said("[1,2]"), [1], [NOTICE]) == document(
        {"items": [1], "pagination": {"total": 9}}
    )


def test_a_json_string_with_a_notice_is_one_block_with_an_object() -> None:
    assert written(said('"long text"'), "long", [NOTICE]) == document(
        {"text": "long", "pagination": {"total": 9}}
    )


def test_the_notice_of_a_text_stands_in_a_further_block_right_behind_it() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    value = {"content": [{"type": "text", "text": "long"}, image]}
    bare = Notice("truncation", {"truncated": True}, bare=True)

    assert written(value, "l", [bare])["content"] == [
        {"type": "text", "text": "l"},
        {"type": "text", "text": '{"truncated":true}'},
        image,
    ]


def test_the_notice_of_a_text_held_in_a_member_stands_in_both_places() -> None:
    value = said("long", structuredContent={"result": "long"})

    assert written(value, "l", [NOTICE]) == said(
        "l",
        '{"pagination":{"total":9}}',
        structuredContent={"result": "l", "pagination": {"total": 9}},
    )


def test_the_notice_of_json_held_in_a_member_stands_in_that_json() -> None:
    value = said('{"a":1}', structuredContent={"result": '{"a":1}'})
    noticed = '{"a":1,"pagination":{"total":9}}'

    assert written(value, {"a": 1}, [NOTICE]) == said(
        noticed, structuredContent={"result": noticed}
    )


def test_an_array_with_a_notice_is_one_object_in_structured_content_alone() -> None:
    value = {"content": [], "structuredContent": [1, 2]}

    assert written(value, [1], [NOTICE]) == said(
        structuredContent={"items": [1], "pagination": {"total": 9}}
    )


def test_the_notice_of_a_text_in_structured_content_stands_beside_it_in_both_copies() -> None:
    value = said("a b", structuredContent="a b")

    assert written(value, "a", [NOTICE]) == said(
        "a",
        '{"pagination":{"total":9}}',
        structuredContent={"text": "a", "pagination": {"total": 9}},
    )


# Results of the proxy's own


def test_a_result_of_the_proxys_own_holds_a_document_or_a_text() -> None:
    assert made({"a": 1}, structured=True) == document({"a": 1}, structured=True)
    assert made("no", structured=True) == said("no", structuredContent={"text": "no"})
    assert made([1], error=True) == said("[1]", isError=True)
