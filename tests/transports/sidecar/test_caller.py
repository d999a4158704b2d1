"""Who a caller is, and what gives way for another one's."""

from collections.abc import Mapping

import pytest
from aiohttp.test_utils import make_mocked_request
from mcp_abridge.storage.snapshots import ANYBODY
from mcp_abridge.transports.sidecar.caller import of_the_largest_holders, scope_of
from mcp_abridge.transports.sidecar.route import Route
from msgspec import Struct
from multidict import CIMultiDict

from tests.transports.http.route_server import route


def scope(
    to: Route, headers: Mapping[str, str] | None = None, token: str = "", query: str = ""
) -> str:
    request = make_mocked_request("POST", f"/mcp{query}", CIMultiDict(headers or {}))
    return scope_of(request, to, token)


def test_callers_differ_by_credentials_routes_and_names_of_tokens() -> None:
    one, other = route("http://x/mcp"), route("http://x/mcp", path="/other")
    mine = {"Authorization": "Bearer mine"}
    names = [
        scope(one),
        scope(other),
        scope(one, mine),
        scope(one, {"Authorization": "Bearer theirs"}),
        scope(one, token="alice"),
        scope(one, token="bob"),
    ]
    assert len(set(names)) == len(names)
    assert scope(one, mine) == names[2]
    assert all("mine" not in name for name in names)


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ({"X-Api-Key": "a"}, {"X-Api-Key": "b"}, True),
        ({"X-Forwarded-User": "a"}, {}, True),
        ({"Cookie": "a"}, {"Cookie": "b"}, True),
        ({"X-Request-Id": "a", "traceparent": "a"}, {"X-Request-Id": "b"}, False),
        ({"Mcp-Name": "a", "Content-Length": "1"}, {"Mcp-Name": "b"}, False),
        ({"A": "1", "B": "2"}, {"b": "2", "a": "1"}, False),
    ],
)
def test_callers_differ_by_every_header_that_may_identify_them(
    one: dict[str, str], other: dict[str, str], apart: bool
) -> None:
    to = route("http://x/mcp", auth="forward")
    names = {scope(to, headers) for headers in (one, other)}
    assert (len(names) == 2) is apart


def test_callers_differ_by_a_query_that_the_server_gets_and_it_identifies_nobody() -> None:
    url, command = route("http://x/mcp"), route(("server",))
    for headers in ({}, {"Authorization": "Bearer mine"}):
        assert scope(url, headers, query="?key=a") != scope(url, headers, query="?key=b")
        assert scope(command, headers, query="?key=a") == scope(command, headers)
    assert scope(url, query="?read_only=true").startswith(ANYBODY)


def test_a_token_that_replaces_another_of_its_name_is_the_same_caller() -> None:
    for to in (route("http://x/mcp"), route(("server",))):
        names = {scope(to, {"Authorization": f"Bearer {each}"}, "alice") for each in "ab"}
        assert len(names) == 1


def test_headers_that_are_not_forwarded_identify_no_caller() -> None:
    for to in (route("http://x/mcp"), route(("server",))):
        names = {scope(to, {"Cookie": each}) for each in "ab"}
        assert len(names) == 1


class Held(Struct):
    caller: str
    number: int


def test_those_give_way_who_hold_most_and_nobody_to_one_that_holds_more() -> None:
    things = [Held("b", 0), *(Held("a", number) for number in range(1, 4)), Held("c", 4)]
    assert [each.number for each in of_the_largest_holders(things, "new")] == [1, 2, 3, 0, 4]
    assert [each.number for each in of_the_largest_holders(things, "a")] == [1, 2, 3]
    assert [each.number for each in of_the_largest_holders(things, "c", ["c"])] == [1, 2, 3, 4]
    assert of_the_largest_holders(things, "d", ["d"] * 4) == []
