"""mcp-abridge in front of the server, without rules, and three ways of asking it."""

import json
import re
from collections.abc import Sequence

from tests.answers.arm import Arm, Call, Steps
from tests.answers.question import Question
from tests.wrapped import wrapped

_MORE = re.compile(r'"more":\s*("(?:[^"\\]|\\.)*")')
_VIEW = re.compile(r"""view=('|")((?:(?!\1).|\\.)*)\1""")


class Ours(Arm):
    """A base: the wrapper with its own `options`."""

    def __init__(self, *options: str) -> None:
        self._options = options

    def command(self, server: Sequence[str]) -> list[str]:
        return wrapped(server, "--ledger", "off", *self._options)


class Naive(Ours):
    """A reader that calls again with the first view that the notice names, until there is none."""

    name = "ours, following the notices"

    def steps(self, question: Question) -> Steps:
        view: str | None = None
        earlier: set[str] = set()
        while True:
            reply = yield Call(question.tool, {"view": view} if view else {})
            view = following(reply.text)
            if view is None or view in earlier:
                return
            earlier.add(view)


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


def following(text: str) -> str | None:
    """Return the view that a notice names first.

    >>> following('[1]\\n{"_abridged": {"more": "call again with view=\\'items[2:4]\\'"}}')
    'items[2:4]'
    >>> following('{"more": "view=\\\\"[?a==\\'b\\']\\\\" filters"}')
    "[?a=='b']"
    """
    for more in reversed(_MORE.findall(text)):
        if match := _VIEW.search(json.loads(more)):
            return match[2]
    return None
