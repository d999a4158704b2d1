"""The kinds of values; numbers, amounts, versions and times that texts spell, and their order.

Without it, of the texts "9" and "10" the greatest is 9, and N/A hides the sum of a column.
"""

import re
from collections.abc import Sequence
from typing import Any

Number = int | float

_KINDS = {str: "text", bool: "boolean", list: "array", dict: "object", type(None): "null"}
_NUMBER = re.compile(
    r"-?(?:\d{1,40}|\d{1,3}(?:,\d{3}){1,12})(\.\d{1,40})?([eE][-+]?\d{1,3})?", re.ASCII
)
_DECIMAL_COMMA = re.compile(r"-?\d+(?:\.\d{3})*,(?:\d{1,2}|\d{4,})", re.ASCII)
_MISSING = frozenset(
    ("", "-", "--", "\u2013", "\u2014", "?", ".", "n/a", "na", "nan", "null", "none")
)
_LONGEST_MARK = 8  # characters; longer ones need no look
_SHEET_ERROR = re.compile(r"#[A-Z]+(?:/[A-Z0])?[!?]?")  # of a cell: #REF!, #N/A
_AMOUNT = re.compile(r"(?:[A-Z]{3}|[^\w\s])?\s?[-+]?\d+(?:[.,' \u00a0]\d+)*\s?(?:%|[A-Za-z]{1,3})?")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:y|w|d|h|m|s|ms|us|µs|ns)){2,}")  # 5d3h, 1m30.5s
_LEVEL = re.compile(
    "lowest|low|minor|trivial|moderate|medium|normal|major|high|highest|severe|critical|blocker"
    "|urgent|trace|debug|info|informational|notice|warn|warning|error|fatal|small|large"
)
_TIME = re.compile(r"\d{4}-?\d\d-?\d\d([T ])(\d\d:?\d\d)[\d:.,]* ?(Z|UTC|[-+]\d\d(?::?\d\d)?|)")
_DAY = re.compile(r"(?:19|20)\d\d-\d\d\b")
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_BY_DAY = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
    r"(?:\d\d?/\d\d?/\d\d|\d\d?[.-]\d\d?[.-](?:19|20)\d\d\b"
    rf"|\d\d?[. /-]+{_MONTH}\b|{_MONTH}\.? +\d)"
    r"|[\dT :/.,-]*:\d\d(?: ?[AP]\.?M\.?\Z| ?[ap]\.?m\.?\Z)"
)
_CLOCK = re.compile(r"(\d+)((?::\d\d){1,2})(?:[.,]\d+)?")
_DIGITS = re.compile(r"\d{1,18}")
_VERSION = re.compile(r"\d\.\d")


def kind(value: Any) -> str:
    """Return the word for the kind of a value: `number`, `text`, `array` ..."""
    return kind_of_type(type(value))


def kind_of_type(type_: type) -> str:
    """Return the word for the kind of the values of a type."""
    return _KINDS.get(type_, "number")


def a_kind(value: Any) -> str:
    """Return the word for the kind of a value, with its article: `an array`."""
    return with_article(kind(value))


def with_article(word: str) -> str:
    """Return the word for a kind with its article."""
    return f"an {word}" if word[0] in "ao" else f"a {word}"


def number(value: Any) -> Number | None:
    """Return the number that a value is, or that a text spells; None if it is none.

    Commas may stand before each three digits.

    >>> number("010.50"), number("-3"), number(7), number("3 kB"), number(True)
    (10.5, -3, 7, None, None)
    >>> number("15,747.21"), number("1,5"), number("1.234,5")
    (15747.21, None, None)
    """
    if not isinstance(value, str):
        return value if kind(value) == "number" else None
    match = _NUMBER.fullmatch(value)
    if match is None:
        return None
    digits = value.replace(",", "")
    return float(digits) if match[1] or match[2] else int(digits)


def has_decimal_comma(value: Any) -> bool:
    """Return True for a text whose comma stands before decimals: `2,250` beside it is no 2250.

    >>> [*map(has_decimal_comma, ("1,5", "-1.234,50", "2,250", "15,747.21", "a, b", 1))]
    [True, True, False, False, False, False]
    """
    return isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value) is not None


def is_missing(value: Any) -> bool:
    """Return True for a text that stands in place of a number: N/A, a dash, nothing.

    >>> [*map(is_missing, ("N/A", "-", "", "none", "#REF!", "0", "a", 0))]
    [True, True, True, True, True, False, False, False]
    """
    if not isinstance(value, str):
        return False
    return value.strip().lower() in _MISSING or _SHEET_ERROR.fullmatch(value) is not None


