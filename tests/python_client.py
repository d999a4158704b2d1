"""The official Python client, for tests that are plain functions and share one server."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Literal

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, Implementation, Tool

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
        found: dict[str, Tool] = {}
        cursor: str | None = None
        while True:
            page = self._portal.call(partial(self._client.list_tools, cursor=cursor))
            found |= {tool.name: tool for tool in page.tools}
            cursor = page.next_cursor
            if cursor is None:
                return found

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool; return its result as it stands in JSON.

        Raises RuntimeError for what breaks the schema, MCPError for an error response.
        """
        asked = partial(self._client.call_tool, tool, dict(arguments))
        result: CallToolResult = self._portal.call(asked)
        written: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return written


def connected(
    command: Sequence[str], *, mode: Mode = "auto"
) -> AbstractContextManager[PythonClient]:
    """Start a server, connect to it, and end it on leaving."""
    first, *rest = command
    return _entered(StdioServerParameters(command=first, args=rest), mode)


def reaching(url: str, *, mode: Mode = "auto", **more: Any) -> AbstractContextManager[PythonClient]:
    """Connect to the server at a URL."""
    return _entered(url, mode, **more)


@contextmanager
def _entered(
    server: StdioServerParameters | str, mode: Mode, **more: Any
) -> Iterator[PythonClient]:
    name = Implementation(name="python", version="1.0.0")
    client = Client(server, mode=mode, client_info=name, **more)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as entered:
        yield PythonClient(portal, entered)
