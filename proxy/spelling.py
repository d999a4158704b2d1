"""Finds the word that was meant."""

from collections.abc import Iterable
from itertools import islice

_MOST = 500  # words that are looked at


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most like `word`, or None where none is like it.

    >>> nearest("paginat", ["paginate", "project"]), nearest("zebra", ["paginate"])
    ('paginate', None)
    """
    # Imported where a mistake was made only.
    from difflib import get_close_matches

    # Each is compared with the word: of very many, those that come first will do.
    return next(iter(get_close_matches(word[:100], list(islice(known, _MOST)), 1)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown word: `; did you mean ...?`, or nothing.

    >>> did_you_mean("paginat", ["paginate", "project"])
    "; did you mean 'paginate'?"
    """
    found = nearest(word, known)
    return f"; did you mean {found!r}?" if found else ""
