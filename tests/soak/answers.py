"""What the servers of the soak answer: documents from 1 to 500 KB, errors, and nothing at all.

Each answer is made once and kept, so that a server costs little beside the proxy.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

SIZES = (1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000, 120_000, 250_000, 500_000)
"""About how many bytes a document has; a call names one of them by its number."""

READS = {"annotations": {"readOnlyHint": True}}
NAMED = {"name": "soak", "version": "1"}
TOOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rows", READS),
    ("note", READS),
    ("both", {"outputSchema": {"type": "object", "properties": {"rows": {"type": "array"}}}}),
    ("long", READS),
    ("once", {}),
    ("plain", {}),
    ("checked", {}),
    ("bounded", {}),
    ("failing", {}),
    ("broken", {}),
    ("slow", {}),
    ("never", {}),
    ("hidden", {}),
)


class Request(msgspec.Struct):
    """What is read of a line: an id that is absent makes it a notification."""

    method: str = ""
    id: msgspec.Raw = msgspec.Raw(b"")
    params: dict[str, Any] = {}

    @property
    def tool(self) -> str:
        return str(self.params.get("name", ""))

    @property
    def token(self) -> Any:
        """What the caller wants to hear of the progress under."""
        return self.params.get("_meta", {}).get("progressToken")


read = msgspec.json.Decoder(Request).decode


def answer(asked: Request) -> bytes | None:
    """Return the answer to a request; None for a notification and for what is never answered."""
    if not asked.id or asked.tool == "never":
        return None
    arguments = asked.params.get("arguments") or {}
    what = (asked.method, asked.tool, arguments.get("size", 0), bool(arguments.get("wrong")))
    return b'{"jsonrpc":"2.0","id":%s,%s}' % (bytes(asked.id), body(*what))


def before(asked: Request) -> list[bytes]:
    """Return what a server says before its answer."""
    if asked.tool != "slow":
        return []
    said: list[dict[str, Any]] = [
        {"method": "notifications/message", "params": {"level": "info", "data": "working"}}
    ]
    if asked.token is not None:
        progress = {"progressToken": asked.token, "progress": 1}
        said += [{"method": "notifications/progress", "params": progress}]
    return [compact({"jsonrpc": "2.0", **each}) for each in said]


@cache
def body(method: str, tool: str, size: int, wrong: bool) -> bytes:
    """Return the member that answers: a result or an error."""
    found: dict[str, Any]
    if method == "initialize":
        found = {"protocolVersion": "2025-11-25", "serverInfo": NAMED, **_CAPABLE}
    elif method == "server/discover":
        found = {"supportedVersions": ["2026-07-28"], "serverInfo": NAMED, **_CAPABLE}
    elif method == "tools/list":
        schema = {"type": "object"}
        found = {"tools": [{"name": name, "inputSchema": schema, **more} for name, more in TOOLS]}
    elif method == "tools/call" and tool in RESULTS:
        found = RESULTS[tool](SIZES[size], wrong)
    else:
        return b'"error":' + compact({"code": -32602, "message": f"there is no {tool or method}"})
    return b'"result":' + compact({"resultType": "complete", **found})


_CAPABLE = {"capabilities": {"tools": {"listChanged": True}, "logging": {}}}


def rows(size: int) -> dict[str, Any]:
    found = [
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
    return {"rows": found, "source": "documents"}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


def written(value: Any) -> str:
    return compact(value).decode()


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


RESULTS: dict[str, Callable[[int, bool], dict[str, Any]]] = {
    "rows": lambda size, _: said(written(rows(size))),
    "note": lambda size, _: said("A line of a nöte, no newer than it is.\n" * (size // 40)),
    "both": lambda size, _: said(written(rows(size)), structuredContent=rows(size)),
    "long": lambda size, _: said(written(rows(size))),
    "once": lambda size, _: said(written(rows(size))),
    "plain": lambda size, _: said("plain " * (size // 6)),
    "checked": lambda size, wrong: said(written({"count": "many" if wrong else 7})),
    "bounded": lambda size, _: said("within its bounds"),
    "failing": lambda size, _: said(written({"rows": 7})),
    "broken": lambda size, _: said("the disk is on fire", isError=True),
    "slow": lambda size, _: said("done"),
    "hidden": lambda size, _: said("nobody is to see this"),
}
