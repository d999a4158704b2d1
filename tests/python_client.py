"""The official Python client, for tests that are plain functions and share one server."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client import session
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, Implementation, Tool

# The wait for the answer to `server/discover` is a constant of the SDK, after which a client falls
# back to the handshake of the older era. On a busy machine its ten seconds are too short.
session.DISCOVER_TIMEOUT_SECONDS = 60.0

Mode = Literal["auto", "legacy", "2026-07-28"]


class PythonClient:
    """A connected client.

    It checks structuredContent against the advertised outputSchema, as it comes; a call whose
    result does not fit raises.
    """

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    @property
    def protocol_version(self) -> str:
        return str(self._client.protocol_version)

    def tools(self) -> dict[str, Tool]:
        """List the tools, every page, by name."""
        by_name: dict[str, Tool] = {}
        cursor: str | None = None
        while True:
            page = self._portal.call(partial(self._client.list_tools, cursor=cursor))
            by_name |= {tool.name: tool for tool in page.tools}
            cursor = page.next_cursor
            if cursor is None:
                return by_name

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool; return its result as it stands in JSON.

        Raises RuntimeError for what breaks the schema, MCPError for an error response.
        """
        request = partial(self._client.call_tool, tool, dict(arguments))
        result: CallToolResult = self._portal.call(request)
        document: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return document

    def read(self, uri: str) -> list[dict[str, Any]]:
        """Read a resource; return its contents. Raises MCPError for an error response."""
        result = self._portal.call(partial(self._client.read_resource, uri))
        return [each.model_dump(mode="json", exclude_none=True) for each in result.contents]


class System:
    """An example's server behind the proxy: a client, and a log of the calls that reach it."""

    def __init__(self, client: PythonClient, log: Path) -> None:
        self.client = client
        self._log = log

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.client.call(tool, arguments)

    def document(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that succeeds; return its document, which is its first text."""
        result = self.call(tool, **arguments)
        assert not result.get("isError"), result
        return json.loads(result["content"][0]["text"])

    def calls(self) -> list[dict[str, Any]]:
        """Return the calls that reached the server: the tool, and the arguments as they arrived."""
        lines = self._log.read_bytes().splitlines() if self._log.exists() else []
        return [json.loads(line) for line in lines]

    @contextmanager
    def reaching(self, *expected: dict[str, Any]) -> Iterator[None]:
        """Check that exactly these calls reach the server meanwhile."""
        before = len(self.calls())
        yield
        assert self.calls()[before:] == list(expected)


def logged(command: Sequence[str], log: Path) -> list[str]:
    """Return a command that does the same, its stderr being in a file."""
    return ["sh", "-c", f"exec {shlex.join(command)} 2>{shlex.quote(str(log))}"]


def connected(
    command: Sequence[str], *, mode: Mode = "auto"
) -> AbstractContextManager[PythonClient]:
    """Start a server, connect to it, and end it on leaving."""
    first, *rest = command
    return _entered(StdioServerParameters(command=first, args=rest), mode)


def within(
    server: Server[Any] | MCPServer, *, mode: Mode = "auto"
) -> AbstractContextManager[PythonClient]:
    """Connect to a server in this process: one of its own would take a second to start."""
    return _entered(server, mode)


def reaching(url: str, *, mode: Mode = "auto", **more: Any) -> AbstractContextManager[PythonClient]:
    """Connect to the server at a URL."""
    return _entered(url, mode, **more)


@contextmanager
def _entered(
    server: StdioServerParameters | Server[Any] | MCPServer | str, mode: Mode, **more: Any
) -> Iterator[PythonClient]:
    name = Implementation(name="python", version="1.0.0")
    client = Client(server, mode=mode, client_info=name, **more)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as entered:
        yield PythonClient(portal, entered)
