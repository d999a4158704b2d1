"""A POST as it is read: its messages and ids, its caller, and what is wrong with it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request
from mcp_abridge.ruleset.loading.config_model import LimitsSpec
from mcp_abridge.transports.sidecar.refusal import RequestRefused
from mcp_abridge.transports.sidecar.request import PostedBody, client_name, read_post
from mcp_abridge.transports.sidecar.route import AccessRecord, Request
from multidict import CIMultiDict

from tests.builders import call, line
from tests.transports.http.route_server import route

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


async def read(
    raw: bytes, headers: Mapping[str, str] | None = None, **limits: Any
) -> tuple[PostedBody, AccessRecord]:
    """Read a body that arrived with these headers."""
    request = requested(raw, headers)
    return await read_post(request, route("http://x/mcp"), LimitsSpec(**limits)), request.record


def requested(
    body: bytes = b"", headers: Mapping[str, str] | None = None, path: str = "/mcp"
) -> Request:
    content = StreamReader(BaseProtocol(asyncio.get_running_loop()), 2**16)
    content.feed_data(body)
    content.feed_eof()
    request: Any = make_mocked_request("POST", path, CIMultiDict(headers or {}), payload=content)
    request.record = AccessRecord()
    own: Request = request
    return own


async def test_a_call_is_read() -> None:
    posted, record = await read(call("get", id="a"), {"Accept": "text/event-stream"})
    assert (posted.ids, posted.batch, posted.accepts) == ((b'"a"',), False, "stream")
    assert (posted.method, posted.modern, posted.initializes) == ("tools/call", False, False)
    assert (record.method, record.tool) == ("tools/call", "get")


OUTER, INNER = (f"00-{letter * 32}-{'b' * 16}-01" for letter in "ac")


@pytest.mark.parametrize(
    ("header", "meta", "trace"),
    [
        (None, None, ""),
        (OUTER, None, "a" * 32),
        (OUTER, INNER, "c" * 32),
        (OUTER, "c", "a" * 32),
        (None, INNER, "c" * 32),
        ("a", 5, ""),
    ],
)
async def test_the_trace_is_that_of_the_message_and_else_that_of_the_request(
    header: str | None, meta: object, trace: str
) -> None:
    headers = {} if header is None else {"Traceparent": header, "Tracestate": "x=1"}
    raw = call("get", **({} if meta is None else {"_meta": {"traceparent": meta}}))
    _, record = await read(raw, headers)
    assert record.trace_id == trace
    assert record.headers == {name.lower(): value for name, value in headers.items()}


async def test_the_requests_of_a_batch_are_counted_and_nothing_else() -> None:
    one, two = line(id=1, method="ping"), line(id=2.5, method="ping")
    rest = (line(method="notifications/x"), line(id=3, result={}), b"7", line(id=None, method="x"))
    posted, _ = await read(b"[" + b",".join((one, two, *rest)) + b"]")
    assert (posted.ids, posted.batch, posted.first, posted.method) == (
        (b"1", b"2.5"),
        True,
        None,
        "",
    )


@pytest.mark.parametrize(
    ("body", "headers", "modern"),
    [
        (call("get"), {}, False),
        (call("get"), {"mcp-protocol-version": "2026-07-28"}, True),
        (call("get", _meta=MODERN), {}, True),
        (b"[" + call("get", _meta=MODERN) + b"]", {}, True),
        (line(id=1, result={}), {}, False),
    ],
)
async def test_the_era_is_read_from_header_or_meta(
    body: bytes, headers: Mapping[str, str], modern: bool
) -> None:
    posted, _ = await read(body, headers)
    assert posted.modern is modern


async def test_only_a_request_needs_an_answer_that_the_client_takes() -> None:
    none = {"Accept": "image/png"}
    posted, _ = await read(line(method="notifications/initialized"), none)
    assert posted.ids == ()
    with pytest.raises(RequestRefused) as caught:
        await read(call("get"), none)
    assert (caught.value.status, caught.value.code) == (406, -32700)
    assert str(caught.value) == ("Acceptable media types: application/json, text/event-stream")


async def test_unreadable_json_may_be_a_request() -> None:
    posted, _ = await read(b'{"id": 1, "method": "x", "params": NaN}')
    assert (posted.messages, len(posted.ids)) == ([], 1)


async def test_a_stateless_request_names_its_client() -> None:
    meta = {"io.modelcontextprotocol/clientInfo": {"name": "somebody"}}
    posted, _ = await read(call("get", _meta=meta))
    assert client_name(posted) == "somebody"
    endless = {"io.modelcontextprotocol/clientInfo": {"name": "x" * 100_000}}
    posted, _ = await read(call("get", _meta=endless))
    assert client_name(posted) == "x" * 200
