"""The values of answers that a session used later: without them, a rule may drop a needed id."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

# A word that names a thing: it has a digit, or a sign inside.
_WORD = re.compile(r"\w[\w./@:#+-]+\w")
_SIGN = re.compile(r"[0-9./@:#_-]")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_SHORT = 3  # characters, of a number one more; a shorter value must also have a name that fits
_IDS = frozenset(("id", "number", "key", "iid", "index", "name"))
_MOST = 500  # characters of a value that is looked for in texts
_LONGEST = 100_000  # characters of a text in which words are looked for


class Usage:
    """The values in the calls of a session, and in the model's own words.

    `calls` are the tools with their arguments, in order; `words` are texts of the model, each with
    the number of the call that it comes before.
    """

    def __init__(
        self, calls: Sequence[tuple[str, dict[str, Any]]], words: Iterable[tuple[int, str]] = ()
    ) -> None:
        self._users: dict[str, list[tuple[int, str, str]]] = {}  # by value: call, name, user
        texts = [(index, 0, "", text, "the model's own text has it") for index, text in words]
        for index, (tool, arguments) in enumerate(calls):
            for name, text in _leaves("", arguments):
                texts.append((index, 1, name, text, f"{tool} took it as {name}"))
        for index, _, name, text, user in sorted(texts):
            for value in {text, *_identifiers(text), *text.split("/")}:
                self._users.setdefault(value, []).append((index, name, user))

    def user(self, call: int, name: str, value: Any) -> str:
        """Return who used a value of the answer to a call, "" if nobody did.

        `name` is that of the member with the value. A value that the model already had before the
        answer does not count.

        >>> usage = Usage([("list", {}), ("get", {"issue_number": 7})])
        >>> usage.user(0, "number", 7), usage.user(0, "comments", 7), usage.user(1, "number", 7)
        ('get took it as issue_number', '', '')
        """
        if value is None or isinstance(value, bool) or not self._users:
            return ""
        text = str(value)
        for each in (text, *_identifiers(text)):
            long = len(each) >= _SHORT + each.isdigit()
            for index, argument, user in self._users.get(each, ()):
                if long or (each == text and _alike(name, argument)):
                    if index > call:
                        return user
                    break
        return ""

    def within(self, call: int, text: str) -> Iterator[tuple[str, int, str]]:
        """Yield each value in the answer to a call that a later call took: its number, and who.

        `text` has each text of the answer on a line of its own; a plain word counts as such a line
        only. Values that every text has are left out: numbers of one or two digits, round numbers.

        >>> usage = Usage([("snapshot", {}), ("click", {"ref": "e5", "button": "left"})])
        >>> list(usage.within(0, "- the left button [ref=e5]"))
        [('e5', 1, 'click took it as ref')]
        """
        for value, users in self._users.items():
            index, _, user = users[0]
            if index > call and value in text and _stands(value, text):
                yield value, index, user


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(key, member)
    elif isinstance(value, list):
        for element in value:
            yield from _leaves(name, element)
    elif value is not None and not isinstance(value, bool) and value != "":
        yield name, str(value)


def _identifiers(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text, 0, _LONGEST):
        if _SIGN.search(match[0]):
            yield match[0]


def has_word(value: str, text: str) -> bool:
    """Return True if a text has `value`, and not as a part of a longer word."""
    return value in text and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def _stands(value: str, text: str) -> bool:
    if value.isdigit():
        return len(value) >= _SHORT and not value.endswith("00") and has_word(value, text)
    if value.isalpha():
        return len(value) > _SHORT and f"\n{value}\n" in text
    # What was masked has no letter or digit.
    return 1 < len(value) < _MOST and any(map(str.isalnum, value)) and has_word(value, text)


def _alike(member: str, argument: str) -> bool:
    first, second = ([part.lower() for part in _PART.findall(name)] for name in (member, argument))
    if not first or not second:
        return False
    return bool({*first} & {*second}) or (first[-1] in _IDS and second[-1] in _IDS)
