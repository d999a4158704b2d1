"""jmunch-mcp: a long result becomes a handle, and tools of its own ask for parts of it.

Rows are asked by SQL, a document by paths, a text by regular expressions and ranges of lines.
"""

import json
import re
import shutil
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from tests.answers.arm import Arm, Call, Look, Reply, Result, Steps, visible_text
from tests.answers.evidence import documents
from tests.answers.question import Question
from tests.answers.rivals.install import home, program

_MANY = 500  # rows; as many as it returns of a document
_SHORT = 100  # characters of a cell that is read at a glance
_VARYING = (
    (re.compile(r'"timing_ms": [\d.e-]+'), '"timing_ms": 0.99'),
    (re.compile(r"\bh_[\w-]{12}(?![\w-])"), "h_000000000000"),
)

# For questions on rows and documents; the others are asked by the question's pattern.
QUERIES: dict[str, tuple[tuple[str, str], ...]] = {
    "list_issues/crash": (("slice", "title LIKE '%Crash on start%'"),),
    "list_issues/security": (("slice", """labels LIKE '%"name": "security"%'"""),),
    "list_issues/workaround": (("slice", "number = 4129"),),
    "list_issues/comments": (("slice", "comments = (SELECT MAX(comments) FROM t)"),),
    "list_orders/one": (("slice", "number = 'SO-001734'"),),
    "list_orders/refunded": (("count", "status"),),
    "list_orders/largest": (("slice", "total = (SELECT MAX(total) FROM t)"),),
    "lint/most": (("count", "rule"),),
    "lint/line": (("slice", "file = 'src/payload/table.py' AND line = 175"),),
    "lint/errors": (("slice", "severity = 'error'"),),
    "get_metrics/peak": (("slice", "$.series[0].points"),),
    "get_metrics/minute": (("parents", "2026-11-01T13:37:00Z [0]"),),
    "get_graph/dependencies": (("parents", "n1158 .source"),),
    "get_graph/owner": (("parents", "ledger-writer .label"),),
    "list_packages/version": (("slice", "$.packages['stream-response-1418']"),),
    "list_packages/gpl": (("slice", "$.packages"),),
    "list_packages/largest": (("slice", "$.packages"),),
    "directory_tree/place": (("slice", "children LIKE '%zone_transfer%'"),),
    "directory_tree/modules": (("slice", "name = 'module09'"),),
    "get_pods/failing": (("grep", "CrashLoopBackOff"), ("from", "-60")),
    "get_pods/node": (("grep", "story-payload-b9069abce-28135"), ("from", "20")),
    "get_attachments/contract": (("slice", "name = 'contract-signed.pdf'"),),
    "get_attachments/retention": (("search", "retention"), ("describe", "")),
    "get_sync_status/failed": (("slice", "$.progress.counters"), ("slice", "$.progress.lastError")),
    "get_sync_status/found": (("search", "discoveredFileIds"),),
    "search_pages/keys": (("slice", "title LIKE '%signing keys%'"),),
    "search_pages/quorum": (("slice", "content LIKE '%quorum%'"),),
    "build_log/cause": (("tail", "20"),),
    "git_diff/removed": (("grep", "legacy_merge|^diff --git"),),
    "migrate/stopped": (("tail", "5"),),
}


class Jmunch(Arm):
    name = "jmunch-mcp 0.2.3"
    sets = ("first",)

    def command(self, server: Sequence[str]) -> list[str]:
        own = program("jmunch-mcp", "jmunch-mcp")
        folder = home("jmunch-mcp")
        # It adds up what it saved over all runs, and shows the sum.
        shutil.rmtree(folder / ".jmunch", ignore_errors=True)
        configuration = folder / "config.json"
        upstream = {"command": server[0], "args": list(server[1:])}
        configuration.write_text(json.dumps({"upstream": upstream}))
        return ["env", f"HOME={folder}", own, "--config", str(configuration)]

    def show(self, result: Result) -> str:
        text = visible_text(result)
        for pattern, same in _VARYING:
            text = pattern.sub(same, text)
        return text

    def steps(self, question: Question) -> Steps:
        reply = yield Call(question.tool)
        handle = _result(visible_text(reply.result)).get("handle")
        if handle is None:
            return
        for verb, argument in QUERIES.get(question.name) or (("grep", question.pattern),):
            reply = yield from _query(handle, verb, argument, reply)
        # What stands near a hit.
        for before, after in ((5, 5), (20, 40)):
            if line := _first_line(reply):
                yield _lines(handle, line - before, line + after)

    def readings(self, text: str) -> Iterator[str]:
        """Yield the answer without its envelope, the lines of a text, and the number of rows."""
        for document in documents(text):
            if not isinstance(document, dict) or "_meta" not in document:
                continue
            value = document.get("result")
            yield json.dumps(value)
            if isinstance(value, list):
                yield str(len(value))
                if len(value) == 1:
                    cells = [str(cell) for cell in value[0].values()]
                    yield " ".join(cell for cell in cells if len(cell) <= _SHORT)
            elif isinstance(value, dict) and "lines" in value:
                yield "\n".join(line["text"] for line in value["lines"])
                yield str(value.get("count"))


def _query(
    handle: str, verb: str, argument: str, reply: Reply
) -> Generator[Call | Look, Reply, Reply]:
    """Make a query; `parents` opens each object with a hit in the member that is named last."""
    ask: dict[str, Any] = {"handle": handle}
    match verb:
        case "slice":
            reply = yield Call("jmunch_slice", ask | {"selector": argument, "max_rows": _MANY})
        case "grep":
            selector = f"re:{argument}"
            reply = yield Call("jmunch_slice", ask | {"selector": selector, "max_rows": _MANY})
        case "from":
            line = _first_line(reply)
            reply = yield _lines(handle, *sorted((line, line + int(argument))))
        case "count":
            reply = yield Call("jmunch_aggregate", ask | {"op": "count", "group_by": argument})
        case "tail":
            reply = yield Call("jmunch_peek", ask | {"n": int(argument), "where": "tail"})
        case "search":
            reply = yield Call("jmunch_search", ask | {"query": argument, "max_results": 100})
        case "parents":
            query, member = argument.split()
            reply = yield from _query(handle, "search", query, reply)
            for hit in _result(reply.text).get("results", ()):
                if hit["path"].endswith(member):
                    yield Call("jmunch_slice", ask | {"selector": hit["path"][: -len(member)]})
        case "describe":
            reply = yield Call("jmunch_describe", ask)
    return reply


def _lines(handle: str, first: int, last: int) -> Call:
    selector = f"{max(first, 1)}-{last}"
    return Call("jmunch_slice", {"handle": handle, "selector": selector, "max_rows": _MANY})


def _result(text: str) -> dict[str, Any]:
    """Return the `result` of an answer; {} if it is no object."""
    try:
        value = json.loads(text).get("result")
    except (ValueError, AttributeError):
        return {}
    return value if isinstance(value, dict) else {}


def _first_line(reply: Reply) -> int:
    lines = _result(reply.text).get("lines") or [{"line": 0}]
    return int(lines[0]["line"])
