"""How a document is written back into its result, where notices stand, and what is promised."""

import json
from typing import Any

import pytest
from msgspec import Raw

from proxy.document.tree import Document, encode
from proxy.shaping.result.frame import Frame, VisibleSize
from proxy.shaping.result.read import locate
from proxy.shaping.result.write import own_result, write
from proxy.transforms.base import Notice
from tests.given import answer, document, result, said
from tests.jobs import CONTRACT, shaped, structured
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
    found = locate(raw, "auto")
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
    assert own_result({"a": 1}, structured=True) == document({"a": 1}, structured=True)
    assert own_result("no", structured=True) == said("no", structuredContent={"text": "no"})
    assert own_result([1], error=True) == said("[1]", isError=True)


@pytest.mark.parametrize("more", ["", "validate: warn", "validate: refuse"])
def test_a_document_that_is_only_text_stands_in_structured_content_too(more: str) -> None:
    value = {**document({"n": 1}), "_meta": {"a": 1.0}}
    made = shaped(CONTRACT + more, value)
    assert made.raw == answer({**value, "structuredContent": {"n": 1}})
    assert made.warnings == ()


def test_a_kept_number_is_spelled_in_both_copies_as_the_server_spelled_it() -> None:
    text = said('{"n":1.0,"m":1e400}')
    made = shaped(CONTRACT + "response: [{keep: [n, m]}]", text)
    assert b'"structuredContent":{"n":1.0,"m":1e400}' in made.raw


@pytest.mark.parametrize(
    ("value", "promised"),
    [
        (said("just words"), {"text": "just words"}),
        (said("two", "blocks"), {"text": "two\nblocks"}),
        (document([1, 2]), {"text": "[1,2]"}),
        ({"content": []}, {"text": ""}),
    ],
)
def test_what_is_no_object_is_a_text_there(value: dict[str, Any], promised: Any) -> None:
    made = shaped(CONTRACT, value)
    assert structured(made) == promised
    assert result(made.raw)["content"] == value["content"]


@pytest.mark.parametrize(
    "value",
    [
        said("no", isError=True),
        {"resultType": "input_required", "content": []},
        document({"n": 1}, structured=True),
        said("prose", structuredContent={"n": 1}),
    ],
)
def test_an_error_a_question_and_what_is_structured_already_stay_as_they_came(
    value: dict[str, Any],
) -> None:
    assert shaped(CONTRACT, value).raw == answer(value)


def test_what_was_checked_as_the_text_of_a_member_is_what_stands_there() -> None:
    value = said('{"n":1.0}', structuredContent={"result": '{"n":1.0}'})
    assert shaped(CONTRACT + "validate: warn", value).raw == answer(value)
    made = shaped(CONTRACT + "validate: refuse", value)
    assert b'"structuredContent":{"n":1.0}' in made.raw
    assert result(made.raw)["content"] == value["content"]


def test_texts_beside_a_document_that_is_no_object_stand_in_promised_structured_content() -> None:
    contract = "response: [{elide: {at: '[].a', first: 1}}]\noutput_schema: {type: object}"
    made = shaped(contract, said("Found:", '[{"a":[1,2]}]'))

    expected = {"text": 'Found:\n[{"a":[1],"_elided":{"a":"1 of 2"}}]'}
    assert result(made.raw)["structuredContent"] == expected


def test_copies_text_gives_no_structured_content() -> None:
    assert structured(shaped(CONTRACT + "copies: text", document({"n": 1}))) is None
