"""Notes on structure that a text holds: without them, the server seems to have sent it so."""

from itertools import chain

from mcp_abridge.document.measure import chars_that_fit
from mcp_abridge.document.names import nameable, spelled
from mcp_abridge.document.own_names import listed
from mcp_abridge.document.tree import Value, opened
from mcp_abridge.query.call import Call
from mcp_abridge.summary.cuts import WINDOW

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


def rows_in_text(value: Value, form: str, call: Call) -> tuple[dict[str, str], str]:
    """Return the note on structure that views can read in a text that is shown as a text.

    If it is rows in blocks of fields, the first name of each is returned, too.
    """
    value = opened(value)
    if isinstance(value, list):
        first = (each for each in map(opened, value[:_ROWS]) if isinstance(each, dict))
        names = [*dict.fromkeys(chain.from_iterable(first))]
        some = f" of {_first_names([*map(listed, names)])}" * bool(names)
        rows = f"{len(value)} rows{some}"
        note = f"{rows}, read from {form}: {call.question('rows[0:20]')}"
        return {"rows": note}, names[0] if names and form == BLOCKS else ""
    names = [name for name in value if nameable(name) and name != "text"]
    example = f": {call.question(spelled(names[-1]))}" if names else ""
    some = f" of {_first_names([*map(listed, names)])}" * (len(names) > 1)
    return {"members": f"{len(value)}{some}, read from {form}{example}"}, ""


def _first_names(names: list[str]) -> str:
    return ", ".join(names[:_COLUMNS]) + ", …" * (len(names) > _COLUMNS)


def first_words(notes: dict[str, str]) -> dict[str, str]:
    """Return the notes on the origin without the view of the text."""
    return {name: note.partition(";")[0] for name, note in notes.items()}
