"""Finds the lines of a log that are unlike the others, whatever their language.

A line is rare if its form, without digits and hexadecimal letters, occurs once or twice. If names
vary too, it is rare if its words are as many as in hardly any other line, or if it differs from
lines of as many words if these are alike. Nothing is rare if nothing is regular.

Invariant: all lines of the text have been read, or none are returned.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import compress, islice

_HEX = b"0123456789abcdefABCDEF"
_LOWER = b"0123456789abcdefghijklmnopqrstuvwxyz"
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_MOST_LINES = 200_000
_MOST_KINDS = 2000
_BEGINNING = 1 << 14  # bytes that show whether forms are many; in more of them, names recur
_MIDDLE = 1 << 15  # bytes that show that a text has no regular lines
_NEARLY_ALL, _HALF = 9, 5  # of ten lines
_FEWEST = 20  # lines of a log
_ONCE_OR_TWICE = 2
_WORDS = 10  # of a line that are compared, with the rest as one more
_ALIKE = 10  # lines of as many words that can be regular
_OFTEN = 30  # a word is regular that one line of so many has, or more
_OTHER = 50  # one line of so many may differ from regular ones
_FEW = 5  # places that are so, without a look at their words
_MOST = 20  # places with rare lines; where there are more, they are not rare
_PART = 1 << 14  # characters in which line ends are counted, before one of them is searched


def rare_lines(text: str, line_ends: int) -> Iterator[tuple[int, int]]:
    """Yield each place in `text` where a line, or some in a row, are rare: its offset and number.

    The first line is 1. `line_ends`: how many the text has.
    """
    if not _FEWEST <= line_ends <= _MOST_LINES:
        return
    places = _rare(text.encode(errors="replace"), line_ends)
    at = line = 0
    for place in places if len(places) <= _MOST else ():
        while (after := line + text.count("\n", at, at + _PART)) < place:
            at, line = at + _PART, after
        while line < place:
            at, line = text.index("\n", at) + 1, line + 1
        yield at, line + 1


def _rare(content: bytes, line_ends: int) -> list[int]:
    """Return the first numbers of such lines, of the first of some in a row; 0 is the first."""
    if line_ends > _MOST_KINDS:
        beginning = content[: content.rfind(b"\n", 0, _BEGINNING)].translate(None, _HEX)
        lines = beginning.split(b"\n")
        if 2 * len({*lines}) > len(lines):  # to read the words of all takes long
            forms = content.translate(None, _LOWER).split(b"\n")
            return _once_or_twice(forms, Counter(forms))[1]
    forms = content.translate(None, _HEX).split(b"\n")
    counts = Counter(forms)
    rare, places = _once_or_twice(forms, counts)
    if not rare or 0 < len(places) <= _FEW or len(counts) > _MOST_KINDS:
        return places
    if len(places) > _MOST and line_ends > _MOST_KINDS:
        middle = content[len(content) // 2 :][:_MIDDLE]
        if _odd(middle, middle.translate(None, _HEX).split(b"\n"), _HALF) is None:
            return places
    odd = _odd(content, forms)
    return places if odd is None else [*_places(rare & odd, forms)]


def _once_or_twice(forms: list[bytes], counts: Counter[bytes]) -> tuple[set[bytes], list[int]]:
    """Return the forms of one line or two, and the first of their places if they are no half."""
    rare = {form for form, count in counts.items() if count <= _ONCE_OR_TWICE and form.strip()}
    lines = sum(map(counts.__getitem__, rare))
    return rare, [*islice(_places(rare, forms), _MOST + 1)] if 0 < 2 * lines <= len(forms) else []


def _places(rare: set[bytes], forms: list[bytes]) -> Iterator[int]:
    """Yield the number of the first of each run of lines."""
    before = -2
    for number in compress(range(len(forms)), map(rare.__contains__, forms)):
        if number > before + 1:
            yield number
        before = number


def _odd(content: bytes, forms: list[bytes], tenths: int = _NEARLY_ALL) -> set[bytes] | None:
    """Return the forms of lines that are unlike others; None if fewer of ten are regular."""
    numbers = dict(zip(forms, range(len(forms)), strict=True))  # the last line of each
    unlike = _unlike(content.translate(_DIGITS).split(b"\n"), [*numbers.values()], tenths)
    return None if unlike is None else {forms[number] for number in unlike}


def _unlike(lines: list[bytes], numbers: list[int], tenths: int) -> set[int] | None:
    """Return those of `numbers` whose line differs in a word or in how many, as few may."""
    groups = defaultdict[int, list[tuple[int, list[bytes]]]](list)
    for number in numbers:
        words = lines[number].split(None, _WORDS)
        groups[len(words)].append((number, words))
    unlike, regular = set[int](), 0
    for group in groups.values():
        if len(group) <= _ONCE_OR_TWICE:
            unlike |= {number for number, _ in group}
        elif len(group) >= _ALIKE:
            rows = _deviating([words for _, words in group])
            if rows is not None:
                regular += len(group)
                unlike |= {group[row][0] for row in rows}
    return unlike if regular * 10 >= len(numbers) * tenths else None


def _deviating(rows: list[list[bytes]]) -> set[int] | None:
    """Return the rows with a rare word if the others have regular ones; None if none have."""
    others: set[int] | None = None
    most = _OFTEN + len(rows) // 10  # different words of a regular column
    for column in zip(*rows, strict=True):
        if len({*column[: 2 * most]}) > most:
            continue
        counts = Counter(column)
        often = sum(count for count in counts.values() if count * _OFTEN >= len(rows))
        if often * 10 < len(rows) * 9:
            continue
        rare = {word for word, count in counts.items() if count <= _ONCE_OR_TWICE}
        if len(rare) <= max(_ONCE_OR_TWICE, len(rows) // _OTHER):
            others = set() if others is None else others
            if rare:
                others |= {at for at, word in enumerate(column) if word in rare}
    return others
