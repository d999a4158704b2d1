"""A server whose answers are as large as the tool's name says: `small` or `large`, 20 MB.

    python weighty.py

On stdio it says on its stderr what it hears, and when it has said a large answer.
"""

import json
import os
import sys
from functools import cache

LARGE = 20_000_000
SMALL = 40_000
FIRST = b'{"jsonrpc":"2.0","id":'
_ROW = '{"id":%d,"name":"a row of many","text":"lorem ipsum dolor sit amet"}'


@cache
def result(size: int) -> bytes:
    rows = ",".join(_ROW % number for number in range(size // (len(_ROW) + 12)))
    block = {"type": "text", "text": '{"items":[' + rows + "]}"}
    return json.dumps({"content": [block]}, separators=(",", ":")).encode()


def answer(id: bytes, tool: str) -> bytes:
    """Return the answer to a call, which is a large one for any tool whose name ends so."""
    document = b'{"content":[{"type":"text","text":"ok"}]}'
    if tool.endswith(("large", "small")):
        document = result(LARGE if tool.endswith("large") else SMALL)
    return FIRST + id + b',"result":' + document + b"}"


def initialized(id: bytes) -> bytes:
    document = b'{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"weighty"}}'
    return FIRST + id + b',"result":' + document + b"}"


def main() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method, id = message["method"], json.dumps(message.get("id")).encode()
        print(f"heard {method}", file=sys.stderr, flush=True)
        if method == "initialize":
            say(initialized(id))
        elif "id" in message:
            tool = message.get("params", {}).get("name", "")
            say(answer(id, tool))
            if tool:
                print(f"said {tool}", file=sys.stderr, flush=True)


def say(raw: bytes) -> None:
    rest = memoryview(raw + b"\n")
    while rest:
        rest = rest[os.write(1, rest) :]


if __name__ == "__main__":
    main()
