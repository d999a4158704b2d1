"""The request that a message of the server belongs to, by its own members."""

import json

import pytest
from mcp_abridge.document.message import error
from mcp_abridge.transports.correlation import (
    Correlation,
    correlate,
    error_for_long_line,
)
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.stdio.pipes import LongLine

SUBSCRIBED = {"_meta": {"io.modelcontextprotocol/subscriptionId": "a"}}


@pytest.mark.parametrize(
    ("message", "whose"),
    [
        ({"id": "7", "error": {"code": 1}}, Correlation(answers=b'"7"')),
        ({"id": 7, "result": {"x": "y" * 9000}}, Correlation(answers=b"7")),
        (
            {"method": "notifications/progress", "params": {"progressToken": 5}},
            Correlation(token=b"5"),
        ),
        (
            {"method": "notifications/cancelled", "params": {"requestId": "x"}},
            Correlation(cancels=b'"x"'),
        ),
        ({"method": "notifications/x", "params": SUBSCRIBED}, Correlation(subscription=b'"a"')),
        ({"method": "notifications/message", "params": {}}, Correlation()),
        ({"id": 7, "method": "sampling/createMessage", "params": {}}, Correlation()),
        ({"id": None, "error": {"code": -32700}}, Correlation(answers=b"null")),
    ],
)
def test_a_message_is_correlated_by_its_own_members(
    message: dict[str, object], whose: Correlation
) -> None:
    assert correlate(json.dumps({"jsonrpc": "2.0", **message}).encode()) == whose


@pytest.mark.parametrize("raw", [b'%s,"result":{"x":NaN}}', b'Loading... %s,"result":{}}'])
def test_a_broken_response_or_one_after_noise_has_its_id(raw: bytes) -> None:
    assert correlate(raw % b'{"jsonrpc":"2.0","id":7').answers == b"7"


def too_long(start: bytes) -> LongLine:
    return LongLine("too long", start, b"", 99)


ID_LAST = LongLine("dropped", b'{"result":{"x":', b'"},"jsonrpc":"2.0","id":8}', 99)


@pytest.mark.parametrize(
    ("line", "waiting", "answered"),
    [
        (too_long(b'{"jsonrpc":"2.0","id":7,"result":{'), [b"7", b"8"], b"7"),
        (too_long(b'{"result":{"x":'), [b"7"], None),
        (too_long(b'{"jsonrpc":"2.0","id":6,"result":{'), [b"7"], None),
        (ID_LAST, [b"7", b"8"], b"8"),
        (ID_LAST, [b"7"], None),
    ],
)
def test_a_request_whose_answer_is_too_long_is_answered_with_that(
    line: LongLine, waiting: list[bytes], answered: bytes | None
) -> None:
    lines = error_for_long_line(line, 50, Log("error"), waiting.__contains__)
    reason = "a message of 99 bytes from the server is over the limit of 50 bytes"
    assert lines == ([] if answered is None else [error(answered, -1, reason)])
