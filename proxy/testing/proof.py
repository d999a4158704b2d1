"""Proof that a session still finds what it used: without it, nobody knows what a rule costs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from proxy.document.tree import loads
from proxy.testing import answer as answers
from proxy.testing.play import Replay

# A part of an argument that names a thing: a word with a digit.
_IDENTIFIER = re.compile(r"\b(?=[A-Za-z_-]*\d)[\w-]*\w")
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

    `visible` are the texts that the model sees; `stored` are the documents from which its views and
    pages are cut.
    """

    file: str
    replay: Replay
    visible: tuple[str, ...]

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
    uses = _Uses(calls)
    used: dict[tuple[str, int], UsedValue] = {}
    for number, answer in enumerate(session):
        leaves = list(_leaves(_parts(answer)))
        text = _lines(leaf for _, leaf in leaves)
        after: str | None = None
        for value, index, user in uses.within(number, text):
            if value.isalpha() and value in definitions:
                continue
            if after is None:
                after = _lines(
                    leaf for each in answer.visible for _, leaf in _leaves(answers.value(each))
                )
            path = next(path for path, leaf in leaves if _names(value, leaf))
            new = UsedValue(value, answer.file, answer.replay.exchange.tool, path, user)
            each = used.setdefault((value, index), new)
            if _names(value, after):
                each.place = "shown"
            elif each.place == "lost" and _is_stored(value, answer):
                each.place = "view"
    # Of an argument that is a path, the path counts, not each of its folders too.
    return [
        each
        for (value, call), each in used.items()
        if not any(call == of and value != whole and value in whole for whole, of in used)
    ]


class _Uses:
    """The values in the arguments of calls, each with the first call that has it."""

    def __init__(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> None:
        self._first: dict[str, tuple[int, str]] = {}
        for number, (tool, arguments) in enumerate(calls):
            for path, text in _leaves(arguments, names=False):
                for value in {text, *text.split("/"), *_IDENTIFIER.findall(text)}:
                    self._first.setdefault(value, (number, f"{tool} took it as {path}"))

    def within(self, call: int, text: str) -> Iterator[tuple[str, int, str]]:
        """Yield each value in the answer to a call that a later call used first: its number, who.

        `text` has each text of the answer on a line of its own.
        """
        for value, (number, user) in self._first.items():
            if number > call and len(value) <= _LONGEST and value in text and _stands(value, text):
                yield value, number, user


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


def _leaves(value: Any, path: str = "", *, names: bool = True) -> Iterator[tuple[str, str]]:
    """Yield each text and number with its path, and the `names` of members with theirs."""
    if isinstance(value, dict):
        for name, member in value.items():
            inner = f"{path}.{name}" if path else name
            if names:
                yield inner, name
            yield from _leaves(member, inner, names=names)
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _leaves(element, f"{path}[{index}]", names=names)
    elif value is not None and not isinstance(value, bool):
        yield path, str(value)