def stands_for_none(text: str, other: str) -> bool:
    """Return True if a text is empty, or says that there is none, and another one is a number.

    So it may be a time, or a version.

    >>> [stands_for_none(*each) for each in (("", "2026-11-17"), ("-", "v1"), ("0", "1"))]
    [True, False, False]
    """
    begins_so = len(text) <= _LONGEST_MARK and other.lstrip("+-.")[:1].isdigit()
    return begins_so and is_missing(text)


def are_days(texts: Sequence[str]) -> bool:
    """Return True if most texts begin with a year and a month, as times that sort as texts do.

    >>> are_days(["2026-11-17T00:00:00Z", "N/A", "2024-03"]), are_days(["a", "2026-11-17"])
    (True, False)
    """
    return 2 * sum(_DAY.match(each) is not None for each in texts) > len(texts)


def is_amount(text: str) -> bool:
    """Return True for a text of a number that is not in the order of its letters: 9 kB, $10, 1,5.

    >>> [*map(is_amount, ("$9.99", "12%", "1.234,56", "10 kB", "2026-01-02", "09:30", "v2", "a"))]
    [True, True, True, True, False, False, False, False]
    """
    return _AMOUNT.fullmatch(text) is not None


def are_odd_times(texts: Sequence[str]) -> bool:
    """Return True of times that are not in the order of their letters.

    They begin with the day or the month, have AM or PM, or are of several zones or forms.

    >>> are_odd_times(["2026-11-02T10:00:00Z", "2026-11-02T10:00:00+02:00"])
    True
    >>> are_odd_times(["2026-11-02T10:00", "2026-11-02 11:00"])
    True
    >>> [are_odd_times([each]) for each in ("Mon, 2 Nov 2026", "11/2/26", "May 3", "2026-11-02")]
    [True, True, True, False]
    >>> are_odd_times(["02.11.2026"]), are_odd_times(["09:30 PM"]), are_odd_times(["9:30", "10:00"])
    (True, True, True)
    >>> are_odd_times(["9:59", "1:02:03"]), are_odd_times(["09:30", "10:00"])
    (True, False)
    """
    by_day = sum(_BY_DAY.match(each) is not None for each in texts)
    forms = {(each[1], ":" in each[2], each[3]) for each in map(_TIME.fullmatch, texts) if each}
    clocks = {(len(each[1]), len(each[2])) for each in map(_CLOCK.fullmatch, texts) if each}
    return 2 * by_day > len(texts) or len(forms) > 1 or len(clocks) > 1


def odd_order(texts: Sequence[str]) -> str | None:
    """Return the word for texts that are not in the order of their letters; None if they are.

    >>> odd_order(["v1.9.0", "v1.13.0", "v1.2.0"]), odd_order(["10 kB"]), odd_order(["May 3"])
    ('versions', 'numbers', 'times')
    >>> odd_order(["5d3h", "36h"]), odd_order(["low", "High"]), odd_order(["low", "Ann"])
    ('numbers', 'levels', None)
    >>> odd_order(["a9", "b10", "2026-01-02"])
    """
    if any(is_amount(each) or _DURATION.fullmatch(each) for each in texts):
        return "numbers"
    words = {each.lower() for each in texts}
    if len(words) > 1 and all(map(_LEVEL.fullmatch, words)):
        return "levels"
    if are_odd_times(texts):
        return "times"
    forms = {_DIGITS.sub("0", each) for each in texts}
    if len(forms) == 1 and _VERSION.search(texts[0]):
        parts = sorted([*map(int, _DIGITS.findall(each))] for each in texts)
        if parts != [[*map(int, _DIGITS.findall(each))] for each in sorted(texts)]:
            return "versions"
    return None


def numbers(values: list[Any], *, of_texts: bool) -> list[Number | None]:
    """Return the numbers that values are, null for others; `of_texts`: or that texts spell.

    >>> numbers(["7", "1,234"], of_texts=True), numbers(["7", "1,234", "1,5"], of_texts=True)
    ([7, 1234], [7, None, None])
    """
    types = {*map(type, values)} - {type(None)}
    if all(kind_of_type(type_) == "number" for type_ in types):
        return values
    spelled = _NUMBER.fullmatch if of_texts else lambda _: None
    some = [
        number(value) if not isinstance(value, str) or spelled(value) else None for value in values
    ]
    if of_texts and any(map(has_decimal_comma, values)):
        pairs = zip(values, some, strict=True)
        return [None if isinstance(value, str) and "," in value else n for value, n in pairs]
    return some
