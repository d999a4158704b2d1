"""Notes on structure that a text holds: without them, the server seems to have sent it so."""

from itertools import chain

from msgspec import Struct

from mcp_abridge.document.measure import TextFrame, chars_that_fit, encoded_size
from mcp_abridge.document.names import nameable, spelled
from mcp_abridge.document.own_names import listed
from mcp_abridge.document.tree import Value, opened, raw
from mcp_abridge.query.call import Call
from mcp_abridge.summary.brief import examples_of
from mcp_abridge.summary.cuts import WINDOW
from mcp_abridge.summary.examples import COUNTS, FILTERS, GREATEST, LATEST, SUM

BLOCKS = "blocks of fields"
"""The form of rows that begin with the same name each, as in a text that describes several."""

_BEGINNING = 2000  # characters of a text that a view shows
_COLUMNS = 6  # names of columns or members that a note lists
_ROWS = 20  # of which they are read, as many as the view shows


def beginning_of(text: str, bound: int) -> int:
    """Return the number of characters at the beginning of a text that a view of `bound` bytes has.

    >>> beginning_of("a" * 5000, 4000), beginning_of("é" * 5000, 1000)
    (2000, 425)
    """
    return chars_that_fit(text[:_BEGINNING], max(bound - WINDOW, WINDOW))


def origin(form: str, place: str, count: int, call: Call) -> dict[str, str]:
    """Return the note that structure was read from a text; none on JSON, which looks alike.

    `count` characters of the text, which is at `place` in views, are offered.
    """
    if form in ("", "JSON"):
        return {}
    hint = f"; {call.question(f'{place}[0:{count}]')} shows it" if call.viewable else ""
    return {"read_from": f"{form}{hint}"}


class InText(Struct, frozen=True):
    """Structure that views read in a text that is shown as a text, which nobody would guess.

    `note` says of it what views it has. If it is an array, `rows` are its elements; if each of
    these is a block of fields, `begins` is the first name of each.
    """

    note: dict[str, str] = {}
    begins: str = ""
    rows: list[Value] = []

    def with_examples(self, call: Call, room: int) -> dict[str, str]:
        """Return the note, and in `room` bytes more views: of a filter, a count, the last, ..."""
        note = self.note
        offers = examples_of([*map(raw, self.rows)], "rows", inside=True)[1] if self.rows else ()
        first = {effect.partition(",")[0]: (view, effect) for view, effect in reversed(offers)}
        most = encoded_size(note) + room
        for kind in (FILTERS, COUNTS, GREATEST, SUM, LATEST):
            if kind in first:
                view, effect = first[kind]
                longer = f"{note['rows']}; {call.question(view)} {effect}"
                note = {"rows": longer} if encoded_size({"rows": longer}) <= most else note
        return note


def in_text(value: Value, frame: TextFrame, call: Call) -> InText:
    """Return the structure that views can read in a text of some form that is shown as a text."""
    value, form = opened(value), frame.form
    if isinstance(value, list):
        first = (each for each in map(opened, value[:_ROWS]) if isinstance(each, dict))
        names = [*dict.fromkeys(chain.from_iterable(first))]
        some = f" of {_first_names([*map(listed, names)])}" * bool(names)
        rows = f"{'' if frame.sample else f'{len(value)} '}rows{some}"
        note = f"{rows}, read from {form}: {call.question('rows[0:20]')}"
        return InText({"rows": note}, names[0] if names and form == BLOCKS else "", value)
    names = [name for name in value if nameable(name) and name != "text"]
    example = f": {call.question(spelled(names[-1]))}" if names else ""
    some = f" of {_first_names([*map(listed, names)])}" * (len(names) > 1)
    return InText({"members": f"{len(value)}{some}, read from {form}{example}"})


def _first_names(names: list[str]) -> str:
    return ", ".join(names[:_COLUMNS]) + ", …" * (len(names) > _COLUMNS)


def first_words(notes: dict[str, str]) -> dict[str, str]:
    """Return the notes on the origin without the view of the text."""
    return {name: note.partition(";")[0] for name, note in notes.items()}
