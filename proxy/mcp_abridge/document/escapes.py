"""Escape codes of terminals in a text: with them, words that a screen shows in a row are apart."""

import re
from bisect import bisect_left
from collections.abc import Callable

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")


def without_escapes(text: str) -> tuple[str, Callable[[int], int]]:
    r"""Return a text without escape codes, and what gives the offset in `text` of one in it.

    >>> plain, offset = without_escapes("\x1b[32mok\x1b[0m 7")
    >>> plain, offset(0), offset(1), offset(3)
    ('ok 7', 0, 6, 12)
    """
    if "\x1b" not in text:
        return text, int
    places, lengths = list[int](), [0]
    for escape in _ESCAPE.finditer(text):
        places.append(escape.start() - lengths[-1])
        lengths.append(lengths[-1] + len(escape[0]))
    return _ESCAPE.sub("", text), lambda at: at + lengths[bisect_left(places, at)]
