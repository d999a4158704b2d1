"""The MCP headers of a request, held against the official SDK's own reading of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound
from mcp_abridge.document.message import PROTOCOL_VERSION
from mcp_abridge.transports.http.headers import (
    Parameters,
    decoded,
    encoded,
    learn,
    parameter_headers,
    request_headers,
)

META = {
    PROTOCOL_VERSION: "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "nested": {
            "type": "object",
            "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}},
        },
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "plain": {"type": "string"},
    },
}


def request(method: str, **params: Any) -> bytes:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "search"}, "search"),
        ("prompts/get", {"name": "grüß"}, "=?base64?Z3LDvMOf?="),
        ("resources/read", {"uri": "file:///a b"}, "file:///a b"),
        ("tasks/get", {"taskId": 5}, None),
    ],
)
def test_each_method_has_the_header_with_its_name(
    method: str, params: dict[str, Any], name: str | None
) -> None:
    headers = request_headers(request(method, **params), {})
    assert headers.pop("Mcp-Protocol-Version") == "2026-07-28"
    assert headers.pop("Mcp-Method") == method
    assert headers == ({} if name is None else {"Mcp-Name": name})


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{}}}',
        request("tools/list").replace(b"2026-07-28", b"2025-11-25"),
        b"[" + request("tools/list") + b"]",
        b"no JSON",
    ],
)
def test_other_bodies_have_no_headers(body: bytes) -> None:
    assert request_headers(body, {}) == {}


floats = st.floats(allow_nan=False, allow_infinity=False)  # which no JSON can hold
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | floats


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "region": scalars,
            "dry": scalars,
            "plain": scalars,
            "nested": scalars | st.fixed_dictionaries({}, optional={"count": scalars}),
        },
    )
)
def test_the_official_server_accepts_the_headers_of_any_arguments(
    arguments: dict[str, Any],
) -> None:
    parameters = {"act": parameter_headers(SCHEMA)}
    raw = request("tools/call", name="act", arguments=arguments)
    headers = request_headers(raw, parameters)
    body = json.loads(raw)
    lower = {name.lower(): value for name, value in headers.items()}
    route = inbound.classify_inbound_request(body, headers=lower)
    assert isinstance(route, inbound.InboundModernRoute), route
    checked = body["params"]["arguments"]
    assert inbound.validate_mcp_param_headers(SCHEMA, checked, headers) is None
    expected = inbound.mcp_param_headers(inbound.x_mcp_header_map(SCHEMA), checked)
    assert {name: value for name, value in headers.items() if "Param" in name} == expected


@given(st.text())
def test_an_encoded_header_is_decoded_again_by_the_proxy_and_the_official_server(
    value: str,
) -> None:
    assert decoded(encoded(value)) == value
    assert inbound.decode_header_value(encoded(value)) == value
    assert encoded(value) == inbound.encode_header_value(value)


@given(st.from_regex(r"=\?base64\?[A-Za-z0-9+/=]{0,12}\?=", fullmatch=True) | st.text())
def test_any_header_is_decoded_as_the_official_server_does(text: str) -> None:
    assert decoded(text) == inbound.decode_header_value(text)


HEADER = {"type": "string", "x-mcp-header": "A"}
INVALID: list[dict[str, Any]] = [
    {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": "A b"}}},
    {"properties": {"a": HEADER, "b": {"type": "string", "x-mcp-header": "a"}}},
    {"properties": {"a": {"type": "array", "items": HEADER}}},
    {"allOf": [{"properties": {"a": HEADER}}]},
    {"x-mcp-header": "A"},
]
VALUE = {"properties": {"a": {"type": "string", "default": {"x-mcp-header": 1}}}}


@pytest.mark.parametrize(
    ("schema", "invalid"), [*((each, True) for each in INVALID), (VALUE, False)]
)
def test_an_annotation_that_is_not_as_it_should_be_makes_all_of_them_void(
    schema: dict[str, Any], invalid: bool
) -> None:
    typed = {"type": "object", **schema}
    assert (inbound.find_invalid_x_mcp_header(typed) is not None) is invalid
    assert parameter_headers(typed) == ()


def test_the_tools_of_a_list_are_read_with_their_headers() -> None:
    names = {path: f"Mcp-Param-{token}" for path, token in inbound.x_mcp_header_map(SCHEMA).items()}
    tools = [
        {"name": "act", "inputSchema": SCHEMA},
        {"name": "none", "inputSchema": {"type": "object"}},
        {"name": "bare"},
        {"name": 5},
        "no tool",
    ]
    parameters: Parameters = {}
    learn(parameters, json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).encode())
    assert dict(parameters.pop("act")) == names
    assert parameters == {"none": (), "bare": ()}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"result": {"tools": [{"name": "x-mcp-header"',
        b'{"error": {"message": "x-mcp-header"}}',
    ],
)
def test_a_message_that_is_no_list_of_tools_declares_no_parameters(raw: bytes) -> None:
    parameters: Parameters = {}
    learn(parameters, raw)
    assert parameters == {}


def test_the_number_of_tools_that_are_remembered_is_bounded() -> None:
    parameters: Parameters = {str(number): () for number in range(10_000)}
    tools = [{"name": "another", "inputSchema": SCHEMA}]
    learn(parameters, json.dumps({"id": 1, "result": {"tools": tools}}).encode())
    assert list(parameters) == [*map(str, range(1, 10_000)), "another"]
