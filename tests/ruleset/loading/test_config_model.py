"""Each value of a configuration by itself; cases/config has whole files."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from mcp_abridge.errors import AbridgeError
from mcp_abridge.ruleset.loading.config_model import (
    header_name,
    header_value,
    host,
    listen_address,
    origin,
    route_path,
    store_url,
    token_file,
    url,
)


def test_an_address_has_a_host_and_a_port() -> None:
    for text, name, port, loopback in (
        ("127.0.0.1:8808", "127.0.0.1", 8808, True),
        ("localhost:1", "localhost", 1, True),
        ("[::1]:8808", "::1", 8808, True),
        ("0.0.0.0:80", "0.0.0.0", 80, False),
        ("sidecar.example:65535", "sidecar.example", 65535, False),
    ):
        address = listen_address(text)
        assert (address.host, address.port, address.loopback) == (name, port, loopback)


@pytest.mark.parametrize(
    ("read", "texts", "message"),
    [
        (listen_address, ",8808,:8808,localhost,localhost:,a:b,a:65536,::1:8808,*:80", "HOST:PORT"),
        (listen_address, "65536,99999", "65535, found '.*'$"),
        (
            url,
            ",a,a:80/mcp,ftp://a,redis://a,http://,http://a:0,http://a:x,http://a/ b,http://a#b,"
            "http://a/\t,http://a/\n",
            "expected a URL",
        ),
        (route_path, ",mcp,/a?b,/a#b,/a b,/a//b,/a%20b,/a\\b,/a/../b,/a/.", "expected a path"),
        (route_path, "/{name},/a{token},/{token}/{token},/{token,/}", "expected a path"),
        (route_path, "/metrics", "own"),
        (host, ",http://a,a/b,a b,*,a.*,a:b,me@a", "expected a name"),
        (origin, ",a,null,*,https://,https://a/,https://*.a", "expected an origin"),
        (header_name, ",X Y,X:,X\n,é,Host,content-LENGTH", "no name|own"),
    ],
)
def test_any_other_text_is_refused(read: Callable[[str], str], texts: str, message: str) -> None:
    for text in texts.split(","):
        with pytest.raises(AbridgeError, match=message):
            read(text)


@pytest.mark.parametrize("read", [url, store_url])
def test_a_message_about_a_url_does_not_show_its_password(read: Callable[[str], str]) -> None:
    with pytest.raises(AbridgeError) as raised:
        read("ftp://me:password@a.test")
    assert "password" not in str(raised.value)


def test_a_variable_is_filled_in_once() -> None:
    value = header_value("x${A}y${B} $A {A} $", {"A": "1", "B": "${A}"})
    assert str(value) == "x1y${A} $A {A} $"


def test_a_file_without_tokens_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"\n \n", b"a b c", "é".encode(), b"\xff", b"ok\na b c"):
        (tmp_path / "tokens").write_bytes(content)
        with pytest.raises(AbridgeError, match="holds no token"):
            token_file(tmp_path / "tokens")


def test_a_token_without_a_name_is_named_by_a_digest(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("ann first-secret\nsecond-secret\n")
    tokens = token_file(tmp_path / "tokens").tokens
    names = [token.name for token in tokens]
    assert [*map(str, names)] == ["ann", sha256(b"second-secret").hexdigest()[:8]]
    assert [token.secret for token in tokens] == ["first-secret", "second-secret"]
    assert "secret" not in repr(tokens).replace("secret=", "")
