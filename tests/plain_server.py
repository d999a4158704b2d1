"""A server over stdio without an SDK, which takes a second to start; a test gives it its tools."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

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
) -> None:
    """Answer until stdin ends; `call` gets a tool's name and its arguments.

    A LookupError of it, and an unknown method, are answered with an error of the protocol.
    `resources` are texts by their URIs; without any, the server declares none.
    """
    capabilities: Json = {"tools": {"listChanged": True} if tools_change else {}}
    capabilities |= {"resources": {}} if resources else {}

    def result(method: str, params: Json) -> Json:
        match method:
            case "initialize":
                requested = params.get("protocolVersion")
                return {
                    "protocolVersion": requested if requested in _VERSIONS else _VERSIONS[-1],
                    "capabilities": capabilities,
                    "serverInfo": {"name": name, "version": version},
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": tools}
            case "tools/call":
                return call(params["name"], params.get("arguments") or {})
            case "resources/list" if resources:
                return {"resources": [{"uri": uri, "name": uri} for uri in resources]}
            case "resources/templates/list" if resources:
                return {"resourceTemplates": []}
            case "resources/read" if params["uri"] in resources:
                return {"contents": [{"uri": params["uri"], "text": resources[params["uri"]]}]}
        raise LookupError(f"there is no {method}")

    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        answer: Json = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            answer["result"] = result(message["method"], message.get("params") or {})
        except LookupError as error:
            answer["error"] = {"code": -32601, "message": str(error.args[0])}
        print(json.dumps(answer, separators=(",", ":")), flush=True)
