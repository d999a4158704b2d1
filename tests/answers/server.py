"""A server over stdio, without an SDK: each tool returns one result, and only reads.

python tests/answers/server.py [second|third|fourth|fifth|unseen]
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.answers import sets, structured, texts
from tests.answers.sets import compact
from tests.plain_server import serve

Result = dict[str, Any]


def text(*blocks: str) -> Result:
    return {"content": [{"type": "text", "text": block} for block in blocks]}


def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def both(value: dict[str, Any]) -> Result:
    """Return a result whose text is the JSON of its structuredContent."""
    return text(compact(value)) | {"structuredContent": value}


def hits() -> Result:
    matches = structured.hits()
    return text(f"Found {len(matches)} hits", *map(pretty, matches))


def fetch() -> Result:
    body = json.dumps({"items": structured.orders()[400:800], "next": None})
    return text(f"The content is no page; here it is as it is:\nContents of /orders:\n{body}")


RESULTS: dict[str, Callable[[], Result]] = {
    "list_issues": lambda: text(pretty(structured.issues())),
    "list_orders": lambda: both({"total": 2000, "items": structured.orders()}),
    "lint": lambda: text(compact(structured.lint())),
    "get_metrics": lambda: text(compact(structured.metrics())),
    "get_graph": lambda: text(compact(structured.graph())),
    "list_packages": lambda: text(pretty(structured.packages())),
    "directory_tree": lambda: text(pretty(structured.tree())),
    "read_query": lambda: text(structured.query()),
    "get_pods": lambda: text(structured.pods_yaml()),
    "export_customers": lambda: text(structured.customers_csv()),
    "read_events": lambda: text("\n".join(map(compact, structured.events()))),
    "search_logs": hits,
    "fetch": fetch,
    "get_attachments": lambda: text(compact(structured.attachments())),
    "get_sync_status": lambda: text(compact(structured.sync())),
    "search_pages": lambda: both({"result": structured.pages()}),
    "build_log": lambda: text(texts.build_log()),
    "deploy_log": lambda: text(texts.deploy_log()),
    "read_handbook": lambda: text(texts.handbook()),
    "get_page": lambda: text(texts.page()),
    "read_code": lambda: text(texts.code()),
    "git_diff": lambda: text(texts.diff()),
    "git_log": lambda: text(texts.history()),
    "migrate": lambda: text(texts.traceback()) | {"isError": True},
    "take_snapshot": lambda: text(texts.snapshot()),
    "read_file": lambda: (
        text(texts.app_log()) | {"structuredContent": {"content": texts.app_log()}}
    ),
}

_ROWS = {"type": "array", "items": {"type": "object"}}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "list_orders": {"total": {"type": "integer"}, "items": _ROWS},
    "search_pages": {"result": _ROWS},
    "read_file": {"content": {"type": "string"}},
}


def tool(name: str) -> dict[str, Any]:
    definition = {
        "name": name,
        "description": f"{name.replace('_', ' ').capitalize()}.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    }
    if properties := _SCHEMAS.get(name):
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        definition["outputSchema"] = schema
    return definition


def run(kind: str) -> None:
    """Serve the results of a set, "first" or one that a file describes."""
    results = RESULTS
    if kind != "first":
        results = {name: partial(sets.whole, kind, name) for name in sets.described(kind)}

    def call(name: str, _: dict[str, Any]) -> Result:
        if name not in results:
            raise LookupError("there is no tools/call")
        return results[name]()

    serve("answers", "1", [tool(name) for name in results], call)


if __name__ == "__main__":
    run(sys.argv[1] if sys.argv[1:] else "first")
