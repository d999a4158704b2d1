"""ctxtual: a long result is stored, and tools of its own search, read, filter and group it."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.answers.arm import Arm, Call, Result, Steps, visible_text
from tests.answers.question import Question
from tests.answers.rivals.install import home, program

_ID = re.compile(r"(?<=_)[0-9a-f]{12}\b")
_HITS = 3  # of a search, those that are opened

Step = dict[str, Any]

# What is not made from the question's own member and value.
QUERIES: dict[str, list[Step]] = {
    "list_issues/security": [
        {"flatten": "labels"},
        {"filter": {"labels.name": "security"}},
        {"count": True},
    ],
    "list_issues/comments": [
        {"sort": {"field": "comments", "order": "desc"}},
        {"limit": 1},
        {"select": ["number", "comments"]},
    ],
    "list_orders/one": [
        {"filter": {"number": "SO-001734"}},
        {"select": ["number", "customer", "total"]},
    ],
    "list_orders/refunded": [{"filter": {"status": "refunded"}}, {"count": True}],
    "lint/line": [{"filter": {"file": "src/payload/table.py", "line": 175}}],
    "lint/errors": [{"filter": {"severity": "error"}}, {"select": ["file", "line", "severity"]}],
    "get_metrics/peak": [
        {"filter": {"metric": "cpu"}},
        {"flatten": "points"},
        {"sort": {"field": "points.1", "order": "desc"}},
        {"limit": 1},
    ],
    "get_metrics/minute": [
        {"filter": {"metric": "memory"}},
        {"flatten": "points"},
        {"filter": {"points.0": "2026-11-01T13:37:00Z"}},
    ],
    "list_packages/version": [{"filter": {"key": "stream-response-1418"}}],
    "list_packages/gpl": [{"filter": {"license": "GPL-3.0"}}, {"count": True}],
    "directory_tree/modules": [{"filter": {"name": "module09"}}],
    "read_query/total": [{"filter": {"number": "SO-000217"}}, {"select": ["number", "total"]}],
    "read_query/paid": [{"filter": {"status": "paid"}}, {"count": True}],
    "read_events/payment": [{"filter": {"type": "payment.failed"}}],
    "read_events/denied": [{"filter": {"type": "login.denied"}}, {"count": True}],
    "get_trace/cause": [{"flatten": "spans"}, {"search": {"query": "ERROR"}}, {"limit": 5}],
    "get_trace/slowest": [
        {"flatten": "spans"},
        {"sort": {"field": "spans.duration", "order": "desc"}},
        {"limit": 1},
    ],
    "query_timeseries/greenhouse": [
        {"flatten": "series"},
        {"filter": {"series.tags.room": "greenhouse"}},
    ],
    "query_timeseries/rooms": [{"flatten": "series"}, {"count": True}],
}


class Ctxtual(Arm):
    """A reader that makes one query if the result is a list, then a search, then opens its hits.

    Last come pages. One process for all questions: each call gives a result of its own.
    """

    name = "ctxtual 0.5.0"
    fresh = False
    _before = ""  # the page of a text before, whose last line may go on

    def command(self, server: Sequence[str]) -> list[str]:
        own = program("ctxtual", "ctxtual")
        return ["env", f"HOME={home('ctxtual')}", own, "wrap", "--", *server]

    def show(self, result: Result) -> str:
        return _ID.sub("0" * 12, visible_text(result))

    def steps(self, question: Question) -> Steps:
        self._before = ""
        reply = yield Call(question.tool)
        notice = _members(visible_text(reply.result))
        if "result_id" not in notice:
            return
        ask: dict[str, Any] = {"result_id": notice["result_id"]}
        if "items" in notice and (query := _query(question)):
            yield Call("result_query", ask | {"steps": query})
        if question.word:
            reply = yield Call("result_search", ask | {"query": question.word})
            for place in list(_places(_members(reply.text)))[:_HITS]:
                yield Call("result_read", ask | place)
        more, page = True, 0
        while more:
            reply = yield Call("result_read", ask | {"page": page})
            members = _members(reply.text)
            more, page = bool(members.get("has_more")), page + 1
            self._before = str(members.get("text", ""))

    def readings(self, text: str) -> Iterator[str]:
        """Yield the texts in an answer, and its rows without their number in the list."""
        members = _members(text)
        if isinstance(members.get("text"), str):
            yield f"{self._before}{members['text']}"
        yield from (each["text"] for each in members.get("passages", ()))
        if members:
            yield json.dumps(members)


def _query(question: Question) -> list[Step]:
    """Return the steps by the member that a question is about, as the notice has an example of."""
    if question.name in QUERIES:
        return QUERIES[question.name]
    own: list[Step] = [{"filter": {question.filters: question.word}}] if question.filters else []
    if question.counts:
        count: list[Step] = [
            {"group_by": {"field": question.counts, "metrics": {"n": "count"}}},
            {"sort": {"field": "n", "order": "desc"}},
        ]
        return [*own, {"count": True}] if own else count
    if question.ranks:
        return [{"sort": {"field": question.ranks, "order": "desc"}}, {"limit": 1}]
    return own


def _places(members: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the arguments that open the hits of a search."""
    for hit in members.get("hits", ()):
        yield {"index": hit["index"]}
    for page in dict.fromkeys(each["page"] for each in members.get("passages", ())):
        yield {"page": page}


def _members(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
