"""Shows a long text by its beginning and its end, or its headings, and describes what is between.

Invariant: the characters shown, plus those that the note counts as left out, are the whole.
"""

from mcp_abridge.document.escapes import without_escapes
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.measure import chars_that_fit, encoded_size, ending
from mcp_abridge.query.call import Call
from mcp_abridge.query.headings import MOST, Heading, amount, any_heading, headings
from mcp_abridge.summary.cuts import MARK, WINDOW, both_ends, calls_for_more
from mcp_abridge.summary.highlights import Highlights, highlights

_FEWEST = 3  # headings of a text that has an outline
_SCANNED = 256 << 10  # characters that are searched for headings
_BEGINNING = 64 << 10  # characters of which some are a heading, if the text has an outline
_LEAST = 400  # bytes for an outline; with less, the end of the text is shown
_PLAIN = "escape codes are not shown"
_MORE = " more headings\n"  # the end of an outline that leaves some out


def excerpt(
    text: str,
    room: int,
    notes: int,
    call: Call,
    bound: int = 0,
    place: str = "text",
    rows: str = "",
) -> tuple[str, dict[str, str]]:
    """Return `text` cut to `room` bytes as JSON, and the note on it in `notes` bytes.

    Views of it, which is at `place`, may take `bound` bytes. 60 of 100 bytes are for the beginning,
    the others for the headings, if it has any and is no error, else for the end. Between the two
    stand the first lines left out that stand out. Escape codes of terminals are not shown. Each of
    the `rows` that views read in it begins with this name.
    """
    plain, offset = without_escapes(text)
    room = max(room - len(f'"{MARK}\n{MARK}"'.encode()), 0)
    if len(plain) <= room and encoded_size(plain) <= room:
        return plain, {"text": f"first {len(text)} of {len(text)} chars; {_PLAIN}"}
    head, tail = both_ends(plain, room)
    every = [] if call.error or room * 2 // 5 < _LEAST else _headings(plain)
    between = _outline(plain, every, head, room * 2 // 5)
    lines, line_ends = Highlights(), plain.count("\n")
    if between:
        size = encoded_size(between)
        head, tail = ending(plain, chars_that_fit(plain, room - size)), len(plain)
        between = _outline(plain, every, head, size)  # of which some are shown now
    else:
        lines = highlights(plain, line_ends)
        some = lines.between(head, tail)
        width = some.width(room // 2)
        if room >= _LEAST and (between := some.quoted(plain, MARK, room // 2, width)):
            quotes = encoded_size(between)
            head, tail = both_ends(plain, room - quotes)
            between = lines.between(head, tail).quoted(plain, MARK, quotes, width)
    lines = lines.between(head, tail)
    start, stop = offset(head), offset(tail)
    # As much as a view may show, its notice included.
    window = text[start : start + max(max(bound, room + notes) - WINDOW, WINDOW)]
    end = min(start + ending(window, chars_that_fit(window, len(window) - 1)), stop)
    last = f" and last {len(text) - stop}" if stop < len(text) else ""
    facts = [f"first {start}{last} of {len(text)} chars"]
    facts += _lines_between(plain, head, tail, line_ends)
    facts += [*lines.facts, *[_PLAIN] * (plain is not text)]
    following, *others = calls_for_more(call, f"{place}[{start}:{end}]")
    if between.endswith(_MORE) and place == "text":
        # A view reads escape codes, too, and what is too far behind to be searched here.
        exact = plain is text and _searched_whole(text, every)
        what = amount(text, every) if exact else "headings"
        others.insert(0, f"{call.question('outline()')} lists {what}")
    ways = [following, *lines.way(call, plain, rows), *others] if call.viewable else []
    middle = f"{MARK}\n{between}{MARK * (tail < len(plain))}" if between else MARK
    return plain[:head] + middle + plain[tail:], _fitting(facts, ways, notes)


def _lines_between(text: str, head: int, tail: int, line_ends: int) -> list[str]:
    """Return the fact which lines are left out, if more than one; `line_ends`: of the text."""
    first = text.count("\n", 0, head) + 1
    last = line_ends + 1 - text.count("\n", max(tail - 1, head))
    if first == last:
        return []
    at_ends = text[head - 1 : head] in ("", "\n") and text[tail : tail + 1] in ("", "\n")
    return [f"{'' if at_ends else 'parts of '}lines {first} to {last} are left out"]


def _headings(text: str) -> list[Heading]:
    """Return the headings of a text that has an outline."""
    if not any_heading(text[:_BEGINNING], Fuel()):
        return []
    every = headings(text[:_SCANNED], Fuel())
    if len(text) > _SCANNED:
        del every[-1:]  # its part may be cut
    return every if len(every) >= _FEWEST else []


def _searched_whole(text: str, every: list[Heading]) -> bool:
    """Return True if `every` heading that was found is every heading of a text."""
    return len(every) < MOST and len(text) <= _SCANNED


def _outline(text: str, every: list[Heading], start: int, room: int) -> str:
    """Return the headings after `start` that fit, and how many more there are.

    Those are of two levels, or more if these have hardly any. If they do not fit, they are of the
    upper one; if those do not either, some from the first to the last one are shown.
    """
    levels = sorted(heading.level for heading in every)
    lowest = max([*dict.fromkeys(levels)][:2] + levels[_FEWEST - 1 : _FEWEST], default=0)
    by_line = 2 * len({heading.line for heading in every}) > len(every)  # else it is minified
    least = "at least " * (not _searched_whole(text, every))
    every = [heading for heading in every if heading.offset >= start]

    def in_lines(some: list[Heading]) -> str:
        places = (f"line {each.line}" if by_line else f"char {each.offset}" for each in some)
        lines = [f"{place}: {each.text}\n" for place, each in zip(places, some, strict=True)]
        others = len(every) - len(some)
        return "".join(lines) + (f"and {least}{others}{_MORE}" if others or least else "")

    choice = list[Heading]()
    for level in sorted({heading.level for heading in every if heading.level <= lowest}):
        some = [heading for heading in every if heading.level <= level]
        if (size := encoded_size(in_lines(some))) <= room:
            choice = some
        elif len(choice) < _FEWEST:
            steps = range(max(size // room, 2), len(some) + 1)
            spread = (some[:-1:step] + some[-1:] for step in steps)
            fitting = (each for each in spread if encoded_size(in_lines(each)) <= room)
            choice = next(fitting, choice)
    return in_lines(choice) if every else ""


def _fitting(facts: list[str], ways: list[str], room: int) -> dict[str, str]:
    """Return a note with as many of the facts and ways as fit in `room`, but the first of each."""
    note = {"text": facts[0]} | ({"more": ways[0]} if ways else {})
    first, rest = [("text", each) for each in facts[1:]], [("more", each) for each in ways[1:]]
    # If there is something to see, how to see it says more than the other places.
    for name, sentence in (*first[:2], *rest[:1], *first[2:], *rest[1:]):
        longer = {**note, name: f"{note[name]}; {sentence}"}
        if encoded_size(longer) <= room:
            note = longer
    return note
