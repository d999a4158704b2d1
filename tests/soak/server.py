"""A server of the soak: documents from 1 to 500 KB, errors, progress, noise, and no answer at all.

    python -m tests.soak.server [--http PORT]

Each answer is made once and kept, so that the server costs little beside the proxy.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any

import msgspec

from tests.raw_http import ACCEPTED, STREAM, RawRequest, RawServer, event, whole

SIZES = (1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000, 120_000, 250_000, 500_000)
"""About how many bytes a document has; a call names one of them by its number."""

NOISY = 100  # requests between two noises
READS = {"annotations": {"readOnlyHint": True}}
NAMES = ("rows", "note", "both", "long", "once", "plain", "checked", "bounded", "failing")
TOOLS: dict[str, dict[str, Any]] = {
    **{name: {} for name in (*NAMES, "broken", "slow", "never", "hidden")},
    **dict.fromkeys(("rows", "note", "long"), READS),
    "both": {"outputSchema": {"type": "object", "properties": {"rows": {"type": "array"}}}},
}
SERVER = {
    "serverInfo": {"name": "soak", "version": "1"},
    "capabilities": {"tools": {"listChanged": True}, "logging": {}},
}


class Request(msgspec.Struct):
    """The members of a line that are read: an id that is absent makes it a notification."""

    method: str = ""
    id: msgspec.Raw = msgspec.Raw(b"")
    params: dict[str, Any] = {}

    def answer(self) -> bytes | None:
        """Return the answer; None for a notification and for what is never answered."""
        tool = str(self.params.get("name", ""))
        if not self.id or tool == "never":
            return None
        arguments = self.params.get("arguments") or {}
        what = (self.method, tool, arguments.get("size", 0), bool(arguments.get("wrong")))
        return b'{"jsonrpc":"2.0","id":%s,%s}' % (bytes(self.id), body(*what))

    def before(self) -> list[bytes]:
        """Return the notifications before the answer."""
        if self.params.get("name") != "slow":
            return []
        log = {"level": "info", "data": "working"}
        progress = {
            "progress": 1,
            "progressToken": self.params.get("_meta", {}).get("progressToken"),
        }
        return [
            compact({"jsonrpc": "2.0", "method": f"notifications/{name}", "params": params})
            for name, params in (("message", log), ("progress", progress))
        ]


read = msgspec.json.Decoder(Request).decode


@cache
def body(method: str, tool: str, size: int, wrong: bool) -> bytes:
    """Return the member that answers: a result or an error."""
    result: dict[str, Any]
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", **SERVER}
    elif method == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], **SERVER}
    elif method == "tools/list":
        own = {"inputSchema": {"type": "object"}}
        result = {"tools": [{"name": name, **own, **more} for name, more in TOOLS.items()]}
    elif method == "tools/call" and tool in TOOLS:
        text, more = answered(tool, SIZES[size], wrong)
        result = {"content": [{"type": "text", "text": text}], **more}
    else:
        return b'"error":' + compact({"code": -32602, "message": f"there is no {tool or method}"})
    return b'"result":' + compact({"resultType": "complete", **result})


def answered(tool: str, size: int, wrong: bool) -> tuple[str, dict[str, Any]]:
    """Return the text of a tool's result, and its other members."""
    if tool in ("rows", "both", "long", "once"):
        document = rows(size)
        more = {"structuredContent": document} if tool == "both" else {}
        return compact(document).decode(), more
    texts = {
        "note": "A line of a nöte, no newer than it is.\n" * (size // 40),
        "plain": "plain " * (size // 6),
        "checked": '{"count":"many"}' if wrong else '{"count":7}',
        "bounded": "within its bounds",
        "failing": '{"rows":7}',
        "broken": "the disk is on fire",
        "slow": "done",
        "hidden": "nobody is to see this",
    }
    return texts[tool], {"isError": True} if tool == "broken" else {}


def rows(size: int) -> dict[str, Any]:
    records = [
        {
            "id": 1000 + number,
            "title": f"Instruction {number}",
            "state": "open" if number % 3 else "withdrawn",
            "weight": 1.5,
            "body": f"{number} " * 12,
            "url": f"https://documents.example.org/id/{1000 + number}",
        }
        for number in range(max(size // 180, 6))
    ]
    return {"rows": records, "source": "documents"}


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def over_stdio() -> None:
    for number, line in enumerate(sys.stdin.buffer, 1):
        request = read(line)
        answer = request.answer()
        lines = request.before() + ([] if answer is None else [answer])
        if number % NOISY == 0:
            lines.append(b"Server: 12% of something done")
            os.write(2, b"warning: nothing is wrong\n")
        sys.stdout.buffer.writelines(line + b"\n" for line in lines)
        sys.stdout.buffer.flush()


def over_http(port: int) -> None:
    """Serve sessions of which each has an id of its own, JSON and event streams."""
    numbers = count(1)

    def answer(exchange: RawRequest) -> Iterator[bytes]:
        server.requests.clear()
        if exchange.method == "GET":
            yield STREAM + b": hello\n\n"
            exchange.closed_by_client()
        elif exchange.method == "DELETE":
            yield whole()
        else:
            yield from post(exchange, next(numbers))

    def post(exchange: RawRequest, number: int) -> Iterator[bytes]:
        request = read(exchange.body)
        first, last = request.before(), request.answer()
        if request.method == "initialize":
            yield whole(last or b"", "200 OK", f"Mcp-Session-Id: soak-{number}")
        elif not request.id:
            yield ACCEPTED
        elif last is None:
            exchange.closed_by_client()
        elif not first and number % 3:
            yield whole(last)
        else:
            noise = b": noise\n\n" * (number % NOISY == 0)
            yield STREAM + noise + b"".join(map(event, (*first, last)))

    server = RawServer(answer, port)
    threading.Event().wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        over_http(int(sys.argv[2]))
    else:
        over_stdio()
