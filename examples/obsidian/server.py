"""A vault server as found: every list, search and note arrives whole, 5 MB for 50,000 notes.

The vault is built in memory from `--files` alone, so the same options and calls give the same
answers. Arguments that a tool does not declare are refused.
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

AREAS = ("Work", "Projekte für Übersee", "Reference", "旅行の記録", "Journal 📓")
KINDS = ("Decisions", "Minutes", "Plans", "Reviews")
TEAMS = ("platform", "billing", "search", "mobile", "support")
TOPICS = (
    "migration", "budget", "hiring", "latency", "onboarding", "security", "pricing",
    "roadmap", "backup", "metrics", "contracts", "incident", "design", "testing",
    "release", "training", "capacity", "compliance", "research", "archive",
)  # fmt: skip
TAGS = ("review", "draft", "project", "person", "idea", "plan", "meeting", "task", "log", "done")
MODIFIED = 1767225600000
LONG_NOTE = "Journal 📓/Everything.md"
# A day of the long note: one to four bytes a character, combining marks, joined emoji, CRLF.
DAY = (
    "## Day {day}\n\nPlain words on the migration of the billing service, and the cafe\u0301 after "
    "it: naïve, Straße, Ελλάδα, 東京タワー, a\u0323\u0302.\r\n\r\n"
    "\tTeam 👩\u200d👩\u200d👧\u200d👦 met 👍🏽 at 🇩🇪; \U0001d4b3 ≠ \U0001d4b4.\n"
    "- [ ] write it down, see [[Plans of billing|the plans]] and the minutes of the week before\n\n"
)
Json = dict[str, Any]
Notes = dict[str, str]  # the text of each note by its path
Answer = str | Json | list[Json]
Tool = Callable[..., Answer]
Context = ServerRequestContext[Any, Any]

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1}
START = {"type": "integer", "minimum": 0}
FORMAT = {"enum": ["markdown", "json"]}
READS = types.ToolAnnotations(read_only_hint=True)
DELETES = types.ToolAnnotations(read_only_hint=False, destructive_hint=True)
TOOLS: dict[str, tuple[types.Tool, Tool]] = {}


def vault_of(files: int) -> Notes:
    """Return a vault of so many notes, the last of them over a megabyte long."""
    notes = {}
    for n in range(files - 1):
        area, year, topic = AREAS[n % 5], 2017 + n // 5 % 10, TOPICS[(n // 1000 + n) % 20]
        folder = f"{area}/{year}/{KINDS[n // 50 % 4]} of {TEAMS[n // 200 % 5]}"
        title = f"{year}-{n % 12 + 1:02} Notes and open questions about {topic} {n:05}"
        head = f"---\ntags: [{TAGS[n // 3 % 10]}]\n---\n# {title}\n\n"
        notes[f"{folder}/{title}.md"] = f"{head}On the {topic} of {year}: settled ✅, see {area}.\n"
    return notes | {LONG_NOTE: "".join(DAY.format(day=day) for day in range(3200))}


def strict(required: str = "", **properties: Json) -> Json:
    """Return the schema of an object that may have these properties and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | {"required": required.split()} if required else schema


def tool(schema: Json, annotations: types.ToolAnnotations | None = READS) -> Callable[[Tool], Tool]:
    """Register a function as the tool of its name, described by its docstring."""

    def register(run: Tool) -> Tool:
        name, says = run.__name__, run.__doc__
        TOOLS[name] = (
            types.Tool(name=name, description=says, input_schema=schema, annotations=annotations),
            run,
        )
        return run

    return register


@tool(strict(folder=TEXT))
def list_vault_files(notes: Notes, folder: str = "") -> Answer:
    """List the files of the vault, or of one folder."""
    return {"files": [path for path in notes if path.startswith(folder)]}


@tool(strict("path", path=TEXT, format=FORMAT))
def get_vault_file(notes: Notes, path: str, format: str = "markdown") -> Answer:
    """Read a note as markdown, or as an object with its text and properties."""
    if path not in notes:
        raise LookupError(f"File not found: {path}")
    text = notes[path]
    if format == "markdown":
        return text
    tags = [text[text.index("[") + 1 : text.index("]")]] if text.startswith("---") else []
    stat, front = {"mtime": MODIFIED, "size": len(text.encode())}, {"tags": tags}
    return {"content": text, "path": path, "frontmatter": front, "tags": tags, "stat": stat}


@tool(strict(format=FORMAT))
def get_active_file(notes: Notes, format: str = "markdown") -> Answer:
    """Read the note that is open in the editor."""
    return get_vault_file(notes, LONG_NOTE, format)


@tool(strict("query", query=TEXT))
def search_vault_simple(notes: Notes, query: str) -> Answer:
    """Find the notes that have the words, each with what stands around them."""
    found = ((path, text, text.lower().find(query.lower())) for path, text in notes.items())
    return [
        {"filename": path, "score": -at / 1000, "context": text[max(0, at - 10) : at + 30]}
        for path, text, at in found
        if at >= 0
    ]


