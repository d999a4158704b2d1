"""The window of a text or an array that a view shows, and the view of the next window.

Without it, a model takes a window that ends before the document does for the end of the document,
and an empty window beyond the end for an empty document.
"""

import re
from collections.abc import Callable
from typing import Any

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.measure import chars_that_fit, ending
from mcp_abridge.document.tree import Document, Value, opened
from mcp_abridge.errors import OutOfFuel, Refusal
from mcp_abridge.query.hits import FIRST, Hits
from mcp_abridge.query.patterns import Expression, PatternError
from mcp_abridge.query.spellings import respelled
from mcp_abridge.query.view import look

_SLICE = re.compile(
    r"(.*)\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\](\s*\.\s*[{\[](?:[^][{}]|\[\d*\])*[]}])?", re.DOTALL
)  # and of each element some members
_LINES = re.compile(
    r"(.*\|\s*|\s*)(?:head\(|lines\(\s*`?(\d+)`?\s*,)\s*`?(\d+)`?\s*\)\s*", re.DOTALL
)
_PLACE = re.compile(r"""(?:[\w.]|"[^"]*"|\[\d+\])+""", re.ASCII)  # of one value
_LONGEST = 200  # characters of a view that is named


def following(
    document: Document,
    view: str,
    value: Value,
    name: str = "text",
    question: Callable[[str], str] = "view='{}'".format,
    room: int = 0,
    fuel: Fuel | None = None,
    whole: Value = None,
) -> str | None:
    """Return a sentence on what follows a window, or on all there is if the window is beyond it.

    None if `value`, the result of `view`, is no window of a text or an array, or reaches its end.
    `name` is another name of a document that is a text; `question` writes a view as the model does.
    Of a text that is read in windows of `room` bytes or nearly that, the next one ends at a line.
    `whole` is what the window is cut from, if that is known.
    Raises no OutOfFuel: without `fuel` for a look at the whole, nothing is said.

    >>> rows = Document.read(b'[{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": 5, "b": 6}]')
    >>> following(rows, "[0:2].{a, b}", [{}, {}])
    "view='[2:3].{a, b}' is next, 1 of 3 elements are left"
    """
    if isinstance(value, Hits):
        return _other_hits(value, respelled(view), question)
    lines = _LINES.fullmatch(respelled(view))
    part = lines or _SLICE.fullmatch(view) or _SLICE.fullmatch(respelled(view))
    if part is None:
        return None
    place = part[1].rstrip().removesuffix("|").strip()
    if lines or whole is None:
        if not lines and part[1].rstrip() == place and _is_of_each(place):
            return None
        whole = _whole(document, place, name, fuel)
    if not isinstance(whole, str | list) or type(value) is not type(whole):
        return None
    if lines:
        total, unit, form = _lines(whole), "lines", "lines({}, {})"
        start, stop, first = max(int(part[2] or 1), 1) - 1, int(part[3]), 1
    else:
        total, unit, form = len(whole), "chars", "[{}:{}]"
        limits = (int(each) if each else None for each in part.groups()[1:3])
        (start, stop, _), first = slice(*limits).indices(total), 0
        if len(value) != max(stop - start, 0):
            return None  # of each element a slice
    if start >= min(stop, total):
        return _described(whole)
    end = min(2 * stop - start, total)
    if isinstance(whole, str) and not lines and stop - start > room // 2 > 0:
        text = whole[stop : stop + room]
        end = stop + ending(text, chars_that_fit(text, room))
    members = "" if lines else part[4] or ""
    following_view = part[1] + form.format(stop + first, end) + members
    if stop >= total:  # of `place`, which may be a window itself
        return following(document, place, whole, name, question, room, fuel)
    if len(following_view) > _LONGEST:
        return None
    unit = unit if isinstance(whole, str) else "elements"
    return f"{question(following_view)} is next, {total - stop} of {total} {unit} are left"


def _is_of_each(place: str) -> bool:
    """Return True if what stands behind a view applies to each element of its result.

    >>> _is_of_each("items[*].body"), _is_of_each("items"), _is_of_each("items[*].body | [0]")
    (True, False, False)
    """
    try:
        tree: Any = Expression(place or "@").tree
    except PatternError:
        return False
    while tree["type"] == "pipe":
        tree = tree["children"][-1]
    return bool(tree["type"].endswith("projection"))


def _other_hits(hits: Hits, view: str, question: Callable[[str], str]) -> str | None:
    rest, following_view = hits.listed - FIRST, f"{view}.{hits.list_name}[{FIRST}:{2 * FIRST}]"
    if rest <= 0 or len(following_view) > _LONGEST:
        return None
    return f"{question(following_view)} is next, {rest} more are listed"


def _whole(document: Document, place: str, name: str, fuel: Fuel | None) -> Value:
    """Return the value that windows are cut from; None if `place` is no view, or takes too long."""
    try:
        return opened(look(document, place, name, fuel) if place else document.cell[0])
    except Refusal as error:
        if isinstance(error.__cause__, PatternError | OutOfFuel):
            return None
        raise


def _lines(whole: str | list[Value]) -> int:
    if isinstance(whole, list):
        return len(whole)
    return whole.count("\n") + (whole[-1:] not in ("", "\n"))


def _described(whole: str | list[Value]) -> str:
    if isinstance(whole, list):
        return f"the array has {len(whole)} elements"
    return f"the text has {len(whole)} characters, {_lines(whole)} lines"


def within(view: str, part: str) -> str:
    """Return the view of a part of the result of a view.

    >>> within("items[10:200]", "[3:13]"), within("items", "[3:13]"), within("@", "rows[3:13]")
    ('items[13:23]', 'items[3:13]', 'rows[3:13]')
    >>> within("items[*].id", "[3:13]")
    'items[*].id | [3:13]'
    """
    if view == "@":
        return part
    outer, inner = _SLICE.fullmatch(view), _SLICE.fullmatch(part)
    if inner and not inner[1] and _PLACE.fullmatch(view):
        return view + part
    plain = outer and inner and not (inner[1] or inner[4] or outer[4] or "-" in outer[2])
    if outer and inner and plain and _PLACE.fullmatch(outer[1]):
        first = int(outer[2] or 0)
        return f"{outer[1]}[{first + int(inner[2])}:{first + int(inner[3])}]"
    return f"{view} | {part}"
