"""What the document of a result is, rung by rung, and how it is written back."""

import json
from typing import Any

import pytest
from msgspec import Raw

from proxy import result
from proxy.clients import Shows
from proxy.document import Document, encode, plain
from proxy.errors import DocumentError
from proxy.result import Copy, Frame, Reading, Shown
from proxy.surrogates import mask
from proxy.transforms.base import Notice
from tests.given import document, said


def members(value: dict[str, Any]) -> dict[str, Raw]:
    return {name: Raw(encode(member)) for name, member in value.items()}


def reading(value: dict[str, Any], kind: result.Kind = "auto") -> Reading:
    found = result.read(members(value), kind)
    assert found is not None
    return found


def places(value: dict[str, Any], kind: result.Kind = "auto") -> tuple[Any, tuple[Copy, ...]]:
    found = reading(value, kind)
    return plain(found.document.cell[0]), found.frame.copies


def written(
    value: dict[str, Any], new: Any, notices: list[Notice] | None = None, **options: Any
) -> dict[str, Any]:
    """Read a result, put `new` in place of its document and write it."""
    found = reading(value)
    found.document.root.set(new)
    raw, _ = result.write(found.frame, found.document, notices or [], **options)
    decoded: dict[str, Any] = json.loads(encode(raw))
    return decoded


STRUCTURED, TEXT = Copy("structured"), Copy("text", blocks=(0,))


# The ladder


@pytest.mark.parametrize("indent", [None, 2], ids=["compact", "pretty"])
def test_structured_content_and_the_text_that_mirrors_it_are_one_document(
    indent: int | None,
) -> None:
    value = {"items": [1, 2.5, "ä"], "total": 2}
    mirrored = said(json.dumps(value, indent=indent), structuredContent=value)

    assert places(mirrored) == (value, (STRUCTURED, TEXT))


def test_a_text_with_the_same_values_in_other_words_mirrors_structured_content() -> None:
    mirrored = said('{"b": "\\u00e4", "a": 1.0}', structuredContent={"a": 1, "b": "ä"})

    assert places(mirrored)[1] == (STRUCTURED, TEXT)


@pytest.mark.parametrize("surrogate", [r"\ud800", r"x\uDFFFy"])
def test_lone_surrogates_do_not_keep_a_text_from_mirroring_structured_content(
    surrogate: str,
) -> None:
    structured = rb'{"a":"%s"}' % surrogate.encode()
    text = json.dumps({"type": "text", "text": f'{{"a": "{surrogate}"}}'})
    held = {"content": Raw(f"[{text}]".encode()), "structuredContent": Raw(mask(structured))}
    found = result.read(held, "auto")

    assert found is not None
    assert found.frame.copies == (STRUCTURED, TEXT)


@pytest.mark.parametrize("value", [3370, -1.5, True])
def test_a_number_or_word_that_stands_in_both_places_is_one_document(value: Any) -> None:
    mirrored = said(json.dumps(value), structuredContent=value)

    assert places(mirrored) == (value, (STRUCTURED, TEXT))
    assert places(said("Total: 5", structuredContent=5))[1] == (STRUCTURED,)


def test_a_mirror_is_found_behind_prose() -> None:
    mirrored = said("Two items:", '{"a":1}', structuredContent={"a": 1})

    assert places(mirrored)[1] == (STRUCTURED, Copy("text", blocks=(1,)))


@pytest.mark.parametrize("member", ["result", "content"])
def test_a_string_member_that_equals_the_text_makes_the_text_the_document(member: str) -> None:
    wrapped = said("long text", structuredContent={member: "long text"})

    assert places(wrapped) == ("long text", (Copy("member", member), TEXT))


def test_such_a_text_is_json_where_it_parses_to_an_object_or_array() -> None:
    wrapped = said("[1, 2]", structuredContent={"result": "[1, 2]"})

    assert places(wrapped) == ([1, 2], (Copy("member", "result"), TEXT))


def test_such_a_text_that_is_a_lone_number_stays_a_text() -> None:
    assert places(said("12", structuredContent={"result": "12"}))[0] == "12"


def test_an_array_in_one_member_and_a_block_for_each_element_are_one_document() -> None:
    listed = said('{"a": 1}', "two", structuredContent={"result": [{"a": 1}, "two"]})

    assert places(listed) == (
        {"result": [{"a": 1}, "two"]},
        (STRUCTURED, Copy("text", blocks=(0, 1))),
    )


def test_a_single_element_and_its_block_are_one_document_too() -> None:
    listed = said('{"a": 1}', structuredContent={"result": [{"a": 1}]})

    assert places(listed)[1] == (STRUCTURED, TEXT)