@tool(strict("tag", tag=TEXT))
def search_vault(notes: Notes, tag: str) -> Answer:
    """Find the notes that have a tag."""
    tagged = [path for path, text in notes.items() if text.startswith(f"---\ntags: [{tag}]\n")]
    return [
        {"filename": path, "result": {"tag": tag, "mtime": MODIFIED + 1000 * n}}
        for n, path in enumerate(tagged)
    ]


@tool(strict("query", query=TEXT, filter=strict(folder=TEXT, limit=COUNT)))
def search_vault_smart(notes: Notes, query: str, filter: Json | None = None) -> Answer:
    """Find the notes nearest to a question, all of them unless filter.limit says how many."""
    wanted = filter or {}
    hits = [
        {"path": path, "score": 1 / (1 + len(text) % 7), "text": text[-30:]}
        for path, text in notes.items()
        if query.lower() in text.lower() and path.startswith(wanted.get("folder", ""))
    ]
    return {"results": hits[: wanted.get("limit")]}


@tool(strict("folder", folder=TEXT, limit=COUNT), DELETES)
def bulk_delete_files(notes: Notes, folder: str, limit: int | None = None) -> Answer:
    """Delete the notes of a folder, all of them unless limit says how many."""
    matching = [path for path in notes if path.startswith(folder)]
    for path in matching[:limit]:
        del notes[path]
    return {"deleted": matching[:limit], "remaining": len(matching) - len(matching[:limit])}


@tool(strict())
def discover(notes: Notes) -> Answer:
    """Describe the vault: its folders and how many notes each has."""
    counts = Counter(path.rpartition("/")[0] for path in notes)
    folders = [{"path": path, "notes": count} for path, count in counts.items()]
    return {"notes": len(notes), "folders": folders}


@tool(strict("url", url=TEXT, maxLength=COUNT, startIndex=START))
def fetch(notes: Notes, url: str, **window: int) -> Answer:
    """Read the clipping of a web page, maxLength characters from startIndex on."""
    lines = (f"{n}. A line of the clipping, naïve and plain.\n" for n in range(900))
    page, start = f"Clipping of {url}\n\n" + "".join(lines), window.get("startIndex", 0)
    end = start + window.get("maxLength", 5000)
    more = f"\n\n<error>Content truncated. Call with startIndex of {end} to get more.</error>"
    return page[start:end] + (more if end < len(page) else "")


OPERATIONS = {"list": list_vault_files, "read": get_vault_file, "search": search_vault_simple}
OPERATION = {"enum": list(OPERATIONS)}


@tool(strict("operation", operation=OPERATION, folder=TEXT, path=TEXT, query=TEXT), None)
def vault(notes: Notes, operation: str, **arguments: Any) -> Answer:
    """Do an operation on the vault; its arguments stand beside `operation`."""
    return OPERATIONS[operation](notes, **arguments)


@tool(strict("operation", operation=OPERATION, params=strict(folder=TEXT, path=TEXT, query=TEXT)))
def vault_api(notes: Notes, operation: str, params: Json | None = None) -> Answer:
    """Do an operation on the vault; its arguments stand in `params`."""
    return OPERATIONS[operation](notes, **(params or {}))


@tool(strict("operation", operation={"enum": ["read", "append"]}, content=TEXT), None)
def active_file(notes: Notes, operation: str, content: str = "") -> Answer:
    """Read the open note, or append to it."""
    if operation == "read":
        return notes[LONG_NOTE]
    notes[LONG_NOTE] += content
    return {"path": LONG_NOTE, "appended": len(content)}


def answer(notes: Notes, name: str, arguments: Json) -> types.CallToolResult:
    """Check the arguments and run the tool; what is not text is sent as indented JSON."""
    definition, run = TOOLS[name]
    try:
        jsonschema.validate(arguments, definition.input_schema)
        found, failed = run(notes, **arguments), False
    except jsonschema.ValidationError as error:
        found, failed = f"Invalid arguments: {error.message}", True
    except (LookupError, TypeError) as error:
        found, failed = str(error), True
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=2)
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)


def serve(notes: Notes, log: Path | None) -> Server[Any]:
    """Return the server over a vault; `log` gets a JSON line per call, arguments as received."""

    async def list_tools(_: Context, page: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[definition for definition, _ in TOOLS.values()])

    async def call_tool(_: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        if log:
            with log.open("a") as lines:
                lines.write(json.dumps({"tool": call.name, "arguments": call.arguments}) + "\n")
        if call.name not in TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {call.name}")
        return answer(notes, call.name, call.arguments or {})

    return Server("obsidian", version="2.1.0", on_list_tools=list_tools, on_call_tool=call_tool)


async def speak(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    add = options.add_argument
    add("--files", type=int, default=50_000, metavar="N", help="notes in the vault (default 50000)")
    add("--log", type=Path, metavar="FILE", help="append a JSON line per call")
    add("--http", type=int, metavar="PORT", help="speak Streamable HTTP on 127.0.0.1, not stdio")
    chosen = options.parse_args()
    server = serve(vault_of(chosen.files), chosen.log)
    if chosen.http is None:
        asyncio.run(speak(server))
    else:
        uvicorn.run(server.streamable_http_app(), port=chosen.http, log_level="warning")


if __name__ == "__main__":
    main()
