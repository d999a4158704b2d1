"""The members of an object: which of them can be cut, and which stay if not all fit.

Without it the first ones stay, which may be flags, and not who changed the thing, and when.
"""

from collections.abc import Sequence

from msgspec import Raw

from mcp_abridge.document.tree import ARRAY, OBJECT, STRING, head, level, loads
from mcp_abridge.summary import forms, words
from mcp_abridge.summary.cuts import NOTE_END
from mcp_abridge.summary.place import Place

WHOLE = 40  # characters: a string that short (an id, a date, a status) is never cut
_PERSON, _TIME = 4.5, 3.5  # worth of who it was, and when
_PLAIN = 1.0  # worth of a number or a short text
_LONG = 100  # bytes of a text that is rather read than looked at
_FLAGS = (b"true", b"false")

Entry = tuple[bytes, Raw, Place]
"""A member or element: its encoded name, its value, its place."""


def rigid(raw: Raw) -> bool:
    """Return True if a value cannot be cut: a number, a literal, an empty or short string."""
    kind, length = head(raw), len(raw)
    if kind == STRING:
        # A character takes from one byte to six.
        if not WHOLE + 2 < length <= 6 * WHOLE + 2:
            return length <= WHOLE + 2
        return len(text := level(raw)) <= WHOLE or text.endswith(NOTE_END)
    return kind not in (OBJECT, ARRAY) or length <= 2


def is_end(raw: Raw) -> bool:
    """Return True of a value that cannot be cut, and of a point of a time series."""
    return rigid(raw) or (head(raw) == ARRAY and len(raw) <= WHOLE)


def telling(entries: Sequence[Entry], room: int) -> list[Entry]:
    """Return the members for which one reads an object, which fit; none of a map of numbers.

    The first one, which often says what it is, comes before others. If there are some that can be
    cut, these have half of the room.
    """
    fixed = [each for each in entries if rigid(each[1])]
    if all(memoryview(raw)[0] in b"-0123456789" for _, raw, _ in fixed):
        return []
    room //= 1 if len(fixed) == len(entries) else 2
    names = {name for name, raw, _ in entries if not rigid(raw)}
    for name, raw, _ in (*fixed[:1], *sorted(fixed[1:], key=worth, reverse=True)):
        size = len(name) + len(raw) + 1
        if size < room:
            names.add(name)
            room -= size
    return [each for each in entries if each[0] in names]


def in_place(parts: list[bytes], some: list[Entry], entries: list[Entry]) -> list[bytes] | None:
    """Return the parts of some entries, with nothing in place of others; None without the first."""
    present = dict(zip((name for name, _, _ in some), parts, strict=False))
    return (
        [present.get(name, b"") for name, _, _ in entries] if present.get(entries[0][0]) else None
    )


def worth(entry: Entry) -> float:
    """Return the worth of a member to one who reads the object; less than 0 if it is empty."""
    name, value = loads(entry[0][:-1]), bytes(memoryview(entry[1])[: 2 * _LONG])
    if value in (b"null", b'""', b"[]", b"{}"):
        return -1
    if value in _FLAGS or forms.LINK.match(value) or forms.OPAQUE.match(value):
        return 0
    own = words.split(name)
    last = name.lower() if name.lower() in words.NAMES else (own or ("",))[-1]
    kinds = (words.NAMES, words.STATES, words.VALUES, words.KEYS, words.PEOPLE)
    by_name = (kind.get(last, 0) for kind in kinds)
    best = max(_PLAIN, *by_name, _PERSON * (last == "by"), _TIME * (last in words.TIMES))
    return best - (len(value) > _LONG)
