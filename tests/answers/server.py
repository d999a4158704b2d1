"""A server over stdio, without an SDK: each tool returns one result, and only reads.

python tests/answers/server.py
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.answers import structured, texts
from tests.plain_server import serve

Result = dict[str, Any]


def text(*blocks: str) -> Result:
    return {"content": [{"type": "text", "text": block} for block in blocks]}


def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def both(value: dict[str, Any]) -> Result:
    """Return a result whose text is the JSON of its structuredContent."""
    return text(compact(value)) | {"structuredContent": value}


def hits() -> Result:
    matches = structured.hits()
    return text(f"Found {len(matches)} hits", *map(pretty, matches))


def fetch() -> Result:
    body = json.dumps({"items": structured.orders()[400:800], "next": None})
    return text(f"The content is no page; here it is as it is:\nContents of /orders:\n{body}")


RESULTS: dict[str, tuple[str, Callable[[], Result]]] = {
    "list_issues": (
        "List the issues of the repository.",
        lambda: text(pretty(structured.issues())),
    ),
    "list_orders": (
        "List all orders.",
        lambda: both({"total": 2000, "items": structured.orders()}),
    ),
    "lint": ("Check the project.", lambda: text(compact(structured.lint()))),
    "get_metrics": ("Read the metrics of a day.", lambda: text(compact(structured.metrics()))),
    "get_graph": ("Read the graph of services.", lambda: text(compact(structured.graph()))),
    "list_packages": ("List locked packages.", lambda: text(pretty(structured.packages()))),
    "directory_tree": ("Show the tree of files.", lambda: text(pretty(structured.tree()))),
    "read_query": ("Run the query on orders.", lambda: text(structured.query())),
    "get_pods": ("Get the pods as YAML.", lambda: text(structured.pods_yaml())),
    "export_customers": ("Export customers as CSV.", lambda: text(structured.customers_csv())),
    "read_events": (
        "Read the events, one JSON object a line.",
        lambda: text("\n".join(map(compact, structured.events()))),
    ),
    "search_logs": ("Search the logs.", hits),
    "fetch": ("Fetch the orders from the shop.", fetch),
    "get_attachments": (
        "Get a message's attachments.",
        lambda: text(compact(structured.attachments())),
    ),
    "get_sync_status": ("Show the state of the sync.", lambda: text(compact(structured.sync()))),
    "search_pages": ("Search the wiki.", lambda: both({"result": structured.pages()})),
    "build_log": ("Read the log of the build.", lambda: text(texts.build_log())),
    "deploy_log": ("Read the log of the deployment.", lambda: text(texts.deploy_log())),
    "read_handbook": ("Read the handbook.", lambda: text(texts.handbook())),
    "get_page": ("Fetch the page of prices.", lambda: text(texts.page())),
    "read_code": ("Read client.py.", lambda: text(texts.code())),
    "git_diff": ("Show the unstaged changes.", lambda: text(texts.diff())),
    "git_log": ("Show the last 300 commits.", lambda: text(texts.history())),
    "migrate": ("Show the last migration.", lambda: text(texts.traceback()) | {"isError": True}),
    "take_snapshot": ("Take a snapshot of the page.", lambda: text(texts.snapshot())),
    "read_file": (
        "Read app.log.",
        lambda: text(texts.app_log()) | {"structuredContent": {"content": texts.app_log()}},
    ),
}

_ROWS = {"type": "array", "items": {"type": "object"}}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "list_orders": {"total": {"type": "integer"}, "items": _ROWS},
    "search_pages": {"result": _ROWS},
    "read_file": {"content": {"type": "string"}},
}


def tools() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "description": description,
            "inputSchema": {"type": "object", "properties": {}},
            "annotations": {"readOnlyHint": True},
        }
        | (
            {
                "outputSchema": {
                    "type": "object",
                    "properties": _SCHEMAS[name],
                    "required": list(_SCHEMAS[name]),
                }
            }
            if name in _SCHEMAS
            else {}
        )
        for name, (description, _) in RESULTS.items()
    ]


def call(name: str, _: dict[str, Any]) -> Result:
    if name not in RESULTS:
        raise LookupError("there is no tools/call")
    return RESULTS[name][1]()


if __name__ == "__main__":
    serve("answers", "1", tools(), call)
