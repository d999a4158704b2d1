"""The secretive server as a program in Python, with the middleware, over Streamable HTTP.

python tests/callers/program.py TICKETS RULES CALLERS --http PORT

CALLERS is JSON: for each caller the token, the key and the secret. The SDK gives no session to
another token than that which began it; whose secret is told depends on the key.
"""

import json
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import anyio
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_abridge import AbridgeMiddleware
from mcp_types import CallToolResult, ListToolsResult, ReadResourceResult
from pydantic import AnyHttpUrl

from tests.callers import server
from tests.callers.server import Json

Context = ServerRequestContext[Any, Any]


class Program:
    """Answers by the secretive server of whoever asks, and proves tokens."""

    def __init__(self, tickets: Path, callers: list[Json]) -> None:
        self._servers = {each["key"]: server.Server(tickets, each["secret"]) for each in callers}
        self._tokens = {each["token"]: each["key"] for each in callers}

    async def verify_token(self, token: str) -> AccessToken | None:
        key = self._tokens.get(token)
        return None if key is None else AccessToken(token=token, client_id=key, scopes=[])

    async def answer(self, ctx: Context, _: Any) -> Json:
        assert ctx.request is not None
        own = self._servers[ctx.request.headers["x-api-key"]]
        message = {"id": 1, "method": ctx.method, "params": dict(ctx.params or {})}
        reply = own.reply(message)
        if reply.fault == "never":
            await anyio.sleep_forever()
        for note in reply.before:
            if note["method"] == "notifications/progress":
                await ctx.session.report_progress(1, message=note["params"]["message"])
        if "error" in reply.answer:
            raise MCPError(**reply.answer["error"])
        result: Json = reply.answer["result"]
        return result

    async def tools(self, ctx: Context, params: Any) -> ListToolsResult:
        return ListToolsResult.model_validate(await self.answer(ctx, params))

    async def call(self, ctx: Context, params: Any) -> CallToolResult:
        return CallToolResult.model_validate(await self.answer(ctx, params))

    async def read(self, ctx: Context, params: Any) -> ReadResourceResult:
        return ReadResourceResult.model_validate(await self.answer(ctx, params))


def main(tickets: str, rules: str, callers: str, _: str, port: str) -> None:
    program = Program(Path(tickets), json.loads(callers))
    mcp: Server[Any] = Server(
        "s", on_list_tools=program.tools, on_call_tool=program.call, on_read_resource=program.read
    )
    AbridgeMiddleware(rules).install(mcp)
    url = AnyHttpUrl(f"http://127.0.0.1:{port}")
    settings = AuthSettings(issuer_url=url, resource_server_url=None)
    any_host = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = mcp.streamable_http_app(
        auth=settings, token_verifier=program, transport_security=any_host
    )
    uvicorn.run(app, port=int(port), log_level="error")


if __name__ == "__main__":
    main(*sys.argv[1:])
