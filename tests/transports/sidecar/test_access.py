"""Access by host, origin and token, and tokens that are never shown."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.ruleset.loading.config_model import token_file
from mcp_abridge.transports.sidecar.access import LOOPBACK, Access, WatchedTokens
from mcp_abridge.transports.sidecar.refusal import RequestRefused
from multidict import CIMultiDict
from rich.pretty import pretty_repr

from tests.transports.http.route_server import tokens

Refusal = tuple[int, int, str, Mapping[str, str]]

INVALID = -32600
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="mcp-abridge"'}
HOST: Refusal = 403, INVALID, "the Host of the request is not allowed (hosts in --config)", {}
ORIGIN: Refusal = 403, INVALID, "the Origin of the request is not allowed", {}
TOKEN = 401, INVALID, "a bearer token is needed", CHALLENGE
UNKNOWN = 401, INVALID, "the bearer token is not known", CHALLENGE


def refusal_of(access: Access, headers: Any, token: str | None = None) -> Refusal | None:
    try:
        access.admission(CIMultiDict(headers), token)
    except RequestRefused as refused:
        return refused.status, refused.code, str(refused), refused.headers
    return None


@pytest.mark.parametrize(
    ("hosts", "allowed", "forbidden"),
    [
        (
            LOOPBACK,
            ["localhost", "LocalHost:1", "127.0.0.1:8808", "[::1]", "[::1]:8808"],
            ["localhost.evil.example", "notlocalhost", "127.0.0.2", "0.0.0.0", "[::2]:8808", "::1"],
        ),
        (LOOPBACK, [], ["", ":80", "localhost:", "localhost:123456", "localhost@evil.example"]),
        (("a.example:8443",), ["A.Example:8443"], ["a.example", "a.example:8080"]),
        (("a.example:443",), ["a.example"], ["a.example:80", "c.example"]),
        (("A.example",), ["a.example", "a.example:1"], ["b.a.example", "a.example.", "a-example"]),
        (
            ("*.example.org",),
            ["a.example.org", "a.b.example.org:80", "A.EXAMPLE.ORG"],
            ["example.org", "aexample.org", "a.example.org.evil.example"],
        ),
        (("*.example.org:81",), ["a.example.org:81"], ["a.example.org", "a.example.org:80"]),
        (("[::1]:81",), ["[::1]:81"], ["[::1]", "[::1]:80"]),
        ((), [], ["localhost"]),
        (None, ["evil.example:80", ""], []),
    ],
)
def test_a_request_is_for_an_allowed_host_or_refused(
    hosts: tuple[str, ...] | None, allowed: list[str], forbidden: list[str]
) -> None:
    access = Access(hosts=hosts)

    assert [name for name in allowed if refusal_of(access, {"Host": name}) is not None] == []
    assert [name for name in forbidden if refusal_of(access, {"Host": name}) != HOST] == []


Pairs = list[tuple[str, str]]
TOKENS = Access(tokens=tokens("first", "second"))
TWO_HOSTS: Refusal = 400, INVALID, "the request names several hosts", {}
LOCAL = ("Host", "localhost")
EVIL = ("Origin", "http://evil.example")
FIRST = ("Authorization", "Bearer first")


@pytest.mark.parametrize(
    ("access", "headers", "path_token", "refusal"),
    [
        (Access(hosts=LOOPBACK), [], None, HOST),
        (Access(hosts=None), [], None, None),
        (Access(hosts=LOOPBACK), [LOCAL, ("host", "a.example")], None, TWO_HOSTS),
        (Access(hosts=LOOPBACK), [LOCAL, ("Origin", "http://localhost"), EVIL], None, ORIGIN),
        *(
            (Access(hosts=None), [("Host", host), EVIL], None, ORIGIN)
            for host in ("", "*.example", "x@evil.example")
        ),
        (TOKENS, [], None, TOKEN),
        (TOKENS, [], "second", None),
        (TOKENS, [], "third", UNKNOWN),
        (TOKENS, [], "", TOKEN),
        (TOKENS, [FIRST], "third", None),
        (Access(tokens=tokens("")), [("Authorization", "Bearer ")], "", TOKEN),
        (TOKENS, [("HOST", "localhost"), ("AUTHORIZATION", "Bearer first")], None, None),
    ],
)
def test_missing_repeated_and_odd_headers_and_tokens_in_the_path(
    access: Access, headers: Pairs, path_token: str | None, refusal: Refusal | None
) -> None:
    assert refusal_of(access, headers, path_token) == refusal


@pytest.mark.parametrize(
    ("access", "allowed", "forbidden"),
    [
        (
            Access(hosts=LOOPBACK),
            ["http://localhost:5173", "https://127.0.0.1", "HTTP://[::1]:80"],
            ["http://evil.example", "null", "", "http://", "http://localhost.evil.example"],
        ),
        (
            Access(hosts=LOOPBACK),
            [],
            [
                "http://localhost/",
                "http://localhost, null",
                "file://localhost",
                "http://localhost@a",
            ],
        ),
        (
            Access(hosts=("localhost:8808", "a.example:443")),
            ["http://localhost:8808", "https://a.example", "http://a.example:443"],
            ["http://localhost", "http://a.example", "https://a.example:8443"],
        ),
        (
            Access(hosts=LOOPBACK, origins=("https://App.example", "app://obsidian.md")),
            ["https://app.example", "app://obsidian.md", "http://localhost"],
            ["http://app.example", "https://app.example:8443", "https://b.app.example", "null"],
        ),
        (
            Access(hosts=None),
            ["http://localhost:8808", "https://localhost:8808"],
            ["http://localhost", "http://evil.example:8808", "null", "file://localhost:8808"],
        ),
        (Access(hosts=None, origins=("https://app.example",)), ["https://app.example"], ["null"]),
    ],
)
def test_only_allowed_origins_may_send_requests(
    access: Access, allowed: list[str], forbidden: list[str]
) -> None:
    host = "localhost:8808"

    def refusals(origins: list[str]) -> list[Refusal | None]:
        return [refusal_of(access, {"Host": host, "Origin": each}) for each in origins]

    assert refusals(allowed) == [None] * len(allowed)
    assert refusals(forbidden) == [ORIGIN] * len(forbidden)


@pytest.mark.parametrize(
    ("authorization", "refusal"),
    [
        ("Bearer first", None),
        ("bearer second", None),
        ("Bearer  second ", None),
        ("Bearer third", UNKNOWN),
        ("Bearer secondo", UNKNOWN),
        ("Bearer", TOKEN),
        ("Basic second", TOKEN),
        ("Bearer sec\u00f6nd\udcff\ud800", UNKNOWN),
    ],
)
def test_one_of_the_tokens_is_required(authorization: str, refusal: Refusal | None) -> None:
    access = Access(hosts=None, tokens=tokens("first", "second"))

    assert refusal_of(access, {"authorization": authorization}) == refusal


def test_a_configured_token_is_recognized_in_every_authorization_header() -> None:
    access = Access(tokens=tokens("first", "second"))
    both = CIMultiDict([("Authorization", "Bearer theirs"), ("authorization", "bearer second")])

    assert access.opened_by(both)
    assert not access.opened_by(CIMultiDict({"Authorization": "Bearer theirs"}))
    assert not access.opened_by(CIMultiDict({"Authorization": "Basic first"}))
    assert not access.opened_by(CIMultiDict({"Cookie": "first"}))
    assert not Access().opened_by(CIMultiDict({"Authorization": "Bearer theirs"}))


def test_no_repr_shows_a_token() -> None:
    access = Access(hosts=LOOPBACK, tokens=tokens("hush-hush", "quiet"))

    for text in (repr(access), str(access), f"{[access]}", pretty_repr(access)):
        assert "localhost" in text
        assert "hush" not in text
        assert "quiet" not in text


def test_a_token_that_was_revoked_while_the_configuration_was_read_opens_nothing(
    tmp_path: Path,
) -> None:
    (path := tmp_path / "tokens").write_text("ann first\nbob second\n")
    file = token_file(path)
    path.write_text("ann first\n")
    assert [each.name for each in WatchedTokens(file, pytest.fail)()] == ["ann"]
