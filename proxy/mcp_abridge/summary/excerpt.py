"""Shows a long text by its beginning and its end, or its headings, and describes what is between.

Invariant: the characters shown, plus those that the note counts as left out, are the whole.
"""

from functools import cached_property

from msgspec import Struct

from mcp_abridge.document.escapes import without_escapes
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.measure import chars_that_fit, encoded_size, ending
from mcp_abridge.query.call import Call
from mcp_abridge.query.headings import MOST, Heading, amount, any_heading, headings, heads_of_blocks
from mcp_abridge.summary.cuts import MARK, WINDOW, both_ends, calls_for_more
from mcp_abridge.summary.examples import Example
from mcp_abridge.summary.highlights import Highlights, highlights

_FEWEST = 3  # headings of a text that has an outline
_SCANNED = 256 << 10  # characters that are searched for headings
_BEGINNING = 64 << 10  # characters of which some are a heading, if the text has an outline
_LEAST = 400  # bytes for an outline; with less, the end of the text is shown
_PLAIN = "escape codes are not shown"
_MORE = " more headings\n"  # the end of an outline that leaves some out


class Excerpt(Struct, frozen=True):
    """A text cut to its first `start` characters and those from `stop` on, of `total`.

    Between them stand the headings, or the first lines left out that stand out. `facts` say what is
    left out, `offers` are views of it; the next part of the text ends at `end`.
    """

    text: str
    start: int
    stop: int
    total: int
    end: int
    facts: tuple[str, ...]
    offers: tuple[Example, ...] = ()

    def note(self, call: Call, place: str, room: int) -> dict[str, str]:
        """Return the note on a text that is a document of its own, in `room` bytes."""
        last = f" and last {self.total - self.stop}" if self.stop < self.total else ""
        facts = [f"first {self.start}{last} of {self.total} chars", *self.facts]
        if self.start == self.total or not call.viewable:
            return _fitting(facts, [], room)
        following, *others = calls_for_more(call, f"{place}[{self.start}:{self.end}]")
        offers = (f"{call.question(view)} {effect}" for view, effect in self.offers)
        return _fitting(facts, [following, *offers, *others], room)


class TextParts:
    """The headings and the lines that stand out of a text, found once, whatever the room for it.

    Escape codes of terminals are not shown. With `outline`, headings are looked for.
    """

    def __init__(self, text: str, *, outline: bool = True) -> None:
        self._text = text
        self._plain, self._offset = without_escapes(text)
        self._line_ends = self._plain.count("\n")
        self._with_outline = outline

    @cached_property
    def _headings(self) -> list[Heading]:
        """The headings of a text that has an outline."""
        plain = self._plain
        if not self._with_outline or not any_heading(plain[:_BEGINNING], Fuel()):
            return []
        every = headings(plain[:_SCANNED], Fuel(), of_blocks=False)
        # Of what has failed, the lines that say so tell more than the heads of blocks.
        if len(every) < _FEWEST and not self._highlights.failures:
            every = heads_of_blocks(plain[:_SCANNED], Fuel())
        if len(plain) > _SCANNED:
            del every[-1:]  # its part may be cut
        return every if len(every) >= _FEWEST else []

    @cached_property
    def _highlights(self) -> Highlights:
        return highlights(self._plain, self._line_ends)

    def excerpt(self, room: int, notes: int, bound: int, place: str, rows: str = "") -> Excerpt:
        """Return the text cut to `room` bytes as JSON, if there are `notes` bytes for a note on it.

        Views of it, which is at `place`, may take `bound` bytes. 60 of 100 bytes are for the
        beginning, the others for the headings, if it has any, else for the end. Each of the `rows`
        that views read in it begins with this name.
        """
        plain, total = self._plain, len(self._text)
        room = max(room - len(f'"{MARK}\n{MARK}"'.encode()), 0)
        if len(plain) <= room and encoded_size(plain) <= room:
            return Excerpt(plain, total, total, total, total, (_PLAIN,))
        head, tail = both_ends(plain, room)
        every = [] if room * 2 // 5 < _LEAST else self._headings
        between = _outline(plain, every, head, room * 2 // 5)
        lines = Highlights()
        if between:
            size = encoded_size(between)
            head, tail = ending(plain, chars_that_fit(plain, room - size)), len(plain)
            between = _outline(plain, every, head, size)  # of which some are shown now
        else:
            lines = self._highlights
            some = lines.between(head, tail)
            width = some.width(room // 2)
            if room >= _LEAST and (between := some.quoted(plain, MARK, room // 2, width)):
                quotes = encoded_size(between)
                head, tail = both_ends(plain, room - quotes)
                between = lines.between(head, tail).quoted(plain, MARK, quotes, width)
        lines = lines.between(head, tail)
        start, stop = self._offset(head), self._offset(tail)
        # As much as a view may show, its notice included.
        window = self._text[start : start + max(max(bound, room + notes) - WINDOW, WINDOW)]
        end = min(start + ending(window, chars_that_fit(window, len(window) - 1)), stop)
        exact = plain is self._text
        facts = _lines_between(plain, head, tail, self._line_ends)
        facts += [*lines.facts, *[_PLAIN] * (not exact)]
        offers = [*lines.way(plain, rows)]
        if between.endswith(_MORE) and place != "":
            # A view reads escape codes, too, and what is too far behind to be searched here.
            exact = exact and _searched_whole(plain, every)
            what = amount(plain, every) if exact else "headings"
            offers.append(("outline()", f"lists {what}"))
        if place not in ("", "text"):
            offers = [(_at(place, view), effect) for view, effect in offers]
        middle = f"{MARK}\n{between}{MARK * (tail < len(plain))}" if between else MARK
        text = plain[:head] + middle + plain[tail:]
        return Excerpt(text, start, stop, total, end, tuple(facts), tuple(offers))


def _at(place: str, view: str) -> str:
    """Return a view of a text that is at a place in a document; `rows` are beside it.

    >>> _at("run.log", "lines(3, 9)"), _at("run.log", "rows[3]")
    ('run.log | lines(3, 9)', 'rows[3]')
    """
    return view if view.startswith("rows[") else f"{place} | {view}"


def _lines_between(text: str, head: int, tail: int, line_ends: int) -> list[str]:
    """Return the fact which lines are left out, if more than one; `line_ends`: of the text."""
    first = text.count("\n", 0, head) + 1
    last = line_ends + 1 - text.count("\n", max(tail - 1, head))
    if first == last:
        return []
    at_ends = text[head - 1 : head] in ("", "\n") and text[tail : tail + 1] in ("", "\n")
    return [f"{'' if at_ends else 'parts of '}lines {first} to {last} are left out"]


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
