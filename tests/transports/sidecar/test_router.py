"""Which route a path belongs to, however the path is spelled."""

import pytest
from mcp_abridge.transports.sidecar.access import Access
from mcp_abridge.transports.sidecar.route import Mount, Route, find, ranked

from tests.transports.http.sidecar_server import StubHandler

ROUTES = (
    ("/everything", True),
    ("/everything/under", True),
    ("/mcp/{token}", False),
    ("/mcp/open", False),
    ("/mcp", False),
    ("/{token}/sse", False),
)


def match(path: str) -> tuple[str, str | None] | None:
    mounts = ranked(
        Mount(Route(path=each, upstream="http://u", access=Access(), passes=passes), StubHandler())
        for each, passes in ROUTES
    )
    at = find(mounts, path)
    return None if at is None else (at[0].route.path, at[1])


@pytest.mark.parametrize(
    ("path", "route", "token"),
    [
        ("/mcp", "/mcp", None),
        ("/mcp/", "/mcp", None),
        ("/m%63p", "/mcp", None),
        ("/mcp/secret", "/mcp/{token}", "secret"),
        ("/mcp/a%2Fb", "/mcp/{token}", "a/b"),
        ("/secret/sse", "/{token}/sse", "secret"),
        ("/mcp/open", "/mcp/open", None),
        ("/everything", "/everything", None),
        ("/everything/and/more", "/everything", None),
        ("/everything/under/this", "/everything/under", None),
    ],
)
def test_a_path_belongs_to_the_most_specific_route(
    path: str, route: str, token: str | None
) -> None:
    assert match(path) == (route, token)


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "*", "/mcpx", "/mcp/a/b", "//mcp", "/everythings", "/MCP", "//sse"),
        *("/everything/../mcp", "/mcp/..", "/mcp/%2e%2E", "/./mcp", "/everything/..%2fmcp"),
        *("/everything/a%2F..%2f..%2fmcp", "/everything/..%5Cmcp", "/everything/..;/mcp"),
    ],
)
def test_a_path_that_no_route_has_or_that_climbs_belongs_to_none(path: str) -> None:
    assert match(path) is None
