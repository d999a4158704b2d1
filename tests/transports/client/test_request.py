"""What is read of a line before it is posted, and of what comes back."""

import json

import pytest

from proxy.document.message import PROTOCOL_VERSION
from proxy.transports.client.request import answered, negotiated, read, refuses


def test_a_request_is_known_by_its_id_as_it_is_spelled() -> None:
    for id in (b"1", b'"1"', b"1.0"):
        assert read(b'{"id":' + id + b',"method":"ping"}').waiting == {id: "ping"}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"method":"notifications/x"}',
        b'{"id":null,"method":"x"}',
        b'{"id":1,"result":{}}',
        b'{"id":1,"method":5}',
        b"[]",
        b"nonsense",
        b'"text"',
    ],
)
def test_what_is_no_request_asks_nothing(raw: bytes) -> None:
    post = read(raw)
    assert (post.raw, list(post.waiting.values())) in ((raw, []), (raw, [""]))
    assert not post.begins


def test_a_batch_asks_for_each_of_its_requests() -> None:
    post = read(b'[{"id":1,"method":"a"},{"method":"n"},5,[],{"id":2,"method":"initialize"}]')
    assert post.waiting == {b"1": "a", b"2": "initialize"}
    assert post.method == "a"
    assert post.begins


@pytest.mark.parametrize(
    ("version", "modern"), [("2026-07-28", True), ("2025-11-25", False), (None, False), (5, False)]
)
def test_the_era_is_that_of_the_revision_that_a_request_names(
    version: object, modern: bool
) -> None:
    meta = {} if version is None else {PROTOCOL_VERSION: version}
    request = {"id": 1, "method": "tools/list", "params": {"_meta": meta}}
    assert read(json.dumps(request).encode()).modern is modern


@pytest.mark.parametrize(
    ("params", "id"),
    [('{"requestId":"a"}', b'"a"'), ('{"requestId":5}', b"5"), ("{}", None), ("[]", None)],
)
def test_a_cancellation_names_what_it_takes_back(params: str, id: bytes | None) -> None:
    raw = f'{{"method":"notifications/cancelled","params":{params}}}'.encode()
    assert read(raw).cancels == id


def test_only_a_subscription_lasts() -> None:
    assert read(b'{"id":1,"method":"subscriptions/listen"}').lasts
    assert not read(b'{"id":1,"method":"tools/call"}').lasts


@pytest.mark.parametrize(
    ("raw", "ids"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{}}', [b"7"]),
        (b'{"result":{},"id":"a"}', [b'"a"']),
        (b'{"id":7,"method":"ping"}', []),
        (b'{"error":{"code":1,"message":""}}', [b"null"]),
        (b'{"id":null,"error":{"code":1,"message":""}}', [b"null"]),
        (b"{", []),
        (b"[1,[2]]", []),
    ],
)
def test_responses_are_told_from_everything_else(raw: bytes, ids: list[bytes]) -> None:
    assert answered(raw) == ids


@pytest.mark.parametrize(
    ("raw", "refused"),
    [
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1}}', True),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-1}}', True),
        (b'{"jsonrpc":"2.0","error":{"code":-1}}', True),
        (b'{"jsonrpc":"2.0","id":2,"error":{"code":-1}}', False),
        (b'{"jsonrpc":"2.0","id":"1","error":{"code":-1}}', False),
        (b'{"id":1,"error":{"code":-1}}', False),
        (b'{"jsonrpc":"2.0","id":1,"error":{}}', False),
        (b'{"error":"insufficient_scope"}', False),
        (b'{"id":1,"result":{}}', False),
        (b"<html>", False),
        (b"[]", False),
        (b"", False),
    ],
)
def test_an_error_is_of_a_request_where_it_has_its_id_or_none(raw: bytes, refused: bool) -> None:
    assert refuses(raw, b"1") is refused


def test_the_negotiated_revision_is_read_where_there_is_one() -> None:
    assert negotiated(b'{"id":0,"result":{"protocolVersion":"2025-06-18"}}') == "2025-06-18"
    for raw in (b'{"id":0,"result":{}}', b'{"id":0,"error":{}}', b"[]", b"{"):
        assert negotiated(raw) is None
