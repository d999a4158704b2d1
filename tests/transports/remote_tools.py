"""A server by the official SDK: `python remote_tools.py stdio|streamable|sse [PORT [LOG]]`.

Its tools do what a connection must be good for: progress and log lines before the answer, questions
to the client in the middle of a call, a stream that the server closes early. `LOG` gets a line for
each call that was cancelled.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.streamable_http import EventMessage, EventStore
from mcp_types import JSONRPCMessage
from pydantic import BaseModel

LOG = Path(sys.argv[3]) if len(sys.argv) > 3 else None
server = MCPServer("remote-tools", log_level="ERROR")


class Name(BaseModel):
    name: str


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def count(upto: int, ctx: Context) -> str:
    """Report progress so many times."""
    for at in range(upto):
        await ctx.report_progress(at, upto)
    return "counted"


@server.tool()
async def greet(ctx: Context) -> str:
    """Ask the client for a name."""
    found = await ctx.elicit("What is your name?", Name)
    return f"hello {found.data.name}" if found.action == "accept" else found.action


@server.tool()
async def leave_early(ctx: Context) -> str:
    """Close the stream before the answer is there."""
    await ctx.report_progress(1)
    await ctx.close_sse_stream()
    return "here it is"


@server.tool()
async def wait(ctx: Context) -> str:
    """Wait until somebody has had enough."""
    await ctx.report_progress(1)
    try:
        await asyncio.sleep(60)
    finally:
        if LOG is not None:
            with LOG.open("a") as lines:
                lines.write("cancelled\n")
    return "waited"


@server.tool()
async def announce(ctx: Context) -> str:
    """Say on the stream of no request that the tools have changed."""
    await ctx.session.send_tool_list_changed()
    return "announced"


class Kept(EventStore):
    """Keeps every event, so that a stream can be taken up again."""

    def __init__(self) -> None:
        self.events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        at = int(last_event_id)
        stream = self.events[at - 1][0]
        for number, (each, message) in enumerate(self.events[at:], at + 1):
            if each == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    elif sys.argv[1] == "sse":
        server.run("sse", port=int(sys.argv[2]))
    else:
        port = int(sys.argv[2])
        server.run("streamable-http", port=port, event_store=Kept(), retry_interval=50)
