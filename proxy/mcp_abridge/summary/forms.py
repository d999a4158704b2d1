"""Patterns of the cells of a column: without them, a hash or an address would pass for a name."""

import re

NUMBER = re.compile(rb'"?-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"?')
_DAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +"
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
CLOCK = re.compile(
    rb'\[*"(?:\d{4}-\d\d(?:-\d\d(?:[T ][\d:.,+Z-]*)?)?"|(?:19|20)\d{6}T\d{6}Z?"|'
    rb"\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:|"
    rb"(?:%b)?(?:\d{1,2}[ -]%b|%b\.? +\d{1,2}),?[ -]+\d[\d:,+ -]*"  # of a mail: RFC 5322
    rb'(?:[AP]M)?(?: ?\(?[A-Z]{1,4}\)?)?"|\d{1,2}[/.]\d{1,2}[/.](?:19|20)\d\d[^"a-z]{0,14}")'
    % (_DAY, _MONTH, _MONTH)
)
BY_DAY = re.compile(rb'"(?:\d{1,2}[/. -]|[A-Z])')
"""A time that begins with its day or month, and so does not sort as a text."""
EPOCH = re.compile(rb'"?\d{9}')  # seconds since 1970, or smaller units
WITH_DIGIT = re.compile(rb"[^0-9]*[0-9]")
NO_LETTERS = re.compile(rb'\[*"[^A-Za-z\x80-\xff]*"')
LINK = re.compile(rb'\[*"(?:https?|wss?):')
OPAQUE = re.compile(
    rb'\[*"(?=[\w+/=-]{12,}")(?=[^"]*\d)'  # most values fail at once
    rb'(?:[^" ]*[0-9a-f]{32}[^" ]*|(?:[a-z]{1,5}[-_])?[0-9a-f-]{12,}|[0-9A-F-]{12,}|'
    rb'(?=[^"]*[A-Z])(?=[^"]*[a-z])(?:[a-z]{2,5}_[A-Za-z0-9]{14,}|[A-Za-z0-9+/=_]{20,}))"|'
    rb'\[*"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}"'  # an address of hardware
)
NO_NAME = re.compile(rb'"@?\.?[\w-]*+\[\d+\]|"\s*(?:\{|\[\{)\\"|"\{\}"')
"""The place of a node in a tree, or JSON in a text."""
WITH_KIND = re.compile(rb'"[a-z]{2,5}_[A-Za-z0-9]+"')
"""An id that says of what it is: `pi_3Mtw…`."""
NUMBERED = re.compile(rb'"[A-Z]{0,6}[-/]?[0-9][0-9A-Z-]{2,}"')
"""An id by its form alone: `4500017003`, `INV-2026-118`."""
WITH_HASH = re.compile(rb'\[*"[^"]*?(?:[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{24})')
_WITH_NUMBER = re.compile(  # of an id the whole, of a name with a number the number
    rb"(?<![A-Za-z0-9\x80-\xff])"  # a word is looked at once
    rb"[A-Za-z0-9\x80-\xff]*[0-9][A-Za-z\x80-\xff][A-Za-z0-9\x80-\xff]*|[A-Z]{1,3}[0-9]{4,}|[0-9]+"
)
_IN_ID = re.compile(rb"[0-9][A-Za-z\x80-\xff]|[A-Z][0-9]{4}")


def without_numbers(text: bytes) -> bytes:
    """Return texts without what only counts them, and so does not name them.

    >>> without_numbers(b"Fix 12 in v2, a4f9b2e")
    b'Fix  in v, '
    """
    if _IN_ID.search(text) is None:
        return text.translate(None, b"0123456789")
    return _WITH_NUMBER.sub(b"", text)
