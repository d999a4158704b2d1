"""A server that answers each call with what its argument `answer` says: raw bytes, no SDK.

python echo.py
"""

import json
import sys
from typing import Any

TOOLS = ("list", "get", "read", "code", "job", "act", "gone", "few")
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "echo", "version": "1"},
}
LISTED = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
LONG = {"_meta": {"long": "x" * 300_000}}
CHECKED = {"content": [{"type": "text", "text": '{"busy":false}'}]}


def answered(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params", {})
    match message["method"], params.get("name"):
        case "initialize", _:
            return {"result": INITIALIZED}
        case "tools/list", _:
            return {"result": {**LISTED, **params.get("_meta", {})}}
        case "tools/call", "check" if params["arguments"]["how"] == "long":
            return {"result": {**CHECKED, **LONG}}
        case "tools/call", "check":
            return {"result": CHECKED}
        case "tools/call", _:
            found: dict[str, Any] = params["arguments"]["answer"]
            return found
    return {"result": {}}


def never(message: dict[str, Any]) -> bool:
    params = message.get("params", {})
    return bool(params.get("name") == "check" and params["arguments"]["how"] == "never")


def line(message: dict[str, Any]) -> bytes:
    whole = {"jsonrpc": "2.0", "id": message["id"], **answered(message)}
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()


if __name__ == "__main__":
    for raw in sys.stdin.buffer:
        asked = json.loads(raw)
        if "id" in asked and "method" in asked and not never(asked):
            sys.stdout.buffer.write(line(asked) + b"\n")
            sys.stdout.buffer.flush()
