"""A line as it is read before it is posted, and the responses to it."""

import pytest
from mcp_abridge.transports.client.request import client_request
from mcp_abridge.transports.correlation import answered_ids, refuses


@pytest.mark.parametrize(
    ("raw", "waiting"),
    [
        (b'{"id":1,"method":"ping"}', {b"1": "ping"}),
        (
            b'[{"id":1,"method":"a"},{"method":"n"},5,[],{"id":2,"method":"initialize"}]',
            {b"1": "a", b"2": "initialize"},
        ),
        (b'{"method":"notifications/x"}', {}),
        (b'{"id":null,"method":"x"}', {}),
        (b'{"id":1,"result":{}}', {}),
        (b"nonsense", {}),
    ],
)
def test_requests_wait_by_their_ids_as_they_are_spelled(
    raw: bytes, waiting: dict[bytes, str]
) -> None:
    post = client_request(raw)
    assert (post.raw, post.waiting) == (raw, waiting)
    assert post.method == next(iter(waiting.values()), post.method)
    assert post.begins is ("initialize" in waiting.values())


@pytest.mark.parametrize(
    ("raw", "ids", "refusal"),
    [
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1}}', [b"1"], True),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-1}}', [b"null"], True),
        (b'{"jsonrpc":"2.0","id":2,"error":{"code":-1}}', [b"2"], False),
        (b'{"id":1,"error":{"code":-1}}', [b"1"], False),
        (b'{"jsonrpc":"2.0","id":1,"error":{}}', [b"1"], False),
        (b'{"error":"insufficient_scope"}', [b"null"], False),
        (b"<html>", [], False),
    ],
)
def test_responses_are_recognized_and_refusals_by_id_and_code(
    raw: bytes, ids: list[bytes], refusal: bool
) -> None:
    assert answered_ids(raw) == ids
    assert refuses(raw, b"1") is refusal
