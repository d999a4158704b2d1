"""Each value of a configuration by itself: what it may be, and what is said of any other."""

from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.errors import AbridgeError
from proxy.ruleset.loading import config_model
from proxy.ruleset.loading.config_model import (
    ListenAddress,
    Secret,
    host,
    listen_address,
    origin,
    route_path,
    token_file,
    url,
)


@pytest.mark.parametrize(
    ("text", "at", "port", "loopback"),
    [
        ("127.0.0.1:8808", "127.0.0.1", 8808, True),
        ("127.9.9.9:0", "127.9.9.9", 0, True),
        ("localhost:1", "localhost", 1, True),
        ("[::1]:8808", "::1", 8808, True),
        ("0.0.0.0:80", "0.0.0.0", 80, False),
        ("[::]:80", "::", 80, False),
        ("192.0.2.1:80", "192.0.2.1", 80, False),
        ("sidecar.example:65535", "sidecar.example", 65535, False),
    ],
)
def test_an_address_has_a_host_and_a_port(text: str, at: str, port: int, loopback: bool) -> None:
    found = listen_address(text)
    assert (found, found.host, found.port, found.loopback) == (text, at, port, loopback)


@pytest.mark.parametrize(
    "text", ["", "8808", ":8808", "localhost", "localhost:", "a:b", "a:65536", "::1:8808", "*:80"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AbridgeError, match="expected HOST:PORT"):
        listen_address(text)


@pytest.mark.parametrize(
    "text",
    ["http://a", "https://a.test:8443/mcp?x=1", "http://me:word@a.test/mcp", "http://[::1]:80/mcp"],
)
def test_a_url_of_an_upstream_is_taken_as_it_is(text: str) -> None:
    assert url(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "a", "a:80/mcp", "ftp://a", "redis://a", "http://", "http://a:0", "http://a:x"],
)
def test_what_is_no_url_of_an_upstream_is_refused(text: str) -> None:
    with pytest.raises(AbridgeError, match="expected a URL"):
        url(text)


@pytest.mark.parametrize("text", ["http://a/ b", "http://a#b", "http://a/\t", "http://a/\n"])
def test_a_url_has_no_fragment_and_nothing_that_cannot_be_seen(text: str) -> None:
    with pytest.raises(AbridgeError, match="expected a URL"):
        url(text)


def test_a_message_about_a_url_does_not_show_its_password() -> None:
    for make in (url, config_model.store_url):
        with pytest.raises(AbridgeError) as raised:
            make("ftp://me:password@a.test")
        assert "password" not in str(raised.value)


@pytest.mark.parametrize("text", ["memory", "redis://a", "rediss://:x@a:1/2", "unix:///run/redis"])
def test_a_store_is_memory_or_a_redis(text: str) -> None:
    assert config_model.store_url(text) == text


@pytest.mark.parametrize("text", ["/", "/mcp", "/a/b/", "/mcp/{token}", "/{token}/a"])
def test_a_path_may_hold_one_token(text: str) -> None:
    assert route_path(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "mcp", "/a?b", "/a#b", "/a b", "/a//b", "/a%20b", "/a/../b", "/a/.", "/a\\b", "/metrics"],
)
def test_what_is_no_path_of_a_route_is_refused(text: str) -> None:
    with pytest.raises(AbridgeError):
        route_path(text)


@pytest.mark.parametrize("text", ["/{name}", "/a{token}", "/{token}/{token}", "/{token", "/}"])
def test_no_other_braces_stand_in_a_path(text: str) -> None:
    with pytest.raises(AbridgeError, match="may have one segment"):
        route_path(text)


@pytest.mark.parametrize(
    "text", ["a", "a.test", "a.test:80", "*.a.test", "127.0.0.1", "[::1]", "[::1]:80"]
)
def test_a_host_may_have_a_port_or_stand_for_many(text: str) -> None:
    assert host(text) == text


@pytest.mark.parametrize("text", ["", "http://a", "a/b", "a b", "*", "a.*", "a:b", "me@a"])
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(AbridgeError, match="expected a name"):
        host(text)


@pytest.mark.parametrize("text", ["http://a", "https://a.test:8443", "http://[::1]:80"])
def test_an_origin_is_a_scheme_and_a_host(text: str) -> None:
    assert origin(text) == text


@pytest.mark.parametrize("text", ["", "a", "null", "*", "https://", "https://a/", "https://*.a"])
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(AbridgeError, match="expected an origin"):
        origin(text)


@pytest.mark.parametrize("name", ["", "X Y", "X:", "X\n", "é", "Host", "content-LENGTH"])
def test_headers_that_cannot_be_set_are_refused(name: str) -> None:
    with pytest.raises(AbridgeError):
        config_model.header_name(name)


@pytest.mark.parametrize(
    ("text", "value"),
    [("", ""), ("plain $A {A} $", "plain $A {A} $"), ("${A}", "1"), ("x${A}y${B}", "x1y${A}")],
)
def test_a_variable_is_filled_in_once(text: str, value: str) -> None:
    assert str(config_model.header_value(text, {"A": "1", "B": "${A}"})) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${C}", "the variable 'C' is not set"),
        ("${}", "'${' begins the name of a variable, which ends with '}'"),
        ("a ${A", "'${' begins the name of a variable, which ends with '}'"),
        ("${A}", "a header has no line breaks or other control characters"),
    ],
)
def test_a_value_that_cannot_be_filled_in_says_why_and_shows_nothing(
    text: str, message: str
) -> None:
    with pytest.raises(AbridgeError) as raised:
        config_model.header_value(text, {"A": "secret\r\nX: y"})
    assert str(raised.value) == message


def test_a_secret_is_a_text_that_is_not_shown() -> None:
    secret = Secret("word")
    assert (str(secret), repr(secret), f"{[secret]}") == ("word", "'***'", "['***']")


@pytest.mark.parametrize("held", [b"", b"\n \n", b"a b", "é".encode(), b"\xff", b"ok\na b"])
def test_a_file_without_tokens_is_refused(tmp_path: Path, held: bytes) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(held)
    with pytest.raises(AbridgeError, match="holds no token"):
        token_file(path)


@pytest.mark.parametrize(
    ("make", "text"), [(listen_address, "a:1"), (url, "http://a"), (host, "a"), (route_path, "/a")]
)
def test_a_value_is_still_a_text(make: Callable[[str], str], text: str) -> None:
    assert isinstance(make(text), str)
    assert isinstance(listen_address("a:1"), ListenAddress)
