"""A server with the middleware answers as it does behind the wrapper, to each caller alone."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from mcp_abridge import AbridgeMiddleware

from tests import servers
from tests.answers.server import RESULTS
from tests.faults.routes import META
from tests.faults.scale import scaled
from tests.wire import Wire
from tests.wrapped import ROOT, wrapped

SERVERS = {
    "sdk": [sys.executable, str(Path(__file__).with_name("server.py"))],
    "fastmcp": servers.with_packages(
        "fastmcp", ROOT / "tests/clients/frameworks/fastmcp_server.py"
    ),
}
ERAS: dict[str, dict[str, Any]] = {"2025-11-25": {}, "2026-07-28": META}
VIEWS = ("outline()", "nothing(", "grep('error')", "items[0:3].[id]")[: scaled(2, 4)]
NAMES = [*RESULTS][:: scaled(3, 1)]


def lines_of(command: Sequence[str], era: str) -> Iterator[bytes]:
    """Yield each line that a server says: its tools, and every result, with views of it."""
    numbers = count(1)

    def ask(method: str, **params: Any) -> bytes:
        return wire.send(method, next(numbers), **params, _meta=ERAS[era])[-1]

    with Wire(command) as wire:
        if era == "2025-11-25":
            client = {"clientInfo": {"name": "answers", "version": "1"}, "capabilities": {}}
            yield ask("initialize", protocolVersion=era, **client)
            wire.send("notifications/initialized")
        yield ask("tools/list")
        for name in NAMES:
            yield ask("tools/call", name=name, arguments={})
            for view in VIEWS:
                yield ask("tools/call", name=name, arguments={"view": view})
        yield ask("tools/call", name=name, arguments={"view": "help"})


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(
    ("kind", "era"),
    [("fastmcp", "2025-11-25"), ("sdk", "2026-07-28"), ("fastmcp", "2026-07-28")][: scaled(1, 3)],
)
def test_each_line_is_the_one_that_the_wrapper_says(kind: str, era: str) -> None:
    inside = list(lines_of([*SERVERS[kind], "abridged"], era))
    assert inside == list(lines_of(wrapped(SERVERS[kind], "--ledger", "off"), era))
    calls = len(NAMES) * (1 + len(VIEWS)) + 1
    assert len(inside) - calls == (1 if era in META.values() else 2)
    whole = sum(len(json.dumps(RESULTS[name]())) for name in NAMES)
    assert sum(map(len, inside[-calls:])) < whole / 10


class Shop:
    """A server with the middleware, in this process; `calls` are those that its tools got."""

    def __init__(self, rules: Path | None = None, **options: Any) -> None:
        self.calls: list[str] = []
        middleware = AbridgeMiddleware(rules, **options)
        self.server = MCPServer("shop", version="1", middleware=[middleware])
        for tool in (self.orders, self.remove, self.may):
            self.server.tool(structured_output=False)(tool)

    def orders(self, customer: str, number: int = 2000) -> str:
        self.calls.append(f"orders {customer}")
        rows = [{"id": n, "of": f"{customer} {len(self.calls)}"} for n in range(number)]
        return json.dumps({"rows": rows})

    def remove(self, path: str) -> str:
        self.calls.append(f"remove {path}")
        return "{}"

    def may(self, path: str) -> str:
        self.calls.append(f"may {path}")
        return "yes" if path == "old" else "no"


async def text_of(client: Client, tool: str = "orders", **arguments: Any) -> str:
    """Return the texts of the answer to a call."""
    result = await client.call_tool(tool, arguments)
    return "\n".join(block.text for block in result.content if block.type == "text")


def rule_file(folder: Path, rule: str) -> Path:
    file = folder / "rules.yaml"
    file.write_text(f"version: 1\nrules:\n- {{name: r, tools: orders, {rule}}}\n")
    return file


async def test_no_connection_sees_what_is_kept_of_anothers_answers() -> None:
    shop = Shop()
    async with (
        Client(shop.server, mode="legacy") as ann,
        Client(shop.server, mode="legacy") as bob,
    ):
        assert "of 2000" in await text_of(ann, customer="c")
        assert '"of":"c 1"' in await text_of(ann, customer="c", view="rows[0]")
        assert "is not kept" in await text_of(bob, customer="c", view="rows[0]")
        assert '"view":[]' in await text_of(bob, customer="c", view="kept")
        assert "of 2000" in await text_of(bob, customer="c")
        assert '"of":"c 2"' in await text_of(bob, customer="c", view="rows[0]")
        assert '"of":"c 1"' in await text_of(ann, customer="c", view="rows[0]")


async def test_a_program_may_say_whose_a_request_is() -> None:
    user = ContextVar("user", default="")
    shop = Shop(caller=lambda _: user.get())
    for name, own in (("ann", "c 1"), ("ann", "c 1"), ("bob", "c 2"), ("ann", "c 1")):
        user.set(name)
        # In the stateless era, nothing else tells these connections apart.
        async with Client(shop.server, mode="2026-07-28") as client:
            assert f'"of":"{own}"' in await text_of(client, customer="c", view="rows[0]")


@asynccontextmanager
async def over_http(app: Any) -> AsyncIterator[str]:
    """Serve an app on a free port; yield its origin."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await serving


