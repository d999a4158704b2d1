"""mcp-abridge in front of the server, without rules, and four ways of asking it."""

import json
import re
from collections.abc import Sequence

from tests.answers.arm import Arm, Call, Reply, Steps
from tests.answers.question import Question
from tests.wrapped import wrapped

_MORE = re.compile(r'"more":\s*("(?:[^"\\]|\\.)*")')
_VIEW = re.compile(r"""view=('|")((?:(?!\1).|\\.)*)\1([^;]*)""")
_NOTICE = re.compile(r'\n\{"(?:_abridged|more)".*\Z')
_NOTES = re.compile(r'"_abridged":\{((?:"(?:[^"\\]|\\.)*":"(?:[^"\\]|\\.)*",?)*)\}')
_WINDOW = re.compile(r"(.+)\[(\d+):(\d+)\]")
_HIT = re.compile(
    r'"path":"((?:[^"\\]|\\.)*\])|"line":(\d+)|"rows":\[\[(?:"((?:[^"\\]|\\.)*\])|(\d+))'
)
_LINES = 10
"""Lines before and after a hit that a reader asks for."""


class Ours(Arm):
    """A base: the wrapper with its own `options`."""

    def __init__(self, *options: str) -> None:
        self._options = options

    def command(self, server: Sequence[str]) -> list[str]:
        return wrapped(server, "--ledger", "off", *self._options)


class Paging(Ours):
    """A reader that calls again with the first view that the notice names, until there is none.

    Then come the other places that the first notice names, in the same way.
    """

    name = "ours, paging"

    def steps(self, question: Question) -> Steps:
        reply = yield Call(question.tool)
        yield from self.pages(question, reply)

    def pages(self, question: Question, first: Reply) -> Steps:
        """Follow the notices of the first answer."""
        places = [place for place in noted(first.text) if place not in ("items", "@", "text")]
        earlier: set[str] = set()
        reply, view, before = first, "", ""
        while True:
            following = next(iter(views(reply.text)), None)
            if following is None or following in earlier:
                places = [each for each in places if not any(v.startswith(each) for v in earlier)]
                if not places:
                    return
                following = places.pop(0)
            earlier.add(following)
            before = end_of(reply.text) if continues(view, following) else ""
            view = following
            reply = yield Call(question.tool, {"view": view}, before)


class Notices(Paging):
    """A reader that takes what the notice offers: a failure's lines, a search for a word, pages.

    The search has a word of the question in it; then comes the place of the first hit.
    """

    name = "ours, by the notices"

    def steps(self, question: Question) -> Steps:
        first = yield Call(question.tool)
        offers = views(first.text)
        failure = [view for view, label in offers.items() if "shows line" in label]
        if failure and re.search("(?i)fail|error|why|not trusted|stop", question.text):
            yield Call(question.tool, {"view": failure[0]})
        if question.word and any("searches" in label for label in offers.values()):
            found = yield Call(question.tool, {"view": f"grep('{question.word}')"})
            if hit := _HIT.search(found.text):
                yield Call(question.tool, {"view": around(hit)})
        yield from self.pages(question, first)


class Best(Ours):
    """A reader that knows the result's form, and asks for the answer with the first call."""

    name = "ours, best view"

    def steps(self, question: Question) -> Steps:
        for view in question.views:
            yield Call(question.tool, {"view": view})


class Look(Best):
    """A reader that learns the result's form from a first look, and then asks for the answer."""

    name = "ours, a look, then best view"

    def steps(self, question: Question) -> Steps:
        yield Call(question.tool)
        yield from super().steps(question)


def views(text: str) -> dict[str, str]:
    """Return the views that a notice names, each with what the notice says of it.

    >>> views('[1]\\n{"_abridged": {"more": "call again with view=\\'items[2:4]\\'"}}')
    {'items[2:4]': ''}
    >>> views('{"more": "view=\\'a[2:4]\\' is next; view=\\\\"[?a==\\'b\\']\\\\" filters"}')
    {'a[2:4]': ' is next', "[?a=='b']": ' filters'}
    """
    notices = _MORE.findall(text)
    found = _VIEW.findall(json.loads(notices[-1])) if notices else ()
    return {view: label for _, view, label in found}


def noted(text: str) -> list[str]:
    """Return the paths at which a notice says that something is left out.

    >>> noted('{"a":1,"_abridged":{"nodes":"7 of 30","edges":"1 of 9","more":"..."}}')
    ['nodes', 'edges']
    """
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
    """Return the end of a part of a text, without the notice."""
    return _NOTICE.sub("", text)[-2000:]


def around(hit: re.Match[str]) -> str:
    """Return the view of what a hit of a search stands in."""
    if path := hit[1] or hit[3]:
        return path
    line = int(hit[2] or hit[4])
    return f"lines({max(line - _LINES, 1)}, {line + _LINES})"
