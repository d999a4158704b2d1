"""The interface of the arms: each is a way from a question to its answer.

An arm names the command to start, chooses the calls of a question, and shows a result as its client
shows it to the model. All else is done by tests/answers/session.py: it starts the command, counts
calls and bytes, ends as soon as the evidence stands, and gives the reason if it never does.
"""

from collections.abc import Generator, Iterable, Sequence
from typing import Any

import orjson
from msgspec import Struct, field

from tests.answers.question import Question

LIMIT = 60
"""Calls for one question; who has not seen the evidence then never sees it."""

Result = dict[str, Any]


class Call(Struct, frozen=True):
    """One tools/call. `tool` is the name that the product in front gives it.

    `before` is the end of a text of which this is the next part: a line may begin in it.
    """

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    before: str = ""


class Look(Struct, frozen=True):
    """A call of a tool of the client's own, such as reading a part of a file: `text` is shown."""

    text: str
    before: str = ""


class Reply(Struct, frozen=True):
    """The answer to a step: the text that the model reads, and the whole result.

    `result` is {} for a Look, and if the call is answered with a JSON-RPC error.
    """

    text: str
    result: Result


Steps = Generator[Call | Look, Reply, None]


class Arm:
    """A base for arms; `name` is the row's title in the table.

    With `fresh`, each question has a process of its own. An arm whose command is slow to start
    may set False, if nothing of one question's answers shows in another's. `sets` are those of the
    questions for which it knows what to ask.
    """

    name: str
    sets: tuple[str, ...] = ("first", "second", "third", "fourth", "fifth", "unseen")
    fresh = True

    def command(self, server: Sequence[str]) -> list[str]:
        return list(server)

    def steps(self, question: Question) -> Steps:
        """Yield the calls for a question; each gets its Reply. Ends if there is no way on.

        The generator is closed as soon as the evidence stands. The first call may be any tool's.
        """
        raise NotImplementedError

    def show(self, result: Result) -> str:
        return visible_text(result)

    def readings(self, text: str) -> Iterable[str]:
        """Return other forms of a text, as a reader who knows the product's form has them."""
        return ()


def visible_text(result: Result) -> str:
    texts = [block["text"] for block in result.get("content", ()) if block.get("type") == "text"]
    if not texts and result.get("structuredContent") is not None:
        return orjson.dumps(result["structuredContent"]).decode()
    return "\n".join(texts)
