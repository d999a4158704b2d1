"""Requests are separated by session, by credentials, and by their own exchange."""

import asyncio
import itertools
import json
from typing import Any

import pytest
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.ruleset.selection import Selection
from mcp_abridge.transports.sidecar.url.route_handler import UrlRoute

from tests.builders import answer, call, document, line, rules
from tests.transports.http.raw_upstream import Request, raw_response, upstream
from tests.transports.http.route_server import make_services, route, serve_handler, serve_url

DROP = rules("- {name: drop, tools: get, response: [{drop: secret}]}")
PAGES = rules("- {name: pages, tools: list, response: [{paginate: {at: items, limit: 2}}]}")
BUDGET = Selection((), "auto", lambda _: None)(None, None)
SECRET = answer(document({"a": 1, "secret": 2}))
SHAPED = answer(document({"a": 1}))


async def test_equal_ids_of_several_callers_at_once_are_not_confused() -> None:
    both = asyncio.Barrier(2)

    async def script(request: Request, reader: Any, writer: asyncio.StreamWriter) -> None:
        await both.wait()
        writer.write(raw_response(SECRET))

    async with upstream(script) as server, serve_url(server.url, DROP) as proxy:
        ruled, other = await asyncio.gather(proxy.post(call("get")), proxy.post(call("other")))
    assert (ruled.body, other.body) == (SHAPED, SECRET)


@pytest.mark.parametrize("session", [{}, {"mcp_session_id": "1"}], ids=["caller", "session"])
async def test_rules_are_chosen_by_the_server_that_a_caller_or_session_has_met(
    session: dict[str, str],
) -> None:
    servers: list[str | None] = []

    def select(server: str | None, *_: str | None) -> RuleSet:
        servers.append(server)
        return DROP

    async def script(request: Request, reader: Any, writer: asyncio.StreamWriter) -> None:
        info = answer({"serverInfo": {"name": "s"}, "capabilities": {}})
        if request.line.startswith("GET"):
            # There is no such stream; the session goes on.
            writer.write(raw_response(b"no such thing", "404 Not Found"))
        elif b"initialize" in request.body:
            writer.write(raw_response(info, **session))
        else:
            writer.write(raw_response(SECRET))

    services = make_services()
    async with (
        upstream(script) as server,
        serve_handler(UrlRoute(route(server.url, select=select), services)) as proxy,
    ):
        await proxy.post(line(id=1, method="initialize"))
        await proxy.client().send("GET", accept="text/event-stream", **session)
        assert (await proxy.post(call("get"), **session)).body == SHAPED
    services.workers.close()
    assert servers[-1] == "s"


@pytest.mark.fault(41, "inside")
async def test_a_caller_with_only_the_session_id_sees_none_of_its_pages() -> None:
    items = answer(document({"items": [1, 2, 3]}))
    first, later = call("list", {}), call("list", {"offset": 2})
    async with upstream(raw_response(items)) as server, serve_url(server.url, PAGES) as proxy:
        await proxy.post(first, mcp_session_id="s", authorization="Bearer a")
        for other in ({"authorization": "Bearer b"}, {}):
            theirs = await proxy.post(later, mcp_session_id="s", **other)
            assert theirs.json["result"]["isError"] is True
        mine = await proxy.post(later, mcp_session_id="s", authorization="Bearer a")
    assert '"items":[3]' in mine.json["result"]["content"][0]["text"]


async def test_sessions_of_the_same_credentials_share_answers_and_each_has_its_own_first() -> None:
    counting = itertools.count(1)

    async def script(request: Request, reader: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(raw_response(answer(document({"items": [next(counting)] * 3}))))

    async def rest(session: str) -> Any:
        response = await proxy.post(call("list", {"offset": 2}), mcp_session_id=session, **a)
        return json.loads(response.json["result"]["content"][0]["text"])["items"]

    a = {"authorization": "Bearer a"}
    async with upstream(script) as server, serve_url(server.url, PAGES) as proxy:
        await proxy.post(call("list", {}), mcp_session_id="1", **a)
        assert await rest("2") == [1]
        await proxy.post(call("list", {}), mcp_session_id="3", **a)
        assert [await rest(session) for session in "132"] == [[1], [2], [2]]
        # Sessions that nothing identifies may be those of different people.
        await proxy.post(call("list", {}), mcp_session_id="4")
        theirs = await proxy.post(call("list", {"offset": 2}), mcp_session_id="5")
        assert theirs.json["result"]["isError"] is True


async def test_sessions_of_two_servers_may_have_the_same_id() -> None:
    services = make_services()
    servers = [answer(document({"items": [each] * 3})) for each in (1, 2)]
    async with (
        upstream(raw_response(servers[0])) as one,
        upstream(raw_response(servers[1])) as other,
        serve_url(one.url, PAGES, services) as mine,
        serve_url(other.url, PAGES, services) as theirs,
    ):
        await mine.post(call("list", {}), mcp_session_id="1")
        response = await theirs.post(call("list", {"offset": 2}), mcp_session_id="1")
        assert response.json["result"]["isError"] is True


@pytest.mark.parametrize("extensions", [{}, {"io.modelcontextprotocol/ui": {}}])
async def test_a_server_without_sessions_still_answers_a_widget_whole(
    extensions: dict[str, Any],
) -> None:
    chart = {"name": "chart", "inputSchema": {}, "_meta": {"ui": {"resourceUri": "ui://chart"}}}
    rows = answer(document([{"id": n, "y": n * 0.5} for n in range(2000)]), 3)
    parts = {
        b"initialize": answer({"serverInfo": {"name": "s"}}),
        b"list": answer({"tools": [chart]}),
    }

    async def script(request: Request, reader: Any, writer: asyncio.StreamWriter) -> None:
        part = next((part for name, part in parts.items() if name in request.body), rows)
        writer.write(raw_response(part))

    async with upstream(script) as server, serve_url(server.url, BUDGET) as proxy:
        params = {"clientInfo": {"name": "claude-ai"}, "capabilities": {"extensions": extensions}}
        await proxy.post(line(id=1, method="initialize", params=params))
        await proxy.post(line(id=1, method="tools/list"))
        reply = await proxy.post(call("chart", id=3))
    assert (reply.body == rows) is bool(extensions)
    assert len(reply.body) < 12_000 or extensions
