"""The results of `make answers`, served by the official SDK over stdio, `abridged` or whole."""

import sys
from functools import cache
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_abridge import AbridgeMiddleware
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, Tool

from tests.answers.server import RESULTS, tool

DEFINITIONS = [Tool.model_validate(tool(name)) for name in RESULTS]


@cache
def result(name: str) -> CallToolResult:
    return CallToolResult.model_validate(RESULTS[name]())


async def definitions(*_: Any) -> ListToolsResult:
    return ListToolsResult(tools=DEFINITIONS)


async def call(_: Any, params: CallToolRequestParams) -> CallToolResult:
    return result(params.name)


async def main() -> None:
    server: Server[Any] = Server(
        "answers", version="1", on_list_tools=definitions, on_call_tool=call
    )
    if "abridged" in sys.argv:
        AbridgeMiddleware().install(server)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