def test_a_text_that_mirrors_what_structured_content_wraps_is_a_copy_of_it() -> None:
    wrapped = said("Two:", "[1, 2]", structuredContent={"result": [1, 2]})

    assert places(wrapped) == ({"result": [1, 2]}, (STRUCTURED, Copy("text", blocks=(1,))))
    assert written(wrapped, {"result": [1]}) == said(
        "Two:", '{"result":[1]}', structuredContent={"result": [1]}
    )


@pytest.mark.parametrize("quoted", [False, True])
def test_structured_content_that_is_a_text_and_the_text_are_one_document(quoted: bool) -> None:
    value = said('"a b"' if quoted else "a b", structuredContent="a b")

    assert places(value) == ("a b", (STRUCTURED, Copy("text", blocks=(0,), quoted=quoted)))
    shortened = said('"a"' if quoted else "a", structuredContent="a")
    assert written(value, "a") == shortened


def test_structured_content_beside_unrelated_prose_is_the_document() -> None:
    assert places(said("Here you are.", structuredContent={"a": 1})) == ({"a": 1}, (STRUCTURED,))


def test_structured_content_beside_json_that_differs_is_the_document() -> None:
    assert places(said('{"a": 2}', structuredContent={"a": 1})) == ({"a": 1}, (STRUCTURED,))


def test_structured_content_without_any_text_is_the_document() -> None:
    assert places({"content": [], "structuredContent": [1]}) == ([1], (STRUCTURED,))
    assert places({"structuredContent": {"a": 1}}) == ({"a": 1}, (STRUCTURED,))


def test_structured_content_that_is_null_counts_as_absent() -> None:
    assert places({**said("text"), "structuredContent": None}) == ("text", (TEXT,))


def test_the_only_text_block_that_is_json_is_the_document() -> None:
    mixed = said("Found two:", "[1,2]", "Done.")

    assert places(mixed) == ([1, 2], (Copy("text", blocks=(1,)),))


def test_the_text_of_an_embedded_resource_counts_as_a_text() -> None:
    resource = {"type": "resource", "resource": {"uri": "file:///a", "text": '{"a":1}'}}

    assert places({"content": [resource]}) == ({"a": 1}, (TEXT,))


def test_several_text_blocks_that_are_json_are_one_array() -> None:
    assert places(said('{"a":1}', "[2]", '{"a":3}')) == (
        [{"a": 1}, [2], {"a": 3}],
        (Copy("text", blocks=(0, 1, 2), each=True),),
    )


def test_a_text_that_is_no_json_is_the_document_itself() -> None:
    assert places(said("plain words")) == ("plain words", (TEXT,))
    assert places(said("12")) == ("12", (TEXT,))
    assert places(said("")) == ("", (TEXT,))
    assert places(said('{"cut": ')) == ('{"cut": ', (TEXT,))


def test_a_block_that_is_one_json_string_counts_as_the_text_that_it_encodes() -> None:
    quoted = Copy("text", blocks=(0,), quoted=True)

    assert places(said('"two\\nlines"')) == ("two\nlines", (quoted,))
    assert places(said('"[1,2]"')) == ([1, 2], (quoted,))


def test_a_text_that_only_begins_with_a_quotation_mark_is_a_text() -> None:
    assert places(said('"Quoted" at first')) == ('"Quoted" at first', (TEXT,))


@pytest.mark.parametrize(
    "value",
    [
        {"content": []},
        {"content": [{"type": "image", "data": "", "mimeType": "image/png"}]},
        {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]},
        {"content": [{"type": "resource", "resource": {"uri": "a", "blob": "AA=="}}]},
        {"content": [{"type": "text"}, {"type": "text", "text": 5}, {"text": "no type"}, 7, None]},
        {},
        said("prose", "more prose"),
        said("[1]", "[2]", "prose"),
    ],
)
def test_a_result_with_none_of_these_has_no_document(value: dict[str, Any]) -> None:
    assert result.read(members(value), "auto") is None


def test_content_that_is_no_array_cannot_be_read() -> None:
    with pytest.raises(DocumentError, match="content: "):
        result.read(members({"content": {"type": "text"}}), "auto")


def test_a_rule_may_say_which_copy_is_the_document() -> None:
    both = said("[1]", "prose", structuredContent={"a": 1})

    assert places(both, "structured")[0] == {"a": 1}
    assert places(both, "blocks") == (
        [[1], "prose"],
        (Copy("text", blocks=(0, 1), each=True),),
    )
    assert places(said('{"a":1}'), "text") == ('{"a":1}', (TEXT,))
    held = {**said('{"a":1}'), "structuredContent": {"content": '{"a":1}'}}
    assert places(held, "text") == ('{"a":1}', (Copy("member", "content"), TEXT))
    assert places({**said("5"), "structuredContent": {"n": 5}}, "text") == ("5", (TEXT,))
    assert result.read(members(said("[1]")), "structured") is None
    assert result.read(members({"content": []}), "blocks") is None


