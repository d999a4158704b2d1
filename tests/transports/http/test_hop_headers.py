"""Headers that pass, and those that belong to one connection."""

import pytest
from mcp_abridge.transports.http import hop_headers
from multidict import CIMultiDict


@pytest.mark.parametrize(
    "name",
    [
        *("Connection", "keep-alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Host"),
        *("Content-Length", "content-encoding", "Proxy-Authorization", "Authorization", "Cookie"),
        "Expect",
    ],
)
def test_hop_by_hop_headers_and_credentials_are_not_forwarded(name: str) -> None:
    headers = CIMultiDict({name: "x", "Mcp-Session-Id": "1", "Origin": "http://localhost"})
    forwarded = hop_headers.to_upstream(headers, credentials=False)
    assert name not in forwarded
    assert forwarded["Mcp-Session-Id"] == "1"
    assert forwarded["Origin"] == "http://localhost"


def test_credentials_are_forwarded_on_request_and_the_encoding_is_always_identity() -> None:
    headers = CIMultiDict(
        {"Authorization": "Bearer a", "Cookie": "b", "Accept-Encoding": "gzip, br"}
    )
    forwarded = hop_headers.to_upstream(headers, credentials=True)
    assert (forwarded["authorization"], forwarded["cookie"]) == ("Bearer a", "b")
    assert forwarded.getall("accept-encoding") == ["identity"]


def test_a_header_that_connection_names_stays_behind() -> None:
    headers = CIMultiDict([("Connection", "close, X-One"), ("x-one", "1"), ("x-two", "2")])
    assert "x-one" not in hop_headers.to_upstream(headers, credentials=False)
    assert dict(hop_headers.to_client(headers)) == {"x-two": "2"}


def test_a_fixed_header_takes_the_place_of_the_client_s() -> None:
    headers = CIMultiDict([("X-Key", "theirs"), ("x-key", "theirs too")])
    forwarded = hop_headers.to_upstream(headers, credentials=False, fixed=[("x-key", "ours")])
    assert forwarded.getall("X-Key") == ["ours"]


@pytest.mark.parametrize("whole", [True, False])
def test_a_client_gets_the_length_and_coding_of_an_unchanged_body(whole: bool) -> None:
    body = {"Content-Length": "2", "Content-Encoding": "gzip"}
    cookies = [("Set-Cookie", "a"), ("Set-Cookie", "b")]
    headers = CIMultiDict([*cookies, *body.items(), ("Connection", "close")])
    expected = CIMultiDict([*cookies, *(body.items() if whole else ())])
    assert hop_headers.to_client(headers, whole=whole) == expected
