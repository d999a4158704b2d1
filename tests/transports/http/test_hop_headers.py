"""Headers that pass, and those that belong to one connection."""

import pytest
from multidict import CIMultiDict

from proxy.transports.http import hop_headers as passing


@pytest.mark.parametrize(
    "name",
    [
        *("Connection", "keep-alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Host"),
        *("Content-Length", "content-encoding", "Proxy-Authorization", "Authorization", "Cookie"),
        "Expect",
    ],
)
def test_what_is_of_one_connection_or_a_credential_does_not_go_to_the_upstream(name: str) -> None:
    sent = CIMultiDict({name: "x", "Mcp-Session-Id": "1", "Origin": "http://localhost"})
    passed = passing.to_upstream(sent, credentials=False)
    assert name not in passed
    assert passed["Mcp-Session-Id"] == "1"
    assert passed["Origin"] == "http://localhost"


def test_credentials_go_along_where_that_is_asked_for() -> None:
    sent = CIMultiDict({"Authorization": "Bearer a", "Cookie": "b"})
    passed = passing.to_upstream(sent, credentials=True)
    assert (passed["authorization"], passed["cookie"]) == ("Bearer a", "b")


def test_no_encoding_is_asked_for_whatever_the_client_takes() -> None:
    passed = passing.to_upstream(CIMultiDict({"Accept-Encoding": "gzip, br"}), credentials=False)
    assert passed.getall("accept-encoding") == ["identity"]


def test_a_header_that_connection_names_stays_behind() -> None:
    sent = CIMultiDict([("Connection", "close, X-One"), ("x-one", "1"), ("x-two", "2")])
    assert "x-one" not in passing.to_upstream(sent, credentials=False)
    assert dict(passing.to_client(sent)) == {"x-two": "2"}


def test_a_fixed_header_takes_the_place_of_the_client_s() -> None:
    sent = CIMultiDict([("X-Key", "theirs"), ("x-key", "theirs too")])
    passed = passing.to_upstream(sent, credentials=False, fixed=[("x-key", "ours")])
    assert passed.getall("X-Key") == ["ours"]


def test_several_headers_of_one_name_stay_several() -> None:
    sent = CIMultiDict([("Set-Cookie", "a"), ("Set-Cookie", "b"), ("Content-Length", "2")])
    assert passing.to_client(sent).getall("set-cookie") == ["a", "b"]


def test_the_length_and_coding_of_a_body_that_goes_on_as_it_is_go_on_too() -> None:
    sent = CIMultiDict({"Content-Length": "2", "Content-Encoding": "gzip", "Connection": "close"})
    assert dict(passing.to_client(sent, whole=True)) == {
        "Content-Length": "2",
        "Content-Encoding": "gzip",
    }
