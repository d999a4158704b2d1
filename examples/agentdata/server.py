"""A knowledge base as found: rows nobody needs, a sloppy prefix, a tool that always fails.

The data are made in memory and follow from nothing but this file. `list_documents` sends everything
at once; with `--paged` it has a `limit` and an `offset` of its own. Over HTTP the server has habits
that the SDK does not: see `habits`.
"""

import argparse
import asyncio
import bisect
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NAME, VERSION = "agentdata", "3.2.0"
ROWS, ALIVE, UNDERSCORED = 5040, 2907, 1184
KNOWLEDGE, KNOWLEDGE_DELETED = 2593, 23  # so 2,570 alive
ELSEWHERE, ELSEWHERE_ALIVE = ROWS - KNOWLEDGE - 1, ALIVE - (KNOWLEDGE - KNOWLEDGE_DELETED)
AREAS = (
    "knowledge/billing", "knowledge/search", "knowledge/Übersicht", "knowledge/api.v2",
    "knowledge/🗒 notes",
)  # fmt: skip
FOLDERS = (
    "projects/100%", "projects/100 days", "inbox/C:\\notes", "archive/2019",
    "旅行/記録", "\uf900/記録", "📓/log",
)  # fmt: skip
TOPICS = ("latency", "pricing", "hiring", "backup", "roadmap", "security", "metrics", "training")
TAGS = ("review", "draft", "person", "idea", "plan", "meeting", "done")
LINE = "{n}. What {name} says of it: settled ✅, see the minutes — naïve, Straße, 東京.\n"
DELETED, NOW = "2026-02-11T09:30:00Z", "2026-03-01T12:00:00Z"

LAST = "\U0010ffff"  # the sign after which no other comes

Json = dict[str, Any]
Tool = Callable[..., Json | str]
Context = ServerRequestContext[Any, Any]

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1}
START = {"type": "integer", "minimum": 0}
TEXTS = {"type": "array", "items": TEXT}
READS = types.ToolAnnotations(read_only_hint=True)
WRITES = types.ToolAnnotations(read_only_hint=False, destructive_hint=True)
TOOLS: dict[str, tuple[types.Tool, Tool]] = {}


def spread(n: int, wanted: int, total: int) -> bool:
    """Say yes to exactly `wanted` of the numbers below `total`, evenly."""
    return n * wanted // total != (n + 1) * wanted // total


def made(n: int, document_id: str, parent_id: str | None, deleted: bool) -> Json:
    """Return a row as the server sends it; older ones lack what came later, or have null there."""
    row: Json = {
        "document_id": document_id,
        "parent_id": parent_id,
        "storage_key": f"s3://agentdata-prod/documents/{n:08x}",
        "content_hash": hashlib.sha256(document_id.encode()).hexdigest(),
        "lines": 4000 if n % 500 == 0 else 90,
        "created_at": f"2025-{n % 12 + 1:02}-{n % 28 + 1:02}T08:00:00Z",
        "deleted_at": DELETED if deleted else None,
        "embedding": {"model": "text-embedding-3-large", "chunks": n % 7, "status": "ready"},
    }
    late = {"title": f"On {document_id}", "tags": [TAGS[n % 7], TAGS[n % 5]], "revision": n % 9 + 1}
    for place, (name, value) in enumerate(late.items()):
        if (n + place) % 17:
            row[name] = value if (n + place) % 19 else None
    return row


def rows() -> Iterator[Json]:
    """Yield 5,040 rows in no order: 2,907 alive, one without an id, the others deleted."""
    alive = count()
    for n in range(KNOWLEDGE + ELSEWHERE):
        if n < KNOWLEDGE:
            folder, deleted = AREAS[n % 5], spread(n, KNOWLEDGE_DELETED, KNOWLEDGE)
        else:
            folder, k = FOLDERS[n % 7], n - KNOWLEDGE
            deleted = not spread(k, ELSEWHERE_ALIVE, ELSEWHERE)
        joined = n % 2 == 0 if deleted else spread(next(alive), UNDERSCORED, ALIVE)
        sign = "_" if joined else "-"
        name = f"{folder}/{TOPICS[n // 7 % 8]}{sign}{n:04}"
        yield made(n, name, None if n % 40 == 0 else folder, deleted)
    yield made(ROWS - 1, "", None, False)


