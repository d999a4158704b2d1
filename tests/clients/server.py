"""An MCP server over stdio whose answers show which copy of them a client passes on, and how much.

Its arguments are the tools that it has; all of them if there are none. With `resources` among them
it has these, too.
It is no fixture of an SDK: its start costs nothing, and a client has it started many times.
"""

import json
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.plain_server import serve

Json = dict[str, Any]

LONG = 200_000
# Sixteen by sixteen gray pixels.
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAD0lEQVR4nGOoRwMMI1sAAHz9fwESwiPdAAAAAElFTkSu"
    "QmCC"
)


def rows(size: int = LONG) -> list[Json]:
    """Return records. Each second score is a whole number, which JavaScript respells."""
    row = {
        "state": "open",
        "owner": {"login": "user", "id": 9000},
        "body": "The quick brown fox jumps over the lazy dog, again and again and again. " * 2,
    }
    count = size // (len(json.dumps(row)) + 60)
    return [{"id": n, "title": f"Record number {n}", "score": n / 2, **row} for n in range(count)]


def lines(size: int) -> str:
    return "\n".join(f"Line {n}: a bright cold day in April, {n}." for n in range(5_000))[:size]


def texts(*blocks: str) -> Json:
    return {"content": [{"type": "text", "text": text} for text in blocks]}


def both(document: Json, text: str | None = None) -> Json:
    return texts(text or json.dumps(document)) | {"structuredContent": document}


ERROR = "no such record: 17"
RESULTS: dict[str, Json] = {
    "marked": both({"copy": "structured", "score": 2.5}, '{"copy": "text", "score": 1.5}'),
    "small": texts('{"id": 1, "state": "open", "title": "Record number one"}'),
    "array": texts('[{"id": 1}, {"id": 2}]'),
    "number": texts("42"),
    "fail": texts(ERROR) | {"isError": True},
    "fail_both": both({"code": "NOT_FOUND", "error": ERROR}) | {"isError": True},
    "picture": {"content": [
        {"type": "text", "text": "A caption before."},
        {"type": "image", "data": PICTURE, "mimeType": "image/png"},
    ]},
    "blocks": texts("BLOCK-ONE", "BLOCK-TWO", '{"block": "THREE"}'),
    "embedded": {"content": [
        {"type": "resource", "resource": {"uri": "file:///srv/inside.txt", "text": "EMBEDDED"}},
    ]},
    "bare": {"content": [], "structuredContent": {"copy": "structured", "only": True}},
    "rows_text": texts(json.dumps(rows())),
    "rows_both": both({"items": rows()}),
    "lines": texts(lines(LONG)),
    "add_row": texts(json.dumps(rows())),
    "chart": both({"items": rows()}),
}  # fmt: skip
WORD = "resources"
RESOURCES = {
    "file:///srv/build.log": "".join(
        f"{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02} step {n} of the build ends in {n % 7} ms\n"
        for n in range(6_700)
    ),
    "file:///srv/rows.json": json.dumps(rows(300_000)),
}
SIZED = ("page", "page_rows", "hinted")  # `query` says how many bytes
HINT = 200_000  # of the author of `hinted`
SCHEMA = {"type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"]}


def tool(name: str) -> Json:
    """Return a tool's definition. Of `add_row` the server does not say that it only reads."""
    definition: Json = {
        "name": name,
        "description": f"Returns {name}.",
        "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
    }
    if name != "add_row":
        definition["annotations"] = {"readOnlyHint": True}
    if name == "chart":
        definition["_meta"] = {"ui": {"resourceUri": "ui://probe/chart"}}
    if name in ("rows_both", "page_rows"):
        definition["outputSchema"] = SCHEMA
    if name == "hinted":
        definition["_meta"] = {"anthropic/maxResultSizeChars": HINT}
    return definition


# What Claude Code shows in place of an answer that it saved. A result of MCP's first revision comes
# to its hooks in the same form.
SAVED = (
    "Error: result (9 characters) exceeds maximum allowed tokens. Output has been saved to %s.\n"
)


def sized(name: str, size: int) -> Json:
    return both({"items": rows(size * 9 // 10)}) if name == "page_rows" else texts(lines(size))


def call(name: str, arguments: Json) -> Json:
    if name == "saved":
        return {"toolResult": SAVED % arguments["query"]}
    if name in SIZED:
        return sized(name, int(arguments["query"]))
    if name not in RESULTS:
        raise LookupError(f"there is no tool {name}")
    return RESULTS[name]


if __name__ == "__main__":
    names = [word for word in sys.argv[1:] if word != WORD] or (*RESULTS, *SIZED)
    own = RESOURCES if WORD in sys.argv else {}
    serve("probe", "1.0.0", [*map(tool, names)], call, resources=own)
