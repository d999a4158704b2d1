"""Finds the lines of a log that are unlike the others, whatever their language.

A line is rare if its form, without digits and hexadecimal letters, occurs once or twice. If names
vary too, it is rare if its words are as many as in hardly any other line, or if it differs from
lines of as many words if these are alike. Nothing is rare if nothing is regular. In blocks of the
same fields, as of `kubectl describe`, a line is rare if its field has another value in nearly all
blocks, or is in hardly any.

Invariant: all lines of the text have been read, or none are returned.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import compress, islice, zip_longest

HEX = b"0123456789abcdefABCDEF"
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
_BLOCKS = 8  # of the same fields, or more
_FIELDS = 4  # of all such blocks
_OF_BLOCKS = 4  # one of so many may have fields that the others do not have
_MANY = 3  # blocks in a beginning
_PART = 1 << 14  # characters in which line ends are counted, before one of them is searched

_Run = tuple[int, int]
"""The numbers of the first and the last of some lines in a row."""


def rare_lines(text: str, line_ends: int) -> Iterator[tuple[int, int, int]]:
    """Yield the places in `text` where a line, or some in a row, are rare: offset, first and last.

    The number of the first line is 1. `line_ends`: how many the text has.
    """
    if not _FEWEST <= line_ends <= _MOST_LINES:
        return
    places = _rare(text.encode(errors="replace"), line_ends)
    at = line = 0
    for place, last in places if len(places) <= _MOST else ():
        while (after := line + text.count("\n", at, at + _PART)) < place:
            at, line = at + _PART, after
        while line < place:
            at, line = text.index("\n", at) + 1, line + 1
        yield at, line + 1, last + 1


def _rare(content: bytes, line_ends: int) -> list[_Run]:
    """Return the first places of such lines; 0 is the first line."""
    in_blocks = _in_blocks(content)
    if in_blocks is not None and len(in_blocks) <= _MOST:
        return in_blocks
    if line_ends > _MOST_KINDS:
        beginning = content[: content.rfind(b"\n", 0, _BEGINNING)].translate(None, HEX)
        lines = beginning.split(b"\n")
        if 2 * len({*lines}) > len(lines):  # to read the words of all takes long
            forms = content.translate(None, _LOWER).split(b"\n")
            return _once_or_twice(forms, Counter(forms))[1]
    forms = content.translate(None, HEX).split(b"\n")
    counts = Counter(forms)
    rare, places = _once_or_twice(forms, counts)
    if not rare or 0 < len(places) <= _FEW or len(counts) > _MOST_KINDS:
        return places
    if len(places) > _MOST and line_ends > _MOST_KINDS:
        middle = content[len(content) // 2 :][:_MIDDLE]
        if _odd(middle, middle.translate(None, HEX).split(b"\n"), _HALF) is None:
            return places
    odd = _odd(content, forms)
    return places if odd is None else [*_places(rare & odd, forms)]


def _in_blocks(content: bytes) -> list[_Run] | None:
    """Return the places of such lines in blocks of the same fields; None in any other text."""
    if len(content) > 2 * _BEGINNING and not _fields(content[:_BEGINNING], _MANY)[2]:
        return None
    lines, names, fields = _fields(content, _BLOCKS)
    if not fields:
        return None
    groups = defaultdict[bytes, list[int]](list)
    others = defaultdict[tuple[int, int], list[int]](list)
    for number, name in enumerate(names):
        if name in fields:
            groups[name].append(number)
        elif name:
            line = lines[number]
            others[line.index(name), len(line.split())].append(number)
    few = max(_ONCE_OR_TWICE, min(map(len, groups.values())) // _OF_BLOCKS)
    rare = {each for group in others.values() if len(group) <= few for each in group}
    for group in groups.values():
        if len({*map(lines.__getitem__, group)}) > 1:
            rare |= _unusual(group, [lines[each].split(None, _WORDS) for each in group])
    return [*_runs(sorted(rare))]


def _unusual(numbers: list[int], rows: list[list[bytes]]) -> set[int]:
    """Return the numbers of rows with a word, or so many, that nearly no other has there."""
    rare = set[int]()
    for column in ([b"%d" % len(row) for row in rows], *zip_longest(*rows)):
        word, often = Counter(column).most_common(1)[0]
        if len(rows) * 4 <= often * 5 and len(rows) - often <= _ONCE_OR_TWICE:
            rare |= {numbers[at] for at, each in enumerate(column) if each != word}
    return rare


def _fields(content: bytes, fewest: int) -> tuple[list[bytes], list[bytes], set[bytes]]:
    """Return the lines, their first words, and those that all blocks have; none of other texts.

    A number is left out, but for zero.
    """
    for zero in (b" 0\n", b" 0 ", b" 0 "):
        content = content.replace(zero, zero.replace(b"0", b"-"))
    lines = content.translate(None, b"0123456789").split(b"\n")
    names = [line.partition(b" ")[0] for line in map(bytes.lstrip, lines)]
    counts = Counter(filter(None, names))
    most = Counter(count for count in counts.values() if count >= fewest)
    blocks = max(most, key=lambda count: count * most[count], default=0)
    regular = [count for count in counts.values() if blocks * 4 <= count * 5 <= blocks * 5]
    if len(regular) < _FIELDS or 2 * sum(regular) < counts.total():
        return lines, names, set()
    return lines, names, {name for name, count in counts.items() if 5 * count >= 4 * blocks}


def _once_or_twice(forms: list[bytes], counts: Counter[bytes]) -> tuple[set[bytes], list[_Run]]:
    """Return the forms of one line or two, and the first of their places if they are no half."""
    rare = {form for form, count in counts.items() if count <= _ONCE_OR_TWICE and form.strip()}
    lines = sum(map(counts.__getitem__, rare))
    return rare, [*islice(_places(rare, forms), _MOST + 1)] if 0 < 2 * lines <= len(forms) else []


def _places(rare: set[bytes], forms: list[bytes]) -> Iterator[_Run]:
    return _runs(compress(range(len(forms)), map(rare.__contains__, forms)))


def _runs(numbers: Iterable[int]) -> Iterator[_Run]:
    """Yield the first and the last of numbers that follow each other."""
    first = last = -2
    for number in numbers:
        if number > last + 1:
            if last >= 0:
                yield first, last
            first = number
        last = number
    if last >= 0:
        yield first, last


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
