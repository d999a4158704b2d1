"""A server of FastMCP whose answers are short."""

from fastmcp import FastMCP
from issues import fetch
from mcp_abridge import AbridgeMiddleware

mcp = FastMCP("shop")


@mcp.tool(annotations={"readOnlyHint": True})
def list_issues(state: str) -> str:
    """List the issues in a state."""
    return fetch(state)


AbridgeMiddleware().install(mcp)

if __name__ == "__main__":
    mcp.run()