# Complete and failed


@pytest.mark.parametrize(
    ("value", "complete"),
    [
        ({}, True),
        ({"resultType": "complete"}, True),
        ({"resultType": "input_required"}, False),
        ({"resultType": "task"}, False),
        ({"resultType": 5}, False),
        ({"task": {"taskId": "a"}}, False),
    ],
)
def test_a_result_is_complete_unless_it_says_otherwise(
    value: dict[str, Any], complete: bool
) -> None:
    assert result.complete(members(value)) is complete


def test_only_is_error_true_marks_an_error() -> None:
    assert result.failed(members({"isError": True}))
    assert not result.failed(members({"isError": False}))
    assert not result.failed(members({"isError": "true"}))
    assert not result.failed({})


# Writing


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
    raw, _ = result.write(frame, Document.read(b"[2]"), [])
    assert json.loads(encode(raw)) == said("[2]", structuredContent=[2])


def test_what_is_said_beside_an_array_stands_in_structured_content_too() -> None:
    value, notice = document({"a": 1}, structured=True), Notice("_elided", "2 of 3")

    assert written(value, [1, 2], [notice]) == {
        **said("[1,2]", '{"_elided":"2 of 3"}'),
        "structuredContent": {"items": [1, 2], "_elided": "2 of 3"},
    }


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
    found = result.read(raw, "auto")
    assert found is not None

    again, _ = result.write(found.frame, found.document, [])

    assert bytes(again["structuredContent"]) == spelled
    assert json.loads(bytes(again["content"]))[0]["text"].encode() == spelled


# Notices

NOTICE = Notice("pagination", {"total": 9})


def test_a_notice_stands_in_an_object() -> None:
    value = document({"a": 1}, structured=True)
    noticed = {"a": 1, "pagination": {"total": 9}}

    assert written(value, {"a": 1}, [NOTICE]) == document(noticed, structured=True)


def test_the_notice_of_a_root_array_stands_in_a_further_block() -> None:
    assert written(said("[1,2]"), [1], [NOTICE]) == said("[1]", '{"pagination":{"total":9}}')


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


def test_the_notice_of_an_array_in_structured_content_alone_stands_in_a_block() -> None:
    value = {"content": [], "structuredContent": [1, 2]}

    assert written(value, [1], [NOTICE]) == said(
        '{"pagination":{"total":9}}', structuredContent=[1]
    )


def test_the_notice_of_a_text_in_structured_content_stands_beside_it_in_both_copies() -> None:
    value = said("a b", structuredContent="a b")

    assert written(value, "a", [NOTICE]) == said(
        "a",
        '{"pagination":{"total":9}}',
        structuredContent={"text": "a", "pagination": {"total": 9}},
    )


# What a model sees

KINDS: tuple[Shows, ...] = ("structured", "text", "both", "either")


def test_visible_bytes_are_counted_for_each_kind_of_client() -> None:
    shown = reading(said("ä" * 4, "c", structuredContent={"a": 1})).shown

    assert shown == Shown(7, 9)
    assert [shown.to(kind) for kind in KINDS] == [7, 9, 16, 9]
    assert shown.most == 9


def test_without_structured_content_every_client_shows_the_text() -> None:
    shown = reading(said("abc")).shown

    assert [shown.to(kind) for kind in KINDS] == [3, 3, 3, 3]


def test_what_is_written_is_counted_too() -> None:
    found = reading(document({"a": "long"}, structured=True))
    found.document.root.set({"a": "b"})

    assert result.write(found.frame, found.document, [])[1] == Shown(9, 9)


# Blocks that are dropped


def test_blocks_of_a_type_are_dropped_and_counted_and_the_document_is_found_again() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    found = reading({"content": [image, {"type": "text", "text": "[1]"}, image]})

    frame, dropped = result.without(found.frame, ("image", "text"))

    assert dropped == {"image": 2}
    assert [json.loads(bytes(block)) for block in frame.blocks] == [{"type": "text", "text": "[1]"}]
    assert frame.copies == (TEXT,)


# Frames


def test_a_frame_comes_back_from_its_bytes_without_the_document() -> None:
    found = reading({**document({"a": "x" * 1000}, structured=True), "_meta": {"n": 1.50}})

    raw = found.frame.encode()
    frame = Frame.decode(raw)

    assert len(raw) < 400
    assert frame.copies == found.frame.copies
    again, _ = result.write(frame, Document.read(b'{"a":1}'), [])
    assert json.loads(encode(again)) == {
        **document({"a": 1}, structured=True),
        "_meta": {"n": 1.50},
    }
