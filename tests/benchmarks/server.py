"""A server that answers from memory as fast as it can, so that what stands between can be seen.

No SDK, and nothing imported that a start would have to wait for. Each answer is made once and kept
as bytes; a call costs the server one look at its line and one write.

    python server.py [--core=N]

`--core` runs it on one core only.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

CHUNK = 1 << 16
HEAD = b'{"jsonrpc":"2.0","id":'
FOLDERS = 7330  # make `large` 571 KB and `large_s` 1.04 MB
ROWS = 40_000  # make `huge` 10.8 MB


def small() -> dict[str, Any]:
    text = (
        "Work instruction 4711, revision 3, valid from 2026-05-21 until withdrawn; owner: QM office"
        " in house 3; no newer revision is planned"
    )
    return {"content": [{"type": "text", "text": text}], "isError": False}


def status() -> dict[str, Any]:
    """Report a sync in mid-run, with six arrays that grow: the answer of examples/fullsync."""
    folders = [str(1000 + n) for n in range(FOLDERS)]
    visited = FOLDERS * 3 // 5
    discovered = [str(10000 + n) for n in range(visited * 43 // 5)]
    handled = discovered[: len(discovered) // 3]
    return {
        "progress": {
            "status": "running",
            "runId": "002bf45c-ceee-34ce-92ef-46550c2f147a",
            "startedAt": "2026-05-21T08:14:02Z",
            "updatedAt": "2026-05-21T08:21:19Z",
            "completedAt": None,
            "rootFolderId": "42",
            "lastError": None,
            "counters": {
                "foldersVisited": visited,
                "foldersPending": FOLDERS - visited,
                "documentsDiscovered": len(discovered),
                "documentsIndexed": len(handled),
                "contentSynced": len(handled) - 175,
                "contentFailed": 13,
                "contentUnsupported": 162,
                "chromaUpsertedMetadataRecords": len(handled),
                "chromaUpsertedChunks": 7 * (len(handled) - 175),
            },
            "folderQueue": folders[visited:],
            "visitedFolderIds": folders[:visited],
            "discoveredFileIds": discovered,
            "processedContentFileIds": handled[175:],
            "failedFileIds": handled[:13],
            "unsupportedFileIds": handled[13:175],
        },
        "documentCount": len(handled) - 13,
        "indexDir": "/var/lib/roxtra",
        "progressPath": "/var/lib/roxtra/full-sync-progress.json",
        "nextRecommendedCall": {"tool": "roxtra_index_full_sync", "arguments": {"batch": 16}},
    }


def large() -> dict[str, Any]:
    return {"content": [{"type": "text", "text": compact(status())}], "isError": False}


def large_s() -> dict[str, Any]:
    return {**large(), "structuredContent": status()}


def huge() -> dict[str, Any]:
    return {"content": [{"type": "text", "text": compact(listed(ROWS))}], "isError": False}


def listed(count: int) -> dict[str, Any]:
    rows = [
        {
            "id": 100_000 + n,
            "title": f"Work instruction {n}",
            "state": "open" if n % 3 else "withdrawn",
            "owner": {"login": f"user-{n % 97}", "site": "north"},
            "labels": ["quality", f"line-{n % 11}"],
            "revision": n % 7,
            "updated_at": "2026-05-21T08:14:02Z",
            "url": f"https://documents.example.org/id/{100_000 + n}",
        }
        for n in range(count)
    ]
    return {"rows": rows, "source": "documents"}


# `another` is as small as `small`, so that rules for others can stand beside it.
TOOLS: dict[str, Callable[[], dict[str, Any]]] = {
    **{"small": small, "another": small, "large": large, "large_s": large_s, "huge": huge}
}


def tools() -> dict[str, Any]:
    own = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    return {"tools": [{"name": name, **own} for name in TOOLS]}


HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "benchmark", "version": "1.0.0"},
}


def compact(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Answers:
    """The answer to each line, from memory: what stands before the id, the id, what follows it."""

    def __init__(self) -> None:
        self.by_request: dict[bytes, bytes] = {}

    def to(self, line: bytes) -> tuple[bytes, bytes, bytes] | None:
        """Return the three parts of the answer to a request; None for a notification."""
        # The spelling of the raw client, whose ids are numbers: nothing needs decoding.
        id, _, request = line[22:].partition(b",")
        plain = line.startswith(HEAD)
        if plain and (rest := self.by_request.get(request)) is not None:
            return HEAD, id, rest
        import json

        message = json.loads(line)
        if "id" not in message:
            return None
        id, method = json.dumps(message["id"]).encode(), message["method"]
        name = (message.get("params") or {}).get("name", "")
        key = request if plain else f"{method} {name}".encode()
        if (rest := self.by_request.get(key)) is None:
            member, body = self.body(method, name)
            rest = self.by_request[key] = f',"{member}":{compact(body)}}}\n'.encode()
        return HEAD, id, rest

    def body(self, method: str, name: str) -> tuple[str, dict[str, Any]]:
        if method == "tools/call" and name in TOOLS:
            return "result", TOOLS[name]()
        if method == "tools/list":
            return "result", tools()
        if method == "initialize":
            return "result", HANDSHAKE
        return "error", {"code": -32601, "message": f"not found: {method} {name}"}


def write(parts: tuple[bytes, bytes, bytes]) -> None:
    size = sum(map(len, parts))
    if size <= CHUNK:
        os.write(1, b"".join(parts))
        return
    # A long answer is not joined: that alone would cost more than the writing.
    for part in parts:
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(1, rest) :]


def option(name: str) -> int | None:
    start = f"--{name}="
    return next((int(word[len(start) :]) for word in sys.argv if word.startswith(start)), None)


def on_core() -> None:
    core = option("core")
    if core is not None:
        os.sched_setaffinity(0, {core})


def main() -> None:
    answers = Answers()
    on_core()
    chunks: list[bytes] = []
    while chunk := os.read(0, CHUNK):
        chunks.append(chunk)
        if b"\n" not in chunk:
            continue
        *lines, rest = (chunk if len(chunks) == 1 else b"".join(chunks)).split(b"\n")
        chunks = [rest] if rest else []
        for line in lines:
            if (parts := answers.to(line)) is not None:
                write(parts)


if __name__ == "__main__":
    main()
