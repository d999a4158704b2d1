"""A program with the middleware and the function: mypy must take it, but for its last line."""

from typing import Any, assert_type

from mcp.server.mcpserver import MCPServer
from mcp_abridge import Abridge, AbridgeMiddleware, ToolCall
from mcp_types import CallToolResult, Tool


def program() -> None:
    abridge = Abridge(rules=["a.yaml"], client="claude-code", budget=8000)
    result = CallToolResult(content=[])
    assert_type(abridge.result("t", {"a": 1}, result), CallToolResult)
    assert_type(abridge.result("t", {}, "text", caller="ann"), str)
    document: dict[str, Any] = {"content": []}
    assert_type(abridge.result("t", {}, document), dict[str, Any])
    assert_type(abridge.view("t", {}, "a"), dict[str, Any])
    tools: list[Tool] = []
    assert_type(abridge.tools(tools), list[Tool])
    call: ToolCall = abridge.call("t", {})
    assert_type(call.text, str | None)
    server: MCPServer[Any] = MCPServer("a", middleware=[AbridgeMiddleware(budget="off")])
    assert_type(AbridgeMiddleware(caller=lambda ctx: ctx.method).install(server), MCPServer[Any])
    Abridge(budgets=3)  # type: ignore[call-arg]  # a mistake, if mypy sees none
