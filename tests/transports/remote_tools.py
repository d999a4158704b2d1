"""A server by the official SDK over HTTP: `python remote_tools.py LOG --http PORT`.

Its tools do what a connection must be good for: progress before the answer, questions to the client
in the middle of a call. `LOG` gets a line for each call that was cancelled.
"""

import asyncio
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

LOG = Path(sys.argv[1])
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
    response = await ctx.elicit("What is your name?", Name)
    return f"hello {response.data.name}" if response.action == "accept" else response.action


@server.tool()
async def wait(ctx: Context) -> str:
    """Wait until the client cancels the call."""
    await ctx.report_progress(1)
    try:
        await asyncio.sleep(60)
    finally:
        with LOG.open("a") as lines:
            lines.write("cancelled\n")
    return "waited"


if __name__ == "__main__":
    server.run("streamable-http", port=int(sys.argv[3]))
