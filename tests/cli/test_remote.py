"""URLs and headers of remote servers: what is taken, what is refused, and that nothing leaks."""

import pytest

from proxy.cli.remote import expanded, header, url


@pytest.mark.parametrize(
    "text", ["http://127.0.0.1:8000/mcp", "https://user:word@example.org?key=1", "http://[::1]:1/"]
)
def test_urls_of_servers_are_taken_as_they_are(text: str) -> None:
    assert url(text) == text


@pytest.mark.parametrize(
    "text",
    ["ftp://example.org/", "https://", "http://:80/", "http://a:b/", "http://a b/", "http://[x/"],
)
def test_what_no_server_is_asked_by_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"^the URL of a server is written like https://example\.org/mcp$"
    ):
        url(text)


@pytest.mark.parametrize("text", ["secret", "se cret: x", ": secret", "", "a\nb: secret"])
def test_what_is_no_header_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a header is written like") as refused:
        header(text)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["Accept", "content-length", "MCP-Session-Id", "Connection"])
def test_what_the_proxy_says_itself_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"^the header {name} is the proxy's own$"):
        header(f"{name}: x")


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("Authorization: Bearer ${TOKEN}", ("Authorization", "Bearer t")),
        ("X-Two:${TOKEN}-${OTHER}", ("X-Two", "t-o")),
        ("X-Plain: $TOKEN ${} $ {TOKEN}", ("X-Plain", "$TOKEN ${} $ {TOKEN}")),
        ("X-Once: ${NESTED}", ("X-Once", "${TOKEN}")),
        ("X-Empty:", ("X-Empty", "")),
        ("X-Colon: a:b", ("X-Colon", "a:b")),
    ],
)
def test_variables_are_taken_from_the_environment(text: str, pair: tuple[str, str]) -> None:
    assert expanded(text, {"TOKEN": "t", "OTHER": "o", "NESTED": "${TOKEN}"}) == pair


@pytest.mark.parametrize("environment", [{}, {"TOKEN": ""}])
def test_a_variable_that_is_not_set_is_an_error(environment: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="set in the environment") as refused:
        expanded("Authorization: Bearer ${TOKEN}", environment)
    assert str(refused.value) == (
        "the header Authorization needs ${TOKEN}, which is not set in the environment"
    )


def test_a_value_cannot_smuggle_another_header() -> None:
    with pytest.raises(ValueError, match="has a control character in it") as refused:
        expanded("A: ${TOKEN}", {"TOKEN": "secret\r\nB: c"})
    assert "secret" not in str(refused.value)
