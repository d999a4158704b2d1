"""A server whose tool `check` answers as it is asked to: raw bytes, no SDK.

    python probed.py

`heard` answers with what the server was told since it was last asked that; whatever else is called
is done.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

TOOLS = ("act", "check")
NOTE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"checking"}}'
ASKS = b'{"jsonrpc":"2.0","id":"s-1","method":"roots/list"}'


def answer(id: bytes, text: str = "done", *, failed: bool = False) -> bytes:
    block = json.dumps({"type": "text", "text": text}).encode()
    more = b',"isError":true' if failed else b""
    return b'{"jsonrpc":"2.0","id":%s,"result":{"content":[%s]%s}}' % (id, block, more)


def initialized(id: bytes) -> bytes:
    result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "p"}}
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (id, json.dumps(result).encode())


def tools(id: bytes) -> bytes:
    page = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (id, json.dumps(page).encode())


def error(id: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no such check"}}' % id


def check_responses(id: bytes, how: str) -> list[bytes]:
    right = answer(id, '{"busy":false}')
    return {
        "fine": [right],
        "failed": [answer(id, "the index is locked", failed=True)],
        "error": [error(id)],
        "error of nobody": [error(b"null")],
        "garbage": [right[:-9]],
        "twice": [right, right],
        "another id": [answer(b'"nobody"'), right],
        "note": [NOTE, right],
        "question": [ASKS, right],
        "never": [],
        "belated": [],
    }[how]


def tells(message: dict[str, Any]) -> Iterator[bytes]:
    token = json.dumps(message["params"]["_meta"]["progressToken"]).encode()
    for count in range(60):
        time.sleep(0.05)
        yield (
            b'{"jsonrpc":"2.0","method":"notifications/progress",'
            b'"params":{"progressToken":%s,"progress":%d}}' % (token, count)
        )
    yield answer(json.dumps(message["id"]).encode())


def name(message: dict[str, Any]) -> str:
    text: str = message.get("params", {}).get("name", message.get("method", "answer"))
    return text


def say(*lines: bytes) -> None:
    for line in lines:
        sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def tell(message: dict[str, Any]) -> None:
    for line in tells(message):
        say(line)


def main() -> None:
    messages: list[dict[str, Any]] = []
    late: dict[str, bytes] = {}
    for message in map(json.loads, sys.stdin.buffer):
        tool, id = name(message), json.dumps(message.get("id")).encode()
        if tool == "heard":
            # Nothing of the proxy's own questions may be seen in what clients are sent.
            say(answer(id, json.dumps(messages).encode().hex()))
            messages.clear()
            continue
        messages.append(message)
        if tool == "initialize":
            say(initialized(id))
        elif tool == "tools/list":
            say(tools(id))
        elif tool == "notifications/cancelled":
            say(*filter(None, [late.pop(message["params"]["requestId"], b"")]))
        elif tool == "check":
            how = message["params"]["arguments"]["how"]
            if how == "death":
                os.write(2, b"the disk is on fire\n")
                os._exit(3)
            if how == "slow":
                time.sleep(0.3)
                how = "fine"
            if how == "alive":
                telling = threading.Thread(target=tell, args=(message,), daemon=True)
                telling.start()
                continue
            if how == "belated":
                late[message["id"]] = answer(id)
            say(*check_responses(id, how))
        elif "id" in message and "method" in message:
            say(answer(id))


if __name__ == "__main__":
    main()
