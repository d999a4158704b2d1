"""A server that answers as its call says, or differently every time: raw bytes, no SDK.

    python changing.py

A call with an argument `answer` is answered so. Else `list` and `long` give ten rows that begin
with how often they were called, `calls` how often that was, `huge` many rows in two copies, and
`note` what the argument `says`.
"""

import json
import sys
from collections import Counter
from typing import Any

INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "changing", "version": "1"},
}
TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}}
    for name in ("list", "long", "calls", "huge", "note")
]
CALL_COUNTS: Counter[str] = Counter()


def answered(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            return {"result": INITIALIZED}
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call":
            answer: dict[str, Any] = params["arguments"].get("answer")
            return answer or {"result": call_result(params["name"], params["arguments"])}
    return {"result": {}}


def call_result(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    CALL_COUNTS[name] += 1
    match name:
        case "list" | "long":
            return text({"rows": [f"{CALL_COUNTS[name]}-{number}" for number in range(10)]})
        case "calls":
            return text(CALL_COUNTS)
        case "huge":
            row = {"id": 1.5, "title": "A row like any other", "body": "text " * 60}
            document = {"rows": [row] * arguments["rows"], "source": "here"}
            return {**text(document), "structuredContent": document}
    return text(arguments.get("says"))


def text(value: Any) -> dict[str, Any]:
    string = value if isinstance(value, str) else json.dumps(value)
    return {"content": [{"type": "text", "text": string}]}


def line(message: dict[str, Any]) -> bytes:
    whole = {"jsonrpc": "2.0", "id": message["id"], **answered(message)}
    return json.dumps(whole, separators=(",", ":")).encode()


if __name__ == "__main__":
    for raw in sys.stdin.buffer:
        message = json.loads(raw)
        if "id" in message and "method" in message:
            sys.stdout.buffer.write(line(message) + b"\n")
            sys.stdout.buffer.flush()
