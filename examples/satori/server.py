"""A code-search server as found: texts to guess from, and hints that suggest the same to everyone.

What is known of codebases is in memory: nothing runs in the background, an index that was begun is
ready when its status was asked for once. Searches read the files as they lie on disk.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations

READS = ToolAnnotations(read_only_hint=True)
TOP, NOISE_THRESHOLD, DEBOUNCE_MS = 5, 0.6, 5000
SUGGESTED = [
    "**/*.test.*", "**/*.spec.*", "**/__tests__/**", "**/__fixtures__/**", "**/fixtures/**",
    "docs/**", "coverage/**",
]  # fmt: skip
NEXT_STEP = "Add the suggested patterns to .satoriignore, then run manage_index reindex."
KINDS: dict[str, Callable[[str], bool]] = {
    "generated": lambda path: path.startswith(("coverage/", "dist/")),
    "fixtures": lambda path: "fixtures/" in path or "__fixtures__/" in path,
    "tests": lambda path: "__tests__/" in path or ".test." in path or ".spec." in path,
    "docs": lambda path: path.startswith("docs/") or path.endswith(".md"),
}
Json = dict[str, Any]


class Codebase(msgspec.Struct):
    """What the server knows of one: the state of its index, and what a reindex would be for."""

    state: str = "not_indexed"
    preflight: str = "reindex_required"


class Said(msgspec.Struct, frozen=True):
    """What an action has to say: the `text`, and what it stands for."""

    text: str
    status: str = "ok"
    reason: str | None = None


class Index:
    """The codebases by path, and what may be done with them."""

    def __init__(self, known: dict[str, Codebase]) -> None:
        self._known = known

    def of(self, path: str) -> Codebase:
        return self._known.setdefault(path, Codebase())

    def root(self, path: str) -> str | None:
        """Return the codebase that holds `path` and can be searched."""
        held = (str(each) for each in (Path(path), *Path(path).parents))
        return next((each for each in held if self.of(each).state == "indexed"), None)

    def create(self, path: str, force: bool) -> Said:
        known = self.of(path)
        if known.state == "indexing":
            return busy(path)
        if known.state == "indexed" and not force:
            text = f"Codebase '{path}' is already indexed.\n\nUse sync to take over changes."
            return Said(text, "blocked")
        known.state = "indexing"
        return Said(f"Started background indexing of '{path}'.\n\nAsk for its status.")

    def reindex(self, path: str, force: bool) -> Said:
        known = self.of(path)
        if known.state == "not_indexed":
            return missing(path)
        if known.state == "indexing" and not force:
            return busy(path)
        known.state = "indexing"
        return Said(f"Started background reindexing of '{path}'.\n\nAsk for its status.")

    def sync(self, path: str, force: bool) -> Said:
        return self._ready(path) or Said(f"Synchronized '{path}': 2 added, 0 removed, 1 modified.")

    def status(self, path: str, force: bool) -> Said:
        said = self._ready(path)
        if self.of(path).state == "indexing":
            self.of(path).state = "indexed"
        return said or Said(f"Codebase '{path}' is indexed: 214 files, 1903 chunks.")

    def clear(self, path: str, force: bool) -> Said:
        known = self.of(path)
        if known.state == "not_indexed":
            return missing(path)
        known.state = "not_indexed"
        return Said(f"Cleared the index of '{path}'.")

    def _ready(self, path: str) -> Said | None:
        """Return what stands in the way of an index that is to be used, None if nothing does."""
        state = self.of(path).state
        if state == "waiting":
            return Said(f"Embeddings for '{path}' are on hold until the quota is renewed.", "ok")
        if state == "requires_reindex":
            text = f"Codebase '{path}' requires a reindex.\n\nIts fingerprint is an older one."
            return Said(text, "requires_reindex", "requires_reindex")
        return {"not_indexed": missing, "indexing": busy}.get(state, lambda path: None)(path)


def missing(path: str) -> Said:
    return Said(f"Codebase '{path}' is not indexed.", "not_indexed", "not_indexed")


def busy(path: str) -> Said:
    return Said(f"Codebase '{path}' is being indexed: 40% done.", "not_ready", "indexing")


def kind(path: str) -> str:
    return next((name for name, holds in KINDS.items() if holds(path)), "runtime")


def files(root: str) -> Iterator[str]:
    """Yield the files of a codebase by their paths in it, in order."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            yield Path(folder, name).relative_to(root).as_posix()


def hits(root: str, query: str, scope: str) -> Iterator[Json]:
    """Yield each line that has the query, the files with most of them first."""
    found: list[list[Json]] = []
    for file in files(root):
        if scope == "runtime" and kind(file) != "runtime":
            continue
        lines = Path(root, file).read_text(errors="replace").splitlines()
        found.append(
            [
                {"file": file, "line": number, "content": line}
                for number, line in enumerate(lines, 1)
                if query.lower() in line.lower()
            ]
        )
    for each in sorted(found, key=lambda each: -len(each)):
        yield from each


