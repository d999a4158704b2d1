"""The results of `make answers`, served by FastMCP; with `abridged`, made short by the middleware.

With `misplaced`, it is in the place of FastMCP's own middleware, which is a mistake.
"""

import sys

from fastmcp import FastMCP
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from mcp_abridge import AbridgeMiddleware

from tests.transports.inprocess.server import DEFINITIONS, result


class Answer(Tool):
    """A tool with a result of its own."""

    async def run(self, arguments):
        own = result(self.name)
        structured, error = own.structured_content, bool(own.is_error)
        return ToolResult(own.content, structured_content=structured, is_error=error)


server = FastMCP("answers", version="1")
for each in DEFINITIONS:
    server.add_tool(
        Answer(
            name=each.name,
            description=each.description,
            parameters=each.input_schema,
            output_schema=each.output_schema,
            annotations=each.annotations,
        )
    )
if "abridged" in sys.argv:
    AbridgeMiddleware().install(server)
if "misplaced" in sys.argv:
    server.add_middleware(AbridgeMiddleware())
server.run(show_banner=False)
