"""A server whose answers are others every time: raw bytes, no SDK.

    python changing.py

`list`, `read` and `long` give ten rows that begin with how often they were called, `calls` how
often that was, `huge` many rows in two copies, and `note` what the argument `says`.
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
READS = {"annotations": {"readOnlyHint": True}}
TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}, **(READS if name == "read" else {})}
    for name in ("list", "read", "long", "calls", "huge", "note")
]
CALLED: Counter[str] = Counter()


def answered(message: dict[str, Any]) -> dict[str, Any]:
    if message["method"] == "initialize":
        return INITIALIZED
    if message["method"] == "tools/list":
        return {"tools": TOOLS}
    params = message["params"]
    name, says = params["name"], params.get("arguments", {}).get("says")
    CALLED[name] += 1
    match name:
        case "list" | "read" | "long":
            return text({"rows": [f"{CALLED[name]}-{number}" for number in range(10)]})
        case "calls":
            return text(CALLED)
        case "huge":
            row = {"id": 1.5, "title": "A row like any other", "body": "text " * 60}
            found = {"rows": [row] * params["arguments"]["rows"], "source": "here"}
            return {**text(found), "structuredContent": found}
    return text(says)


def text(said: Any) -> dict[str, Any]:
    written = said if isinstance(said, str) else json.dumps(said)
    return {"content": [{"type": "text", "text": written}]}


if __name__ == "__main__":
    for raw in sys.stdin.buffer:
        asked = json.loads(raw)
        if "id" not in asked or "method" not in asked:
            continue
        result = json.dumps(answered(asked), separators=(",", ":"))
        line = f'{{"jsonrpc":"2.0","id":{json.dumps(asked["id"])},"result":{result}}}\n'
        sys.stdout.buffer.write(line.encode())
        sys.stdout.buffer.flush()