def grouped(found: list[Json]) -> list[Json]:
    """Return a group for each file, with its first line."""
    groups: dict[str, Json] = {}
    for hit in found:
        group = groups.setdefault(hit["file"], {"file": hit["file"], "hits": 0, "best": hit})
        group["hits"] += 1
    return list(groups.values())


def noise(paths: list[str]) -> Json | None:
    """Return the hint on noise, where most of the first results are no runtime code."""
    top = [kind(path) for path in paths[:TOP]]
    if not top or 1 - top.count("runtime") / len(top) < NOISE_THRESHOLD:
        return None
    return {
        "reason": "top_results_noise_dominant",
        "topK": len(top),
        "ratios": {name: round(top.count(name) / len(top), 2) for name in [*KINDS, "runtime"]},
        "recommendedScope": "runtime",
        "suggestedIgnorePatterns": SUGGESTED,
        "debounceMs": DEBOUNCE_MS,
        "nextStep": NEXT_STEP,
    }


def compact(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def failed(said: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=said)], is_error=True)


def serve(index: Index, envelope: bool, log: Path | None) -> MCPServer:
    """Return the server over an index; `log` gets a JSON line per call, arguments as received."""

    async def note_call(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if log and ctx.method == "tools/call" and ctx.params:
            call = compact(tool=ctx.params.get("name"), arguments=ctx.params.get("arguments"))
            with log.open("a") as lines:
                lines.write(call + "\n")
        return await call_next(ctx)

    server = MCPServer("satori", version="4.1.0", middleware=[note_call], log_level="WARNING")

    @server.tool(structured_output=False)
    async def manage_index(action: str, path: str, force: bool = False) -> Any:
        """Manage the index of a codebase. `action` is create, reindex, sync, status or clear.

        `force` creates an index that is there already, and restarts one that is being made.
        """
        actions = {name: getattr(index, name) for name in ACTIONS}
        if action not in actions:
            return failed(f"Error: unknown action '{action}'; expected {', '.join(ACTIONS)}.")
        if not os.path.isabs(path):
            return failed(f"Error: '{path}' is not an absolute path.")
        said: Said = actions[action](path, force)
        if not envelope:
            return said.text
        return compact(
            tool="manage_index",
            version=1,
            action=action,
            path=path,
            status=said.status,
            reason=said.reason,
            warnings=[],
            hints={},
            preflight=None,
            message=said.text.partition("\n")[0],
            humanText=said.text,
        )

    @server.tool(structured_output=False, annotations=READS)
    async def check_reindex(path: str) -> Any:
        """Say what a reindex of a codebase would be for, without doing anything."""
        outcome = index.of(path).preflight
        if outcome == "error":
            return failed(f"Error: the ignore policy of '{path}' cannot be read.")
        return compact(path=path, outcome=outcome)

    @server.tool(structured_output=False, annotations=READS)
    async def search_codebase(
        path: str, query: str, mode: str = "grouped", scope: str = "mixed", limit: int = 10
    ) -> str:
        """Search an indexed codebase. `mode` is raw or grouped, `scope` mixed or runtime."""
        root = index.root(path)
        if root is None:
            return compact(status="not_indexed", path=path, results=[])
        found = list(hits(root, query, scope))
        results = (found if mode == "raw" else grouped(found))[:limit]
        hint = noise([each["file"] for each in results])
        hints = {"version": 1} | ({"noiseMitigation": hint} if hint else {})
        return compact(
            status="ok",
            path=path,
            codebaseRoot=root,
            query=query,
            mode=mode,
            results=results,
            hints=hints,
        )

    return server


ACTIONS = ("create", "reindex", "sync", "status", "clear")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    add = options.add_argument
    add("--codebases", type=Path, metavar="FILE", help='{path: {"state": ..., "preflight": ...}}')
    add("--envelope", action="store_true", help="let manage_index answer with an envelope")
    add("--log", type=Path, metavar="FILE", help="append a JSON line per call")
    add("--http", type=int, metavar="PORT", help="speak Streamable HTTP on 127.0.0.1, not stdio")
    chosen = options.parse_args()
    raw = chosen.codebases.read_bytes() if chosen.codebases else b"{}"
    index = Index(msgspec.json.decode(raw, type=dict[str, Codebase]))
    server = serve(index, chosen.envelope, chosen.log)
    if chosen.http is None:
        server.run()
    else:
        server.run("streamable-http", port=chosen.http)


if __name__ == "__main__":
    main()
