"""A response as the models of each kind of client are shown it."""

import json
from typing import Any

import pytest
from mcp_abridge.errors import DocumentError
from mcp_abridge.replay import answers
from mcp_abridge.replay.answers import ClientView

from tests.builders import answer, line, rule, tool_result


def read(result: dict[str, Any]) -> ClientView:
    return answers.read(answer(result))


def test_an_error_response_has_failed_with_its_words() -> None:
    view = answers.read(line(id=1, error={"code": 1, "message": "no such tool"}))

    assert (view.failed, view.text, view.texts) == (True, "no such tool", ())


def test_a_line_that_is_no_response_cannot_be_read() -> None:
    for raw in (line(id=1), line(id=1, result=5), line(id=1, result={"content": 5}), b"[]", b"x"):
        with pytest.raises(DocumentError):
            answers.read(raw)


def test_without_a_document_before_the_only_one_after_is_taken() -> None:
    assert answers.document(read(tool_result("[1]")), None) == [1]
    assert answers.document(read(tool_result("x", structuredContent={"a": 1})), None) == {"a": 1}
    with pytest.raises(DocumentError, match="the answer has no document, but 2 texts"):
        answers.document(read(tool_result("x", "y")), None)


def test_texts_are_blocks_if_a_bound_makes_them_the_document() -> None:
    assert answers.located(answer(tool_result("x", "y")), rule("response: []")) is None
    assert answers.located(answer(tool_result("x", "y")), rule("max_bytes: 1000")) is not None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2]", [1, 2]),
        (' {"a": 1.50}', {"a": 1.5}),
        ("5", "5"),
        ("{cut", "{cut"),
        ('{"a": NaN}', '{"a": NaN}'),
        ('["\\ud800"]', ["\ufffd"]),
    ],
)
def test_a_text_is_the_object_or_array_that_it_spells_else_itself(text: str, value: Any) -> None:
    assert answers.value(text) == value
    assert json.dumps(value) == json.dumps(answers.value(text))


def test_the_texts_of_a_client_that_is_not_known_are_those_whose_bytes_are_counted() -> None:
    value = {"rows": [{"id": 1}, {"id": 2}]}
    for text in (json.dumps(value, indent=2), "2 rows"):
        view = read(tool_result(text, structuredContent=value))
        [copy] = view.texts_for("either")
        assert len(copy) == view.visible_size.to("either")