@pytest.mark.parametrize("way", ["sessions", "no sessions", "HTTP+SSE"])
async def test_over_http_the_handshake_era_keeps_answers_by_session_or_by_caller(way: str) -> None:
    shop = Shop()
    if way == "HTTP+SSE":
        app = shop.server.sse_app()
    else:
        app = shop.server.streamable_http_app(stateless_http=way == "no sessions")
    async with over_http(app) as origin, AsyncExitStack() as stack:
        clients = []
        for name in ("ann", "bob", "", "", "?key=eve"):
            name, _, query = name.partition("?")
            headers = {"X-User": name} if name else {}
            transport: Any = sse_client(f"{origin}/sse?{query}", headers)
            if way != "HTTP+SSE":
                http = await stack.enter_async_context(create_mcp_http_client(headers))
                transport = streamable_http_client(f"{origin}/mcp?{query}", http_client=http)
            clients.append(await stack.enter_async_context(Client(transport, mode="legacy")))
        for number, client in enumerate(clients, 1):
            assert "of 2000" in await text_of(client, customer="c")
            assert f'"of":"c {number}"' in await text_of(client, customer="c", view="rows[0]")
        for number, client in zip(
            (1, 2, 4 if way == "no sessions" else 3, 4, 5), clients, strict=True
        ):
            assert f'"of":"c {number}"' in await text_of(client, customer="c", view="rows[0]")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_guard_asks_the_server_before_a_call(mode: str) -> None:
    shop = Shop(ROOT / "tests" / "cases" / "python" / "rules.yaml", allow_python=True)
    async with Client(shop.server, mode=mode) as client:
        assert await text_of(client, "remove", path="new") == '{"status":"blocked"}'
        assert '"said":"may"' in await text_of(client, "remove", path="old")
    assert shop.calls == ["may new", "may old", "remove old"]


async def test_a_tool_that_a_rule_hides_is_neither_listed_nor_run(tmp_path: Path) -> None:
    shop = Shop(rule_file(tmp_path, "hide: true"))
    async with Client(shop.server, mode="legacy") as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"remove", "may"}
        with pytest.raises(MCPError, match="orders"):
            await text_of(client, customer="c")
        assert "Unknown tool" in await text_of(client, "none")
    assert shop.calls == []


async def test_an_error_of_the_server_reaches_other_middleware_as_it_was_raised() -> None:
    errors: list[Exception] = []
    error = UrlElicitationRequiredError([])

    async def outer(ctx: Any, call_next: Any) -> Any:
        try:
            return await call_next(ctx)
        except MCPError as each:
            errors.append(each)
            raise

    def pay() -> str:
        raise error

    server = MCPServer("shop", version="1", middleware=[outer, AbridgeMiddleware()])
    server.tool()(pay)
    async with Client(server, mode="legacy") as client:
        with pytest.raises(MCPError):
            await client.call_tool("pay", {})
    assert errors == [error]


async def test_rules_complete_arguments_and_are_read_again_if_they_change(tmp_path: Path) -> None:
    shop = Shop(rule_file(tmp_path, "arguments: {number: {default: 2}}"))
    async with Client(shop.server, mode="legacy") as client:
        assert (await text_of(client, customer="c")).count("id") == 2
        rule_file(tmp_path, "arguments: {number: {maximum: 1}}")
        assert "the maximum of 1" in await text_of(client, customer="c", number=2)


PATIENT = """
import time
from pathlib import Path
from typing import ClassVar
from msgspec import Struct
from mcp_abridge.plugin import Call, Slot

class Patient(Struct, frozen=True):
    name: ClassVar[str] = "patient"
    shorthand: ClassVar[str | None] = "file"
    window: ClassVar[bool] = False
    cuts: ClassVar[bool] = False
    parameters: ClassVar[dict] = {}
    file: str

    def __call__(self, root: Slot, call: Call) -> None:
        for _ in range(1000):
            if Path(self.file).exists():
                return root.set("another was served meanwhile")
            time.sleep(0.01)
"""


async def test_others_are_served_while_an_answer_is_made_short(tmp_path: Path) -> None:
    (tmp_path / "patient.py").write_text(PATIENT)
    file, rules = (
        tmp_path / "served",
        rule_file(tmp_path, f"response: [{{patient: {tmp_path}/served}}]"),
    )
    rules.write_text(f"transforms: {{patient: 'patient:Patient'}}\n{rules.read_text()}")
    shop = Shop(rules, allow_python=True)
    async with Client(shop.server, mode="legacy") as client:
        waiting = asyncio.create_task(text_of(client, customer="c", number=1))
        while not shop.calls:
            await asyncio.sleep(0.01)
        assert await text_of(client, "may", path="old") == "yes"
        file.touch()
        assert "another was served meanwhile" in await waiting


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_call_that_its_client_cancels_ends_and_the_next_is_answered(mode: str) -> None:
    shop, running, ended = Shop(), asyncio.Event(), asyncio.Event()

    @shop.server.tool()
    async def linger() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Client(shop.server, mode=mode) as client:
        calling = asyncio.create_task(text_of(client, "linger"))
        await running.wait()
        calling.cancel()
        await asyncio.wait_for(ended.wait(), 20)
        assert await text_of(client, "may", path="old") == "yes"


@pytest.mark.parametrize("thing", [object(), Client("http://127.0.0.1:1/mcp")])
def test_it_is_installed_in_servers_only(thing: object) -> None:
    with pytest.raises(TypeError, match=r"a server of FastMCP 4 or of the MCP SDK 2 .* not "):
        AbridgeMiddleware().install(thing)


@pytest.mark.usefixtures("servers")
def test_the_place_of_fastmcps_own_middleware_is_refused() -> None:
    answer = next(lines_of([*SERVERS["fastmcp"], "misplaced"], "2025-11-25"))
    assert b"AbridgeMiddleware: call install(server) in place of add_middleware" in answer
