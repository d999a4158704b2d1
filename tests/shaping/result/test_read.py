"""A response line is parsed, and what its document is, rung by rung."""

import json
from typing import Any

import pytest
from msgspec import Raw

from proxy.errors import DocumentError
from proxy.shaping.result.frame import Copy, content_of
from proxy.shaping.result.read import locate, parse
from tests.given import answer, document, said
from tests.result.given import STRUCTURED, TEXT, members, places, written


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


def test_lone_surrogates_do_not_keep_a_text_from_mirroring_structured_content() -> None:
    structured = '{"a":"\ufffd"}'.encode()  # replaced with the line
    text = json.dumps({"type": "text", "text": r'{"a": "\ud800"}'})
    held = {"content": Raw(f"[{text}]".encode()), "structuredContent": Raw(structured)}
    found = locate(held, "auto")

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
    assert locate(members(value), "auto") is None


def test_content_that_is_no_array_cannot_be_read() -> None:
    with pytest.raises(DocumentError, match="content: "):
        locate(members({"content": {"type": "text"}}), "auto")


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
    assert locate(members(said("[1]")), "structured") is None
    assert locate(members({"content": []}), "blocks") is None


LINES = [
    answer(document({"a": 1})),
    answer({**document({"a": 1}, structured=True), "isError": False, "_meta": {"n": 1.50}}),
    answer(said("two", "texts")),
    answer({**said("text"), "vendor": 1}),
    b'{ "result": {"content": [{"type": "text", "text": "a"}]}, "jsonrpc": "2.0", "id": 5.0}',
    rb'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\ud800"}]}}',
]


@pytest.mark.parametrize("raw", LINES)
def test_a_line_says_the_same_however_far_it_is_taken_apart(raw: bytes) -> None:
    line, whole = parse(raw), parse(raw, intact=True)

    assert list(line.envelope) == list(whole.envelope)
    assert [line.envelope[name] for name in line.envelope if name != "result"] == [
        whole.envelope[name] for name in whole.envelope if name != "result"
    ]
    assert set(line.members) == set(whole.members)
    texts = content_of(whole.members)[1]
    assert texts == (content_of(line.members) if line.content is None else line.content)[1]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":[]}',
        b"[]",
    ],
)
def test_a_line_without_a_result_object_is_not_taken_apart(raw: bytes) -> None:
    with pytest.raises(DocumentError):
        parse(raw)