class Base:
    """The knowledge base: rows by id, an index of the ids, and the texts that calls have changed.

    A list is found by the index and put together from rows that are JSON already: a call costs
    what it returns, whatever else the base holds.
    """

    def __init__(self) -> None:
        self._rows: dict[str, Json] = {}
        self._json: dict[str, str] = {}
        self._index: list[str] = []  # signs in order are bytes of UTF-8 in order
        self._texts: dict[str, str] = {}
        for row in rows():
            self._put(row)

    def _put(self, row: Json) -> None:
        name = row["document_id"]
        if name not in self._rows:
            bisect.insort(self._index, name)
        self._rows[name] = row
        self._json[name] = json.dumps(row, ensure_ascii=False)

    def like(self, prefix: str) -> list[str]:
        """Return the ids that a LIKE finds: `_` in the prefix is any sign, `%` are any signs."""
        literal = re.split("[_%]", prefix, maxsplit=1)[0]
        start = bisect.bisect_left(self._index, literal)
        end = bisect.bisect_right(self._index, literal + LAST, start)
        found = self._index[start:end]
        if literal == prefix:
            return found
        wild = {"_": ".", "%": ".*"}
        pattern = "".join(wild.get(sign, re.escape(sign)) for sign in prefix)
        matching = re.compile(pattern, re.DOTALL).match
        return [name for name in found if matching(name)]

    def listed(self, ids: Iterable[str], total: int) -> str:
        """Return the rows of these ids, and how many there are in all, as JSON."""
        items = ", ".join(map(self._json.__getitem__, ids))
        return f'{{"items": [{items}], "total_count": {total}}}'

    def alive(self, document_id: str) -> Json | None:
        row = self._rows.get(document_id)
        return None if row is None or row["deleted_at"] else row

    def text(self, row: Json) -> str:
        name = row["document_id"]
        written = self._texts.get(name)
        return written or "".join(LINE.format(n=n, name=name) for n in range(row["lines"]))

    def write(self, document_id: str, text: str, **more: Any) -> Json:
        row = self.alive(document_id) or made(1, document_id, None, deleted=False) | {"revision": 0}
        revision = (row.get("revision") or 0) + 1
        self._put(row | more | {"revision": revision})
        self._texts[document_id] = text
        return {"document_id": document_id, "revision": revision}

    def delete(self, row: Json) -> None:
        self._put(row | {"deleted_at": NOW})


def failure(status: int, code: str, message: str) -> Json:
    return {"error": {"status": status, "code": code, "message": message}}


def missing(document_id: str) -> Json:
    return failure(404, "NOT_FOUND", f"no document {document_id}")


