"""mcp-abridge in front of the server, without rules, and four ways of asking it.

The reader of notices is frozen since the second set is there: if a product's notices change, they
change for it as for a model. It knows the forms of notices, and of a question only what stands in
its entry.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any

from tests.answers.arm import Arm, Call, Reply, Steps
from tests.answers.evidence import documents
from tests.answers.question import Question
from tests.wrapped import wrapped

_MORE = re.compile(r'"more":\s*("(?:[^"\\]|\\.)*")')
_VIEW = re.compile(r"""view=('|")((?:(?!\1).|\\.)*)\1([^;]*)""")
_NOTICE = re.compile(r'\n\{"(?:_abridged|more)".*\Z')
_NOTES = '"_abridged":'
_LEFT_OUT = re.compile(r"\d+ of \d+|left out|without")
_WINDOW = re.compile(r"(.+)\[(\d+):(\d+)\]")
_INDEX = re.compile(r"\[\d+\]")
_MEMBER = re.compile(r"(.*)\[\d+\]\.(\w+)")
_MEMBER_OF_ROWS = re.compile(r"(&(?:value\.)?)[^)]+\)$")
_FILTER = re.compile(
    r"""\[\?(contains\()?(value\.)?[\w."@]+(?:\)|, |\s*[=<>]=?\s*)(?:'[^']*'|`[^`]*`)\)?\]"""
)
_WORDS = re.compile(r"[^\W_]{4,}")
_FAILURE = re.compile("(?i)fail|error|why|not trusted|stop")
_SUM = re.compile("(?i)total|sum|altogether|together")
_LAST = re.compile("(?i)last|latest|newest|recent")
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

    def pages(self, question: Question, first: Reply, *, whole: bool = False) -> Steps:
        """Yield page after page; with `whole`, all at once after the first, if that is offered."""
        waiting = [
            place for place in omitted_paths(first.text) if place not in ("items", "@", "text")
        ]
        earlier: set[str] = set()
        reply, view = first, ""
        while True:
            offers = views(reply.text)
            waiting[:0] = [each for each, label in offers.items() if is_next(each, label)]
            fresh = (each for each in waiting if not any(v.startswith(each) for v in earlier))
            following = next(fresh, None)
            if whole and (earlier or following is None) and "all" in views(first.text):
                yield Call(question.tool, {"view": "all"})
                return
            if following is None:
                return
            earlier.add(following)
            before = end_of(reply.text) if continues(view, following) else ""
            view = following
            reply = yield Call(question.tool, {"view": view}, before)


class Notices(Paging):
    """A reader that takes what the notice offers and the question is about, then what is next.

    First the lines of a failure, a count, a filter, the greatest row, a sum, the last rows, a cell
    that is named; each by the member that the question is about. Then a search with a word of the
    question, and what its hits lie in; then one page, and all of it.
    """

    name = "ours, by the notices"

    def steps(self, question: Question) -> Steps:
        first = yield Call(question.tool)
        offers = views(first.text)
        for view in dict.fromkeys(fitting(offers, question)):
            yield Call(question.tool, {"view": view})
        if question.word and any(view.startswith("grep(") for view in offers):
            hits = yield Call(question.tool, {"view": f"grep('{question.word}')"})
            for view in around(hits.text, question.word):
                yield Call(question.tool, {"view": view})
        yield from self.pages(question, first, whole=True)


def fitting(offers: dict[str, str], question: Question) -> Iterator[str]:
    """Yield the offered views that are for the question, with its member in place of theirs."""
    failures = [view for view, label in offers.items() if re.search(r"\blines?\b|fail", label)]
    if failures and _FAILURE.search(question.text):
        yield failures[0]
    for view, label in offers.items():
        if question.counts and "counts" in label:
            yield _MEMBER_OF_ROWS.sub(rf"\g<1>{question.counts})", view)
        elif question.ranks and re.search("greatest|highest|largest", label):
            yield _MEMBER_OF_ROWS.sub(rf"\g<1>{question.ranks})", view)
        elif question.filters and "filter" in label and (match := _FILTER.search(view)):
            member = f"{match[2] or ''}{question.filters}"
            test = f"{member}=='{question.word}'"
            if match[1]:
                test = f"contains({member}, '{question.word}')"
            yield f"{view[: match.start()]}[?{test}]{view[match.end() :]}"
        elif re.search(r"\bsums?\b|adds", label):
            if _SUM.search(question.text):
                yield view
        elif re.search(r"\blast\b", label):
            if _LAST.search(question.text):
                yield view
        elif re.search("opens|shows", label) and view not in failures:
            words = set(_WORDS.findall(f"{view} {label}".lower())) - {"opens", "shows", "text"}
            if words & set(_WORDS.findall(question.text.lower())):
                yield view


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
    """Return the views that notices name, each with what is said of it.

    >>> views(json.dumps({"more": "view='a[9:18]'; view='all' shows all, 9 kB"}))
    {'a[9:18]': '', 'all': ' shows all'}
    """
    mores = [json.loads(each) for each in _MORE.findall(text)]
    matches = [match for more in mores for match in _VIEW.findall(more)]
    for place, note in notes(text).items():
        if isinstance(note, str) and place not in ("more", "read_from"):
            matches += [(_, view, f"{label} {place}") for _, view, label in _VIEW.findall(note)]
    return {view: label.partition(",")[0] for _, view, label in matches}


def notes(text: str) -> dict[str, Any]:
    """Return the last `_abridged` of a text; {} if it has none."""
    start = text.rfind(_NOTES)
    try:
        own = json.JSONDecoder().raw_decode(text, start + len(_NOTES))[0] if start >= 0 else {}
    except ValueError:
        return {}
    return own if isinstance(own, dict) else {}


def omitted_paths(text: str) -> list[str]:
    own = notes(text).items()
    return [
        place
        for place, note in own
        if place not in ("more", "others") and isinstance(note, str) and _LEFT_OUT.search(note)
    ]


def is_next(view: str, label: str) -> bool:
    return view not in ("all", "kept", "help") and (not label or "next" in label)


def continues(view: str, following: str) -> bool:
    """Return True if a view is a part of a text, and the next part follows it."""
    before, after = _WINDOW.fullmatch(view), _WINDOW.fullmatch(following)
    if not after or not after[1].endswith(("text", "content")):
        return False
    return before is None or (before[1], before[3]) == (after[1], after[2])


def end_of(text: str) -> str:
    return _NOTICE.sub("", text)[-2000:]


def around(text: str, word: str) -> list[str]:
    """Return views of what the hits of a search stand in; of equal members, a filter.

    >>> around('{"view":{"at":[{"path":"a[3].b","text":"x","more":"a[2:4]"}]}}', "y")
    ['a[2:4]', 'a[3]']
    """
    filters: dict[str, None] = {}
    owners: list[list[str]] = []
    opened: dict[str, None] = {}
    for hit in hits(text)[:_HITS]:
        if len(opened) < _OWNERS and isinstance(more := hit.get("more"), str):
            view = _VIEW.search(more)
            opened[view[2] if view else more] = None
        path = str(hit.get("path", ""))
        if "line" in hit and not path:
            line = int(hit["line"])
            return [*opened] or [f"lines({max(line - _LINES, 1)}, {line + _LINES})"]
        if (member := _MEMBER.fullmatch(path)) and hit.get("text") == word:
            filters[f"{member[1]}[?{member[2]}=='{word}']"] = None
        if not _INDEX.search(path) and isinstance(row := hit.get("row"), dict):
            opened[row["view"]] = None  # a member of a map
        if len(owners) < _OWNERS:
            owners.append([path[: each.end()] for each in _INDEX.finditer(path)] or [path])
    levels = zip_longest(*map(reversed, owners))
    return list(dict.fromkeys([*filters, *opened, *filter(None, chain.from_iterable(levels))]))


def hits(text: str) -> list[dict[str, Any]]:
    """Return the hits of a search, which have a place or a line each, wherever they stand."""
    [document, *_] = documents(text)
    return list(_hits(document.get("view"))) if isinstance(document, dict) else []


def _hits(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for each in value:
            yield from _hits(each)
    elif isinstance(value, dict) and {"columns", "rows"} <= value.keys():
        for row in value["rows"]:
            cells = dict(zip(value["columns"], row, strict=True))
            yield from _hits({**value.get("same", {}), **cells})
    elif isinstance(value, dict):
        if "path" in value or str(value.get("line", "")).isdigit():
            yield value
        else:
            for each in value.values():
                yield from _hits(each)
