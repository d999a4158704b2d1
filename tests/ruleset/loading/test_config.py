"""Configurations as people write them: those in cases/config/bad say what is wrong with them."""

import re
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.ruleset.loading.config import Config, read
from mcp_abridge.ruleset.loading.config_model import (
    Command,
    LimitsSpec,
    ListenAddress,
    RouteSpec,
    Secret,
    TokenFromEnv,
)
from mcp_abridge.ruleset.loading.convert import fields

from tests.platforms import with_slashes
from tests.rulecases import expected

CASES = Path(__file__).parents[2] / "cases" / "config"
BAD = sorted((CASES / "bad").glob("*.yaml"))
GOOD = sorted((CASES / "good").glob("*.yaml"))
ENVIRONMENT = {"TOKEN": "token-of-ours", "UPSTREAM": "token-of-theirs", "SPACES": "a b"}


def config(text: str, **overrides: Any) -> Config:
    whole, problems = read("c.yaml", f"version: 1\n{text}".encode(), ENVIRONMENT, overrides)
    assert problems == ()
    assert whole is not None
    return whole


def routes(text: str, **overrides: Any) -> tuple[RouteSpec, ...]:
    return config(text, **overrides).routes


def problems(text: str, **overrides: Any) -> list[str]:
    whole, problems = read("c.yaml", f"version: 1\n{text}".encode(), ENVIRONMENT, overrides)
    assert whole is None
    return list(map(str, problems))


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_file_reports_exactly_its_problems(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CASES)
    name = f"bad/{path.name}"
    whole, problems = read(name, path.read_bytes(), ENVIRONMENT)
    lines = [with_slashes(each).removeprefix(f"{name}:") for each in problems]
    assert lines == [*map(with_slashes, expected(path))]
    assert whole is None


def loaded(path: Path) -> Config:
    whole, problems = read(str(path), path.read_bytes(), ENVIRONMENT)
    assert problems == ()
    assert whole is not None
    return whole


def test_good_files_load_and_one_has_every_key() -> None:
    assert all(loaded(path).routes for path in GOOD)
    text = (CASES / "good" / "everything.yaml").read_text()
    words = [*fields(RouteSpec), *fields(LimitsSpec)]
    assert [word for word in words if f"{word}:" not in text] == []


def test_the_top_holds_for_each_route_that_does_not_say_otherwise() -> None:
    whole = loaded(CASES / "good" / "everything.yaml")
    first, gpt, local, without_token, other = whole.routes
    assert [route.budget for route in (first, gpt, local)] == [8000, "off", 8000]
    assert [route.scripts for route in (first, gpt)] == [None, "on"]
    assert [route.malformed_status for route in (first, gpt)] == [200, 400]
    assert [route.deadline_seconds for route in (first, gpt, local)] == [30, None, 30]
    assert [route.tools for route in (first, gpt)] == [None, ("list_*", "get_document")]
    assert [route.listen for route in (first, local)] == ["127.0.0.1:8808", "[::1]:8809"]
    assert first.hosts == ("mcp.example.org", "localhost:8808")
    assert first.origins == ("https://app.example.org",)
    assert local.upstream == Command(("npx", "-y", "some-server"))
    assert (without_token.rules, without_token.headers, other.passes) == (None, None, True)
    # Paths are relative to the folder of the file.
    assert first.rules == (str(CASES / "good" / "rules" / "issues.yaml"), "github")
    # A nearer token stands alone, and variables stand in headers.
    tokens = [
        [token.secret for token in route.tokens] for route in (first, gpt, local, without_token)
    ]
    ours = ["token-of-ours"]
    assert tokens == [ours, ours, ["first-token", "second-token"], []]
    assert first.headers is not None
    headers = {name: str(value) for name, value in first.headers.items()}
    assert headers == {"Authorization": "Bearer token-of-theirs", "X-Plain": "1"}
    assert not re.search("token-of|first-token|second-token", repr(whole))


def test_headers_and_credentials_of_one_upstream_never_go_to_another() -> None:
    same, other = routes(
        "upstream: http://a.test\nauth: forward\nheaders: {X-Key: secret}\n"
        "routes: [{path: /same}, {path: /other, upstream: http://b.test}]"
    )
    assert (same.auth, set(same.headers or ())) == ("forward", {"X-Key"})
    assert (other.auth, other.headers) == (None, None)


def test_headers_at_the_top_are_for_every_route_if_there_is_no_upstream_beside_them() -> None:
    text = "headers: {X-Key: secret}\nroutes: [{path: /a, upstream: http://a.test}]"
    assert set(routes(text)[0].headers or ()) == {"X-Key"}
    assert routes(text, upstream="http://b.test")[0].headers is None


def test_a_rule_file_beside_the_configuration_is_not_taken_for_a_bundled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "github").mkdir()
    for name in ("./github", "github"):
        (route,) = routes(f"upstream: http://a.test\nrules: {name}")
        assert route.rules == (name,)


def test_without_routes_there_is_one() -> None:
    (route,) = routes("upstream: http://server:3000/mcp\ntools: a")
    assert (route.path, route.upstream) == ("/mcp", "http://server:3000/mcp")
    assert route.tools == ("a",)
    (route,) = routes("limits: {children: 2}", upstream=Command(("server",)))
    assert route.upstream == Command(("server",))


def test_options_override_the_top_and_not_a_route() -> None:
    text = (
        "upstream: http://a.test\nlisten: 127.0.0.1:1\ntoken_env: TOKEN\nrules: github\n"
        "routes: [{path: /a}, {path: /b, listen: '127.0.0.1:2', token_env: null}]"
    )
    listen, token = ListenAddress("127.0.0.1:3"), TokenFromEnv("T", Secret("x"))
    first, second = routes(text, listen=listen, rules=("none",), token_env=token)
    assert (first.listen, second.listen) == ("127.0.0.1:3", "127.0.0.1:2")
    assert (first.tokens, second.tokens) == ((token,), ())
    assert first.rules == second.rules == ("none",)


def test_one_path_on_two_listeners_or_beside_one_with_a_token_is_no_mistake() -> None:
    assert routes(
        "upstream: http://a.test\ntoken_env: TOKEN\n"
        "routes: [{path: '/a/{token}'}, {path: /a/b}, {path: /a}, {path: /a, listen: '[::1]:2'}]"
    )


def test_two_routes_that_one_path_could_mean_are_a_mistake() -> None:
    head = "upstream: http://a.test\ntoken_env: TOKEN\nroutes:\n"
    for first, second in (("/a", "/a/"), ("/{token}/a", "/b/{token}")):
        message = f"c.yaml:6:9: path: {second} is taken by the route in line 5"
        assert problems(f"{head}- path: {first}\n- path: {second}") == [message]