def strict(required: str = "", **properties: Json) -> Json:
    """Return the schema of an object that may have these properties and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | {"required": required.split()} if required else schema


def tool(schema: Json, annotations: types.ToolAnnotations = WRITES) -> Callable[[Tool], Tool]:
    """Register a function as the tool of its name, described by its docstring."""

    def register(run: Tool) -> Tool:
        name, says = run.__name__, run.__doc__
        TOOLS[name] = (
            types.Tool(name=name, description=says, input_schema=schema, annotations=annotations),
            run,
        )
        return run

    return register


@tool(strict(prefix=TEXT, path=TEXT, limit=COUNT, offset=START), READS)
def list_documents(
    base: Base, prefix: str = "", path: str = "", limit: int = 50, offset: int = 0
) -> str:
    """List documents."""
    found = base.like(prefix or path)
    return base.listed(found[offset : offset + min(limit, 100)], len(found))


def list_all(base: Base, prefix: str = "", path: str = "") -> str:
    """Return all rows, the last id first."""
    found = base.like(prefix or path)
    return base.listed(reversed(found), len(found))


@tool(strict("document_id", document_id=TEXT), READS)
def get_document(base: Base, document_id: str) -> Json:
    """Read a document."""
    row = base.alive(document_id)
    return missing(document_id) if row is None else row | {"content": base.text(row)}


@tool(strict("document_id", document_id=TEXT), READS)
def get_document_for_rewrite(base: Base, document_id: str) -> Json:
    """Read a document as its lines, to write it anew."""
    row = base.alive(document_id)
    if row is None:
        return missing(document_id)
    lines = base.text(row).splitlines(keepends=True)
    return {"document_id": document_id, "revision": row.get("revision"), "lines": lines}


@tool(strict("paths", paths={**TEXTS, "maxItems": 20}), READS)
def batch_read(base: Base, paths: list[str]) -> Json:
    """Read several documents."""
    found = [(path, base.alive(path)) for path in paths]
    return {
        "items": [
            {"document_id": path} | (missing(path) if row is None else {"content": base.text(row)})
            for path, row in found
        ]
    }


@tool(strict("document_id content", document_id=TEXT, content=TEXT, title=TEXT, tags=TEXTS))
def upload_document(base: Base, document_id: str, content: str, **more: Any) -> Json:
    """Add a document."""
    if base.alive(document_id) is not None:
        return failure(409, "CONFLICT", f"{document_id} exists")
    return base.write(document_id, content, **more)


@tool(strict("document_id content", document_id=TEXT, content=TEXT))
def update_document(base: Base, document_id: str, content: str) -> Json:
    """Replace the text of a document."""
    if base.alive(document_id) is None:
        return missing(document_id)
    return base.write(document_id, content)


@tool(strict("document_id revision old new", document_id=TEXT, revision=START, old=TEXT, new=TEXT))
def patch_document(base: Base, document_id: str, revision: int, old: str, new: str) -> Json:
    """Replace a part of a document, as long as nobody else has changed it."""
    row = base.alive(document_id)
    if row is None:
        return missing(document_id)
    now = row.get("revision") or 0
    if revision != now:
        return failure(409, "CONFLICT", f"revision {revision} is not the current one, {now}")
    return base.write(document_id, base.text(row).replace(old, new, 1))


@tool(strict("document_id", document_id=TEXT))
def delete_document(base: Base, document_id: str) -> Json:
    """Delete a document."""
    row = base.alive(document_id)
    if row is None:
        return missing(document_id)
    base.delete(row)
    return {"document_id": document_id, "deleted": True}


@tool(strict("url", url=TEXT))
def ingest_document(base: Base, url: str) -> Json:
    """Add a document from an address."""
    return base.write(f"inbox/ingested/{url.rpartition('/')[2]}", f"What stands at {url}.\n")


@tool(strict("document_id target", document_id=TEXT, target=TEXT))
def move_document(base: Base, document_id: str, target: str) -> Json:
    """Move a document."""
    raise NotImplementedError("moving documents is not implemented")


def answer(
    base: Base, run: Tool, valid: jsonschema.Draft202012Validator, arguments: Json
) -> types.CallToolResult:
    """Check the arguments and run the tool."""
    failed = True
    try:
        valid.validate(arguments)
        found, failed = run(base, **arguments), False
    except jsonschema.ValidationError as error:
        found = failure(422, "INVALID_ARGUMENT", error.message)
    except NotImplementedError as error:
        found = failure(501, "NOT_IMPLEMENTED", str(error))
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)


def serve(base: Base, *, paged: bool, log: Path | None) -> Server[Any]:
    """Return the server over a knowledge base.

    `paged`: the list comes in pages. `log` gets a JSON line per call, arguments as received.
    """
    tools = dict(TOOLS)
    if not paged:
        listed = tools["list_documents"][0]
        schema = strict(prefix=TEXT, path=TEXT)
        tools["list_documents"] = listed.model_copy(update={"input_schema": schema}), list_all
    runs = {
        name: (run, jsonschema.Draft202012Validator(definition.input_schema))
        for name, (definition, run) in tools.items()
    }

    async def list_tools(_: Context, page: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[definition for definition, _ in tools.values()])

    async def call_tool(_: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        if log:
            with log.open("a") as lines:
                lines.write(json.dumps({"tool": call.name, "arguments": call.arguments}) + "\n")
        if call.name not in tools:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {call.name}")
        return answer(base, *runs[call.name], call.arguments or {})

    return Server(NAME, version=VERSION, on_list_tools=list_tools, on_call_tool=call_tool)


def app(server: Server[Any]) -> ASGIApp:
    """Return the server as an HTTP service, with its habits."""
    move = Route("/documents/{document_id:path}/move", moved, methods=["POST"])
    speaking = server.streamable_http_app(
        json_response=True, stateless_http=True, custom_starlette_routes=[move]
    )
    return habits(speaking)


async def moved(request: Request) -> Response:
    said = failure(501, "NOT_IMPLEMENTED", "moving documents is not implemented")
    return JSONResponse(said, status_code=501)


def habits(within: ASGIApp) -> ASGIApp:
    """Return the service that answers some requests to /mcp in a way of its own.

    A GET for a stream is 405, any other tells about the server; a POST must accept both forms,
    and gets JSON; a notification is 204; a body that is no JSON is an error with status 200.
    """

    async def without(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/mcp":
            await within(scope, receive, send)
            return
        request = Request(scope)
        said = None
        if request.method == "GET":
            said = told(request)
        elif request.method == "POST" and not all(check_accept_headers(request)):
            both = "Client must accept both application/json and text/event-stream"
            said = refused(406, types.INVALID_REQUEST, f"Not Acceptable: {both}")
        await (said(scope, receive, send) if said else within(scope, receive, Altered(send)))

    return without


def told(request: Request) -> Response:
    if "text/event-stream" in request.headers.get("accept", ""):
        return refused(405, -32000, "Method Not Allowed", {"Allow": "POST"})
    tools = sorted(TOOLS)
    return JSONResponse({"name": NAME, "version": VERSION, "endpoint": "/mcp", "tools": tools})


def refused(status: int, code: int, message: str, headers: Json | None = None) -> Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return JSONResponse(body, status_code=status, headers=headers)


class Altered:
    """Sends a response on: 204 in place of 202, and 200 for a body that could not be parsed."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if message["status"] == 202:
                message = {"type": message["type"], "status": 204, "headers": []}
            elif message["status"] == 400:
                self._held = message
                return
        elif self._held is not None:
            held, self._held = self._held, None
            body = message["body"]
            error = json.loads(body).get("error", {}) if body.startswith(b"{") else {}
            unread = error.get("code") == types.PARSE_ERROR
            await self._send({**held, "status": 200 if unread else held["status"]})
        await self._send(message)


async def speak(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    add = options.add_argument
    add("--paged", action="store_true", help="list_documents has a limit of 50, at most 100")
    add("--log", type=Path, metavar="FILE", help="append a JSON line per call")
    add("--http", type=int, metavar="PORT", help="speak Streamable HTTP on 127.0.0.1, not stdio")
    chosen = options.parse_args()
    server = serve(Base(), paged=chosen.paged, log=chosen.log)
    if chosen.http is None:
        asyncio.run(speak(server))
    else:
        uvicorn.run(app(server), port=chosen.http, log_level="warning")


if __name__ == "__main__":
    main()
