"""The headers and members of a stateless request, and the refusal of one without them."""

import json
from typing import Any

import pytest
from mcp_abridge.document import message
from mcp_abridge.transports.sidecar.header_checks import check, status_of
from mcp_abridge.transports.sidecar.refusal import RequestRefused
from mcp_abridge.transports.sidecar.request import PostedBody
from multidict import CIMultiDict

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
PARAMETERS = {"say": ((("to",), "Mcp-Param-To"), (("times",), "Mcp-Param-Times"))}


def post(method: str = "tools/list", meta: Any = META, **params: Any) -> PostedBody:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return of(json.dumps(body).encode())


def of(raw: bytes) -> PostedBody:
    read = message.read(raw)
    batch = not isinstance(read, message.Message)
    messages = [read] if isinstance(read, message.Message) else []
    ids = tuple(each.key for each in messages if each.key is not None)
    return PostedBody(raw, messages, batch, ids, "either", True)


def headers(method: str = "tools/list", **more: str) -> CIMultiDict[str]:
    pairs = {"mcp_protocol_version": VERSION, "mcp_method": method, **more}
    return CIMultiDict((name.replace("_", "-"), value) for name, value in pairs.items())


def refusal(read: PostedBody, sent_headers: CIMultiDict[str]) -> tuple[int, int, str] | None:
    try:
        check(read, sent_headers, PARAMETERS)
    except RequestRefused as error:
        return error.status, error.code, str(error)
    return None


@pytest.mark.parametrize(
    ("read", "sent_headers"),
    [
        (post(), headers()),
        (post("tools/call", name="say"), headers("tools/call", mcp_name="say")),
        (post("tools/call", name="é"), headers("tools/call", mcp_name="=?base64?w6k=?=")),
        (post("tasks/get", taskId="t"), headers("tasks/get")),
        (post(meta={**META, "x": 1}), headers(mcp_param_other="y", x="z")),
        (
            post("tools/call", name="say", arguments={"to": None, "times": 42}),
            headers("tools/call", mcp_name="say", mcp_param_times="42.0"),
        ),
        (of(b'{"jsonrpc":"2.0","method":"notifications/x"}'), CIMultiDict()),
    ],
)
def test_headers_that_agree_with_the_body_are_fine(
    read: PostedBody, sent_headers: CIMultiDict[str]
) -> None:
    assert refusal(read, sent_headers) is None


@pytest.mark.parametrize(
    ("read", "sent_headers", "why"),
    [
        (post(), CIMultiDict(mcp_method="x"), "the header Mcp-Protocol-Version is missing"),
        (
            post(meta={**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}),
            headers(),
            "the header Mcp-Protocol-Version does not match the body",
        ),
        (post(), headers("tools/call"), "the header Mcp-Method does not match the body"),
        (
            post("tools/call", name="say"),
            headers("tools/call"),
            "the header Mcp-Name is missing",
        ),
        (
            post("tools/call", name="say"),
            headers("tools/call", mcp_name="=?base64?!?="),
            "the header Mcp-Name holds broken base64",
        ),
        (
            post("tasks/get", taskId="t"),
            headers("tasks/get", mcp_name="u"),
            "the header Mcp-Name does not match the body",
        ),
        (
            post("tools/call", name="say", arguments={"to": "x"}),
            headers("tools/call", mcp_name="say", mcp_param_to="y"),
            "the header Mcp-Param-To does not match the body",
        ),
        (
            post("tools/call", name="say"),
            headers("tools/call", mcp_name="say", mcp_param_to="y"),
            "the header Mcp-Param-To is given, and its value is not in the body",
        ),
    ],
)
def test_headers_that_do_not_agree_are_refused(
    read: PostedBody, sent_headers: CIMultiDict[str], why: str
) -> None:
    assert refusal(read, sent_headers) == (400, -32020, why)


def test_a_header_that_is_given_twice_is_refused() -> None:
    repeated = headers()
    repeated.add("MCP-Method", "tools/list")
    assert refusal(post(), repeated) == (400, -32020, "the header Mcp-Method is given twice")


@pytest.mark.parametrize(
    ("meta", "missing"),
    [
        ({}, " and ".join(META)),
        (None, " and ".join(META)),
        ({"io.modelcontextprotocol/protocolVersion": VERSION}, list(META)[1]),
    ],
)
def test_a_request_without_its_envelope_is_refused(meta: Any, missing: str) -> None:
    assert refusal(post(meta=meta), headers()) == (400, -32602, f"params._meta must have {missing}")


def test_a_handshake_is_not_for_a_server_that_others_share() -> None:
    expected = (404, -32601, "Method not found")
    assert refusal(post("initialize"), headers("initialize")) == expected


@pytest.mark.parametrize(
    "raw",
    [b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"x"}]', b'{"jsonrpc":"2.0","id":1,"result":1}'],
)
def test_a_body_is_one_request_or_notification(raw: bytes) -> None:
    why = "the body must be a single request or notification"
    assert refusal(of(raw), headers()) == (400, -32600, why)


@pytest.mark.parametrize(
    ("code", "status"),
    [(-32601, 404), (-32602, 400), (-32020, 400), (-32603, 200), (-1, 200), (7, 200), ('"x"', 200)],
)
def test_an_error_has_the_status_that_clients_look_for(code: int | str, status: int) -> None:
    assert status_of(b'{"id":1,"error":{"code":%b}}' % str(code).encode()) == status


@pytest.mark.parametrize("raw", [b'{"id":1,"result":{}}', b'{"id":1,"error":"x"}', b"["])
def test_a_message_without_a_code_has_the_status_of_a_result(raw: bytes) -> None:
    assert status_of(raw) == 200
