"""What is read of a line before it is posted, and of what comes back."""

import pytest

from proxy.document.message import PROTOCOL_VERSION
from proxy.transports.client.request import answered, negotiated, read, refuses


@pytest.mark.parametrize(
    ("raw", "waiting"),
    [
        (b'{"id":1,"method":"ping"}', {b"1": "ping"}),
        (b'{"id":"1","method":"ping"}', {b'"1"': "ping"}),
        (b'{"id":1.0,"method":"ping"}', {b"1.0": "ping"}),
        (
            b'[{"id":1,"method":"a"},{"method":"n"},5,[],{"id":2,"method":"initialize"}]',
            {b"1": "a", b"2": "initialize"},
        ),
        (b'{"method":"notifications/x"}', {}),
        (b'{"id":null,"method":"x"}', {}),
        (b'{"id":1,"result":{}}', {}),
        (b'{"id":1,"method":5}', {}),
        (b"[]", {}),
        (b"nonsense", {}),
        (b'"text"', {}),
    ],
)
def test_requests_wait_by_their_ids_as_they_are_spelled(
    raw: bytes, waiting: dict[bytes, str]
) -> None:
    post = read(raw)
    assert (post.raw, post.waiting) == (raw, waiting)
    assert post.method == next(iter(waiting.values()), post.method)
    assert post.begins is ("initialize" in waiting.values())


@pytest.mark.parametrize(
    ("version", "modern"), [('"2026-07-28"', True), ('"2025-11-25"', False), ("5", False)]
)
def test_the_era_is_that_of_the_revision_that_a_request_names(version: str, modern: bool) -> None:
    params = f'{{"_meta":{{"{PROTOCOL_VERSION}":{version}}}}}'
    assert read(f'{{"id":1,"method":"x","params":{params}}}'.encode()).modern is modern


@pytest.mark.parametrize(("params", "id"), [('{"requestId":"a"}', b'"a"'), ("[]", None)])
def test_a_cancellation_names_what_it_takes_back(params: str, id: bytes | None) -> None:
    assert read(f'{{"method":"notifications/cancelled","params":{params}}}'.encode()).cancels == id


@pytest.mark.parametrize(
    ("raw", "ids", "refused"),
    [
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1}}', [b"1"], True),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-1}}', [b"null"], True),
        (b'{"jsonrpc":"2.0","error":{"code":-1}}', [b"null"], True),
        (b'{"jsonrpc":"2.0","id":2,"error":{"code":-1}}', [b"2"], False),
        (b'{"jsonrpc":"2.0","id":"1","error":{"code":-1}}', [b'"1"'], False),
        (b'{"id":1,"error":{"code":-1}}', [b"1"], False),
        (b'{"jsonrpc":"2.0","id":1,"error":{}}', [b"1"], False),
        (b'{"error":"insufficient_scope"}', [b"null"], False),
        (b'{"result":{},"id":"a"}', [b'"a"'], False),
        (b'{"id":7,"method":"ping"}', [], False),
        (b"<html>", [], False),
        (b"[1,[2]]", [], False),
        (b"", [], False),
    ],
)
def test_responses_are_told_from_everything_else_and_refusals_by_id_and_code(
    raw: bytes, ids: list[bytes], refused: bool
) -> None:
    assert answered(raw) == ids
    assert refuses(raw, b"1") is refused


def test_the_negotiated_revision_is_read_where_there_is_one() -> None:
    assert negotiated(b'{"id":0,"result":{"protocolVersion":"2025-06-18"}}') == "2025-06-18"
    for raw in (b'{"id":0,"result":{}}', b'{"id":0,"error":{}}', b"[]", b"{"):
        assert negotiated(raw) is None
