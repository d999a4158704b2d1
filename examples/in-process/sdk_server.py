"""A server of the official SDK whose answers are short."""

from issues import fetch
from mcp.server.mcpserver import MCPServer
from mcp_abridge import AbridgeMiddleware
from mcp_types import ToolAnnotations

mcp = MCPServer("shop", middleware=[AbridgeMiddleware()])


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def list_issues(state: str) -> str:
    """List the issues in a state."""
    return fetch(state)


if __name__ == "__main__":
    mcp.run()
