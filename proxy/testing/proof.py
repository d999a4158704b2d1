"""Whether what a session used later is still there: without it, a smaller answer proves nothing."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from proxy.document.tree import loads
from proxy.testing import answer as answers
from proxy.testing.play import Replay
from proxy.testing.usage import Usage

_LONGEST = 500  # characters of a value
_SHORTEST = 2  # characters of a value with letters and digits, such as e5
_WORD = 4  # letters of a plain word
_DIGITS = 3


class UsedValue(Struct):
    """A value that a call took from an earlier answer.

    `file` and `path` are where that answer has it, `user` the call that took it. `place` is where
    the model finds it in the answers as they are shaped.
    """

    value: str
    file: str
    tool: str
    path: str
    user: str
    place: str = "lost"


class ShapedAnswer(Struct):
    """An answer with its recorded file, as the server sent it and as a client shows it.

    `shown` are the texts that the model sees; `stored` are the documents that its next view or page
    is cut from.
    """

    file: str
    replay: Replay
    shown: tuple[str, ...]

    @property
    def stored(self) -> list[bytes]:
        """The snapshots of the answer."""
        results = (result for _, result in self.replay.shaped)
        return [result.snapshot.document for result in results if result.snapshot is not None]


def used_values(session: Sequence[ShapedAnswer], definitions: str = "") -> list[UsedValue]:
    """Return the values of the answers of a session that its later calls used.

    A value that the model had before, or a word of the tools' `definitions`, is none.
    """
    calls = [(each.replay.exchange.tool, each.replay.exchange.arguments) for each in session]
    usage = _UsedLater(calls)
    used: dict[tuple[str, int], UsedValue] = {}
    for number, answer in enumerate(session):
        leaves = list(_leaves(_parts(answer)))
        text = _lines(leaf for _, leaf in leaves)
        shown: str | None = None
        for value, index, user in usage.within(number, text):
            if value.isalpha() and value in definitions:
                continue
            if shown is None:
                shown = _lines(
                    leaf for each in answer.shown for _, leaf in _leaves(answers.value(each))
                )
            path = next(path for path, leaf in leaves if _names(value, leaf))
            new = UsedValue(value, answer.file, answer.replay.exchange.tool, path, user)
            each = used.setdefault((value, index), new)
            if _names(value, shown):
                each.place = "shown"
            elif each.place == "lost" and _is_stored(value, answer):
                each.place = "view"
    return list(used.values())


class _UsedLater(Usage):
    """Finds used values in texts, such as the `e5` of `[ref=e5]`."""

    def within(self, call: int, text: str) -> Iterator[tuple[str, int, str]]:
        """Yield each value in the answer to a call that a later call used first: its number, who.

        `text` has each text of the answer on a line of its own.
        """
        for value, users in self._users.items():
            index, _, user = users[0]
            if index > call and len(value) <= _LONGEST and value in text and _stands(value, text):
                yield value, index, user


def _stands(value: str, text: str) -> bool:
    """Return True if `value` names a thing in a text; a plain word only as a line of its own."""
    if value.isdigit():
        # Round numbers are counts and limits.
        return len(value) >= _DIGITS and not value.endswith("00") and _names(value, text)
    if value.isalpha():
        return len(value) >= _WORD and f"\n{value}\n" in text
    return len(value) >= _SHORTEST and _names(value, text)


def _names(value: str, text: str) -> bool:
    """Return True if a text has `value`, and not as a part of a longer word."""
    return value in text and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def _is_stored(value: str, answer: ShapedAnswer) -> bool:
    return any(_names(value, leaf) for raw in answer.stored for _, leaf in _leaves(loads(raw)))


def _parts(answer: ShapedAnswer) -> Any:
    """Return the document of the server's answer; with several copies or texts, all of them."""
    before = answer.replay.before
    if before.structured is not None:
        return loads(bytes(before.structured))
    values = [answers.value(text) for text in before.texts or (before.text,)]
    return values[0] if len(values) == 1 else values


def _lines(texts: Iterable[str]) -> str:
    return "\n{}\n".format("\n".join(texts))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text, number and name of a member, with its path."""
    if isinstance(value, dict):
        for name, member in value.items():
            inner = f"{path}.{name}" if path else name
            yield inner, name
            yield from _leaves(member, inner)
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _leaves(element, f"{path}[{index}]")
    elif value is not None and not isinstance(value, bool):
        yield path, str(value)
