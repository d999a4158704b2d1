"""A server without an SDK, which takes a second to start; a test gives it its tools."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

Json = dict[str, Any]

# The beginning of a script that serves, wherever it is started.
IMPORT = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[1])!r})
from tests.plain_server import serve
"""
_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def serve(
    name: str,
    version: str,
    tools: list[Json],
    call: Callable[..., Json],
    *,
    tools_change: bool = False,
    resources: Mapping[str, str] = MappingProxyType({}),
    stateless: bool = False,
    port: int = 0,
) -> None:
    """Answer until stdin ends, or over HTTP at a port; `call` gets a tool's name and its arguments.

    A LookupError of it, and an unknown method, are answered with an error of the protocol.
    `resources` are texts by their URIs; without any, the server declares none. One that is
    `stateless` speaks 2026-07-28, too.
    """
    capabilities: Json = {"tools": {"listChanged": True} if tools_change else {}}
    capabilities |= {"resources": {}} if resources else {}
    info = {"name": name, "version": version}
    fresh: Json = {"ttlMs": 0, "cacheScope": "private"} if stateless else {}
    meta = {"_meta": {"io.modelcontextprotocol/serverInfo": info}, "resultType": "complete"}

    def result(method: str, params: Json) -> Json:
        match method:
            case "initialize":
                requested = params.get("protocolVersion")
                return {
                    "protocolVersion": requested if requested in _VERSIONS else _VERSIONS[-1],
                    "capabilities": capabilities,
                    "serverInfo": info,
                }
            case "server/discover" if stateless:
                return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, **fresh}
            case "ping":
                return {}
            case "tools/list":
                return {"tools": tools, **fresh}
            case "tools/call":
                return call(params["name"], params.get("arguments") or {})
            case "resources/list" if resources:
                return {"resources": [{"uri": uri, "name": uri} for uri in resources]}
            case "resources/templates/list" if resources:
                return {"resourceTemplates": []}
            case "resources/read" if params["uri"] in resources:
                return {"contents": [{"uri": params["uri"], "text": resources[params["uri"]]}]}
        raise LookupError(f"there is no {method}")

    def answer(message: Json) -> str:
        """Return the line that answers; nothing for a notification."""
        if "id" not in message or "method" not in message:
            return ""
        answer: Json = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            answer["result"] = result(message["method"], message.get("params") or {})
            answer["result"] |= meta if stateless else {}
        except LookupError as error:
            # -32000 is also what the SDK says of a connection that has ended.
            code = -32000 if message["method"] == "tools/call" else -32601
            answer["error"] = {"code": code, "message": str(error.args[0])}
        return json.dumps(answer, separators=(",", ":"))

    if port:
        _listen(answer, port)
    for line in sys.stdin:
        if reply := answer(json.loads(line)):
            print(reply, flush=True)


def _listen(answer: Callable[[Json], str], port: int) -> NoReturn:
    from tests.raw_http import ACCEPTED, RawRequest, RawServer, whole

    def exchange(request: RawRequest) -> Iterator[bytes]:
        if request.method != "POST":
            yield whole(b"", "405 Method Not Allowed")
        else:
            reply = answer(request.message)
            yield whole(reply.encode()) if reply else ACCEPTED

    RawServer(exchange, port).accepting.join()
    raise SystemExit
