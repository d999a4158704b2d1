"""Letters with accents and in several forms: without them, `Koln` and `é` of macOS find nothing."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

_ACCENTS = re.compile("[\\u0300-\\u036f]+")  # each behind its letter
# Unicode takes a stroke, or a dot that is missing, for no accent.
_STROKES = str.maketrans("\xf8\xd8\u0142\u0141\u0111\u0110\u0131", "oOlLdDi")


def without_accents(text: str) -> str:
    """Return a text without its case and accents, and the forms of its letters and blanks."""
    if text.isascii():
        return text.casefold()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).translate(_STROKES).casefold()


def without_forms(text: str) -> str:
    """Return a text without its case, and the forms of its letters and blanks."""
    return unicodedata.normalize("NFKC", text).casefold()


def forms_of(literal: str, texts: list[str]) -> Iterator[str]:
    """Yield a literal with its letters and blanks in other forms, and the texts that are there."""
    for form in ("NFC", "NFD"):
        yield unicodedata.normalize(form, literal)
    for blank in "\u00a0\u202f\u2009":
        yield literal.replace(" ", blank)
    yield from texts


def differ_in_spelling(one: Any, other: Any) -> bool:
    """Return True if two texts have the same letters but for their case, accents and forms."""
    if type(one) is not str or type(other) is not str or one == other:
        return False
    if one.isascii() and other.isascii():  # quicker to tell
        return len(one) == len(other) and one.casefold() == other.casefold()
    for end in (1, 8):  # quicker to tell, too
        ascii_ = one[:end].isascii() and other[:end].isascii()
        if ascii_ and one[:end].casefold() != other[:end].casefold():
            return False
    return without_accents(one) == without_accents(other)


def holds_otherwise(holds: Callable[[str, str], bool], one: Any, other: Any) -> bool:
    """Return True if a text, or one in an array, holds another one but for case and accents."""
    if type(one) is list:
        return any(differ_in_spelling(each, other) for each in one)
    texts = type(one) is str and type(other) is str
    if not texts or holds(one, other):
        return False
    return holds(without_accents(one), without_accents(other))
