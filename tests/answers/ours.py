"""mcp-abridge in front of the server, without rules, and four ways of asking it."""

import json
import re
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

from tests.answers.arm import Arm, Call, Reply, Steps
from tests.answers.evidence import documents
from tests.answers.question import Question
from tests.wrapped import wrapped

_MORE = re.compile(r'"more":\s*("(?:[^"\\]|\\.)*")')
_VIEW = re.compile(r"""view=('|")((?:(?!\1).|\\.)*)\1([^;]*)""")
_NOTICE = re.compile(r'\n\{"(?:_abridged|more)".*\Z')
_NOTES = re.compile(r'"_abridged":\{((?:"(?:[^"\\]|\\.)*":"(?:[^"\\]|\\.)*",?)*)\}')
_WINDOW = re.compile(r"(.+)\[(\d+):(\d+)\]")
_INDEX = re.compile(r"\[\d+\]")
_MEMBER = re.compile(r"(.*)\[\d+\]\.(\w+)")
_MEMBER_OF_ROWS = re.compile(r"(&(?:value\.)?)[^)]+\)$")
_HITS = 40
_OWNERS = 3
_LINES = 10
"""Hits at which a reader looks, those of which it looks at what is around, and lines around one."""


class Ours(Arm):
    """A base: the wrapper with its own `options`."""

    def __init__(self, *options: str) -> None:
        self._options = options

    def command(self, server: Sequence[str]) -> list[str]:
        return wrapped(server, "--ledger", "off", *self._options)


class Paging(Ours):
    """A reader that calls again with the next view that the notice names, until there is none.

    Then come the other places that notices name.
    """

    name = "ours, paging"

    def steps(self, question: Question) -> Steps:
        reply = yield Call(question.tool)
        yield from self.pages(question, reply)

    def pages(self, question: Question, first: Reply) -> Steps:
        waiting = [
            place for place in omitted_paths(first.text) if place not in ("items", "@", "text")
        ]
        earlier: set[str] = set()
        reply, view = first, ""
        while True:
            offers = views(reply.text)
            waiting[:0] = [each for each, label in offers.items() if label in ("", " is next")]
            fresh = (each for each in waiting if not any(v.startswith(each) for v in earlier))
            following = next(fresh, None)
            if following is None:
                return
            earlier.add(following)
            before = end_of(reply.text) if continues(view, following) else ""
            view = following
            reply = yield Call(question.tool, {"view": view}, before)


class Notices(Paging):
    """A reader that takes what the notice offers: a failure's lines, counts, a search, pages.

    A count, or the search for the greatest row, is by the member that the question is about; the
    search has a word of the question in it. Then comes what the hits stand in.
    """

    name = "ours, by the notices"

    def steps(self, question: Question) -> Steps:
        first = yield Call(question.tool)
        offers = views(first.text)
        failure = [view for view, label in offers.items() if "shows line" in label]
        if failure and re.search("(?i)fail|error|why|not trusted|stop", question.text):
            yield Call(question.tool, {"view": failure[0]})
        members = {" counts": question.counts, " finds the greatest": question.ranks}
        for view, label in offers.items():
            if member := members.get(label):
                yield Call(question.tool, {"view": _MEMBER_OF_ROWS.sub(rf"\1{member})", view)})
        if question.word and any("searches" in label for label in offers.values()):
            hits = yield Call(question.tool, {"view": f"grep('{question.word}')"})
            for view in around(hits.text, question.word):
                yield Call(question.tool, {"view": view})
        yield from self.pages(question, first)


class Best(Ours):
    """A reader that knows the result's form, and asks for the answer with the first call."""

    name = "ours, best view"

    def steps(self, question: Question) -> Steps:
        for view in question.views:
            yield Call(question.tool, {"view": view})


class LookThenView(Best):
    """A reader that learns the result's form from a first look, and then asks for the answer."""

    name = "ours, a look, then best view"

    def steps(self, question: Question) -> Steps:
        yield Call(question.tool)
        yield from super().steps(question)


def views(text: str) -> dict[str, str]:
    """Return the views that notices name, each with what is said of it."""
    matches = [each for more in _MORE.findall(text) for each in _VIEW.findall(json.loads(more))]
    return {view: label.partition(",")[0] for _, view, label in matches}


def omitted_paths(text: str) -> list[str]:
    notices = _NOTES.findall(text)
    names = json.loads(f"{{{notices[-1]}}}") if notices else {}
    return [name for name in names if name not in ("more", "others")]


def continues(view: str, following: str) -> bool:
    """Return True if a view is a part of a text, and the next part follows it."""
    before, after = _WINDOW.fullmatch(view), _WINDOW.fullmatch(following)
    if not after or not after[1].endswith(("text", "content")):
        return False
    return before is None or (before[1], before[3]) == (after[1], after[2])


def end_of(text: str) -> str:
    return _NOTICE.sub("", text)[-2000:]


def around(text: str, word: str) -> list[str]:
    """Return views of what the hits of a search stand in; of equal members, a filter."""
    filters: dict[str, None] = {}
    owners: list[list[str]] = []
    for hit in hits(text)[:_HITS]:
        path = str(hit.get("path", ""))
        if "line" in hit:
            line = int(hit["line"])
            return [f"lines({max(line - _LINES, 1)}, {line + _LINES})"]
        if (member := _MEMBER.fullmatch(path)) and hit["text"] == word:
            filters[f"{member[1]}[?{member[2]}=='{word}']"] = None
        if len(owners) < _OWNERS:
            owners.append([path[: each.end()] for each in _INDEX.finditer(path)] or [path])
    levels = zip_longest(*map(reversed, owners))
    return list(dict.fromkeys([*filters, *filter(None, chain.from_iterable(levels))]))


def hits(text: str) -> list[dict[str, Any]]:
    [document, *_] = documents(text)
    view: Any = document.get("view") if isinstance(document, dict) else None
    view = view if isinstance(view, dict) else {}
    view = view.get("ignoring_case", view)
    rows = view.get("at") or view.get("lines") or []
    if isinstance(rows, dict):
        same, columns = rows.get("same", {}), rows["columns"]
        return [same | dict(zip(columns, row, strict=True)) for row in rows["rows"]]
    return list(rows)
