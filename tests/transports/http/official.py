"""A stdio server made with the official SDK, which speaks both eras."""

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("official")


class Age(BaseModel):
    years: int


@server.tool()
def rows(count: int) -> list[dict[str, int]]:
    """Return so many rows."""
    return [{"n": at} for at in range(count)]


@server.tool()
async def steps(context: Context[Any], count: int) -> str:
    """Report each step."""
    for at in range(count):
        await context.report_progress(at + 1, count, f"step {at + 1}")
    return "all done"


@server.tool()
async def guess(context: Context[Any]) -> str:
    """Have the client's model guess."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text="guess"))
    made = await context.session.create_message([message], max_tokens=5)
    return f"guessed {made.content.text}"


@server.tool()
async def age(context: Context[Any]) -> str:
    """Ask the client's user."""
    made = await context.elicit("how old are you?", Age)
    return f"{made.action} {made.data}"  # type: ignore[union-attr]


if __name__ == "__main__":
    server.run()
