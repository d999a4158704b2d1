"""The structuredContent that clients of a tool were promised."""

from typing import Any

import pytest

from tests.given import answer, document, result, said
from tests.jobs import CONTRACT, shaped, structured


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
