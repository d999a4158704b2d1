"""Finds the word that was meant."""

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most like `word`, or None where none is like it.

    >>> nearest("paginat", ["paginate", "project"]), nearest("zebra", ["paginate"])
    ('paginate', None)
    """
    # Imported where a mistake was made only.
    from difflib import get_close_matches

    return next(iter(get_close_matches(word[:100], list(known), 1)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown word: `; did you mean ...?`, or nothing.

    >>> did_you_mean("paginat", ["paginate", "project"])
    "; did you mean 'paginate'?"
    """
    found = nearest(word, known)
    return f"; did you mean {found!r}?" if found else ""
