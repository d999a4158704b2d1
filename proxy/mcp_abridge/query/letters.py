"""Letters with accents and in several forms: without them, `Koln` and `é` of macOS find nothing."""

import re
import unicodedata
from collections.abc import Iterator

_ACCENTS = re.compile("[\\u0300-\\u036f]+")  # each behind its letter


def without_accents(text: str) -> str:
    """Return a text without its case and accents, and the forms of its letters and blanks."""
    if text.isascii():
        return text.casefold()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).casefold()


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
