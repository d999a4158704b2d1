"""A response line taken apart: nothing of it is lost on the way."""

from typing import Any

import pytest
from msgspec import Raw

from proxy.errors import DocumentError
from proxy.shaping.result.blocks import content_of
from proxy.shaping.result.parse import complete, failed, take_apart
from tests.given import answer, document, said
from tests.result.given import members

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
    line, whole = take_apart(raw), take_apart(raw, intact=True)

    assert list(line.envelope) == list(whole.envelope)
    assert [line.envelope[name] for name in line.envelope if name != "result"] == [
        whole.envelope[name] for name in whole.envelope if name != "result"
    ]
    assert set(line.members) == set(whole.members)
    texts = content_of(whole.members)[1]
    assert texts == (content_of(line.members) if line.content is None else line.content)[1]


def test_one_text_is_decoded_on_the_way_and_no_longer_in_its_block() -> None:
    line = take_apart(answer(said("text")))
    assert line.content == ([Raw(b'{"type":"text","text":""}')], {0: "text"})
    assert take_apart(answer(said("text")), intact=True).content is None


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
        take_apart(raw)


@pytest.mark.parametrize(
    ("value", "final"),
    [
        ({}, True),
        ({"resultType": "complete"}, True),
        ({"resultType": "input_required"}, False),
        ({"resultType": "task"}, False),
        ({"resultType": 5}, False),
        ({"task": {"taskId": "a"}}, False),
    ],
)
def test_a_result_is_complete_unless_it_says_otherwise(value: dict[str, Any], final: bool) -> None:
    assert complete(members(value)) is final


def test_only_is_error_true_marks_an_error() -> None:
    assert failed(members({"isError": True}))
    assert not failed(members({"isError": False}))
    assert not failed(members({"isError": "true"}))
    assert not failed({})
