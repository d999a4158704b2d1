"""A document-sync server as found: each status answer carries the whole run, 500 KB in mid-run.

The run lives in one file (`progressPath`): full_sync advances it, and the status tools send all of
it. Its content follows from the options and the folders visited since, never from the clock.
"""

import argparse
import json
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

CRASH = "chroma upsert failed: connection refused (127.0.0.1:8000)"
NEXT_CALL = {"tool": "roxtra_index_full_sync", "arguments": {"batch": 16}}
RUN_ID = "002bf45c-ceee-34ce-92ef-46550c2f147a"
STARTED = datetime(2026, 5, 21, 8, 14, 2)
# The share of the tree that has been walked in each state; `empty` has no run at all.
WALKED = {"empty": 0, "idle": 0, "paused": 0.25, "failed": 0.4, "running": 0.6, "complete": 1}
COUNTERS = {"full": 9, "partial": 5, "absent": 0}  # how many of the nine the record carries
READS = ToolAnnotations(read_only_hint=True)
Record = dict[str, Any]


def utc(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds") + "Z"


class Index:
    """The index directory: the run's progress file and what may be done with it."""

    def __init__(self, directory: Path, folders: int, counters: str) -> None:
        self.directory, self.folders, self.counters = directory, folders, COUNTERS[counters]
        self.path = directory / "full-sync-progress.json"

    def read(self) -> Record | None:
        if not self.path.exists():
            return None
        progress: Record = json.loads(self.path.read_text())
        return progress

    def write(self, progress: Record | None) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        if progress is None:
            self.path.unlink(missing_ok=True)
        else:
            self.path.write_text(json.dumps(progress))

    def progress(self, status: str, visited: int) -> Record | None:
        """Return the record of a run that has visited so many folders; None for `empty`."""
        if status == "empty":
            return None
        begun, complete = status != "idle", status == "complete"
        folder_ids = [str(1000 + n) for n in range(self.folders)]
        discovered = [str(10000 + n) for n in range(visited * 43 // 5)]
        handled = discovered if complete else discovered[: len(discovered) // 3]
        failed = [file for n, file in enumerate(handled) if n % 1000 == 999]
        unsupported = [file for n, file in enumerate(handled) if n % 85 == 84]
        left_out = {*failed, *unsupported}
        processed = [file for file in handled if file not in left_out]
        queue = folder_ids[visited:] if begun else ["42"]
        updated = STARTED + timedelta(milliseconds=91 * visited)
        # Documents linked twice are counted twice: a counter is not the length of its array.
        counts = {
            "foldersVisited": visited,
            "foldersPending": len(queue),
            "documentsDiscovered": len(discovered) + visited // 400,
            "documentsIndexed": len(handled),
            "contentSynced": len(processed),
            "contentFailed": len(failed),
            "contentUnsupported": len(unsupported),
            "chromaUpsertedMetadataRecords": len(handled),
            "chromaUpsertedChunks": len(processed) * 7,
        }
        record: Record = {
            "status": status,
            "runId": RUN_ID if begun else None,
            "startedAt": utc(STARTED) if begun else None,
            "updatedAt": utc(updated) if begun else None,
            "completedAt": utc(updated) if complete else None,
            "rootFolderId": "42",
            "lastError": CRASH if status == "failed" else None,
            "counters": dict(list(counts.items())[: self.counters]),
            "folderQueue": queue,
            "visitedFolderIds": folder_ids[:visited],
            "discoveredFileIds": discovered,
            "processedContentFileIds": processed,
            "failedFileIds": failed,
            "unsupportedFileIds": unsupported,
        }
        if not self.counters:
            del record["counters"]
        return record

    def begin(self, status: str) -> None:
        """Have a run in this state, with the share of the tree walked that belongs to it."""
        self.write(self.progress(status, int(self.folders * WALKED[status])))

    def advance(self, batch: int) -> None:
        """Visit the next folders of the run, which begins, resumes or completes by it."""
        seen = self.read()
        visited = min(self.folders, (len(seen["visitedFolderIds"]) if seen else 0) + batch)
        self.write(self.progress("complete" if visited == self.folders else "running", visited))

    def answer(self, **more: Any) -> str:
        """Return what the status tools send: the progress file whole, and its peers."""
        seen = self.read()
        stored = seen["processedContentFileIds"] + seen["unsupportedFileIds"] if seen else []
        return compact(
            progress=seen,
            documentCount=len(stored),
            indexDir=str(self.directory),
            progressPath=str(self.path),
            nextRecommendedCall=None if seen and seen["status"] == "complete" else NEXT_CALL,
            **more,
        )


def compact(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def serve(index: Index, log: Path | None) -> MCPServer:
    """Return the server over an index; `log` gets a JSON line per call, arguments as received."""

    async def note_call(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if log and ctx.method == "tools/call" and ctx.params:
            call = compact(tool=ctx.params.get("name"), arguments=ctx.params.get("arguments"))
            with log.open("a") as lines:
                lines.write(call + "\n")
        return await call_next(ctx)

    server = MCPServer("roxtra-index", version="1.4.0", middleware=[note_call], log_level="WARNING")

    # Tools are coroutines so that they run one after the other: the progress file has one writer.
    @server.tool(structured_output=False)
    async def roxtra_index_full_sync(batch: int = 16) -> str:
        """Start or resume the full sync: visit the next `batch` folders, then report progress."""
        index.advance(batch)
        return index.answer()

    @server.tool(structured_output=False, annotations=READS)
    async def roxtra_index_full_sync_status() -> str:
        """Report the progress of the full sync."""
        return index.answer()

    @server.tool(structured_output=False)
    async def roxtra_index_manage(action: str) -> str:
        """Manage the index. `action` is one of status, pause, resume."""
        if action == "status":
            return index.answer()
        seen, targets = index.read(), {"pause": "paused", "resume": "running"}
        if action not in targets:
            raise ToolError(f"unknown action {action!r}; expected status, pause or resume")
        if seen is None or seen["status"] not in ("running", "paused"):
            return compact(action=action, accepted=False, progress=None)
        index.write(seen | {"status": targets[action]})
        return compact(action=action, accepted=True, progress={"status": targets[action]})

    @server.tool(structured_output=False, annotations=READS)
    async def roxtra_index_debug_status() -> str:
        """Report the progress of the full sync and the state of the store, for debugging."""
        return index.answer(store={"collection": "roxtra-documents", "schemaVersion": 3})

    @server.tool(structured_output=False, annotations=READS)
    async def roxtra_search(query: str) -> str:
        """Search the indexed documents."""
        hits = [{"fileId": f"1000{n}", "title": f"{query} {n}", "score": 1 - n / 4} for n in (1, 2)]
        return json.dumps({"query": query, "hits": hits}, ensure_ascii=False, indent=2)

    @server.tool(structured_output=False, annotations=READS)
    async def roxtra_document_text(file_id: str) -> str:
        """Return the text of one indexed document."""
        return f"Document {file_id}\n\nWork instruction. Valid until withdrawn.\n"

    return server


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    add, scratch = options.add_argument, Path(tempfile.gettempdir(), "roxtra-index")
    add("--state", choices=WALKED, default="running", help="what the index holds at the start")
    add("--folders", type=int, default=8016, metavar="N", help="size of the tree (default 8016)")
    add("--counters", choices=COUNTERS, default="full", help="all nine counters, five, or none")
    add("--index-dir", type=Path, default=scratch, metavar="DIR", help="where the progress file is")
    add("--log", type=Path, metavar="FILE", help="append a JSON line per call")
    add("--http", type=int, metavar="PORT", help="speak Streamable HTTP on 127.0.0.1, not stdio")
    chosen = options.parse_args()
    index = Index(chosen.index_dir, chosen.folders, chosen.counters)
    index.begin(chosen.state)
    server = serve(index, chosen.log)
    if chosen.http is None:
        server.run()
    else:
        server.run("streamable-http", port=chosen.http)


if __name__ == "__main__":
    main()
