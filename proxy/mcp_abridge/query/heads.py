"""Heads of tables: whether a first row names the columns of those below it.

Without them the first record of a table would be taken for its head, or the head for a record.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain


def is_head(cells: Sequence[str]) -> bool:
    """Return True if each cell could name its column, and no other one; not all are years.

    >>> is_head(["coin", "price", "24h %"]), is_head(["a", "2026-11-30"]), is_head(["%", "#"])
    (True, False, False)
    """
    names = {cell for cell in cells if re.fullmatch(_COLUMN, cell)}
    years = {cell for cell in cells if _YEAR.fullmatch(cell)} if names else names
    odd = {cell for cell in cells if re.fullmatch(_ODD, cell) and form_of([cell]) == "word"}
    return len(cells) > 1 and bool(names) and len(names | years | odd) == len(cells)


_CHARACTER = r"[\w./()%#:'&-]| (?! )"
_COLUMN = (
    rf"#?[^\W\d](?:{_CHARACTER}){{0,59}}(?<! )"
    rf"|(?=[^,?]*[,?])[^\W\d](?:{_CHARACTER}|[,?]){{0,199}}(?<! )"
)
"""A name, or a question of a form: only a cell in quotes has a separator."""
_ODD = rf"[%#]|(?=.*[^\W\d_])[\d%#$€](?:{_CHARACTER}){{0,59}}(?<! )"  # as in `24h`, `% change`
_YEAR = re.compile(r"(?:19|20)\d\d(?:[-/.](?:0?[1-9]|1[0-2]|Q[1-4]))?")  # or a month, or a quarter


def names_columns(head: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Return True if a first row is clearly a head: it is unlike what is below it.

    Of numbers, dates, hashes, paths or sentences below a name, either is enough; or no cell of the
    head occurs in its column, and half of them are words of heads, or a column has few values,
    each more than once; or several are years in order, and what is below them is not.
    """
    if not is_head(head):
        return False
    both = [*zip(head, columns, strict=True)]
    if any(_is_like(cell, cells) for cell, cells in both):
        return False
    if _has_years(head, columns):
        return True
    forms = [form_of(cells) for cells in columns]
    own = [form_of([cell]) for cell in head]
    if any(each == "number" != form_of([cell]) for each, cell in zip(forms, head, strict=True)):
        return True
    if any(cell in cells for cell, cells in both):
        return False
    if any(each == mine != "word" for each, mine in zip(forms, own, strict=True)):
        return False
    if any(each not in ("word", "") for each in forms):
        return True
    last_words = (re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", cell)[-1].lower() for cell in head)
    of_heads = sum(f" {word} " in _HEADS for word in last_words)
    return 2 * of_heads >= len(head) or any(map(_repeats, columns))


def _is_like(cell: str, cells: Sequence[str]) -> bool:
    """Return True for a cell such as `22 kg` above others that differ in their digits alone."""
    if not re.match(r"\d", cell) or _YEAR.fullmatch(cell):
        return False
    return any(re.sub(r"\d+", "0", cell) == re.sub(r"\d+", "0", each) for each in cells)


def _has_years(head: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    both = zip(head, columns, strict=True)
    below = {cell: cells for cell, cells in both if _YEAR.fullmatch(cell)}
    in_order = len(below) > 1 and [*below] in (sorted(below), sorted(below, reverse=True))
    return in_order and not all(map(_YEAR.fullmatch, chain.from_iterable(below.values())))


def form_of(cells: Sequence[str]) -> str:
    """Return the form of all filled cells: number, hash, path, sentence, or word for the rest."""
    filled = [*filter(None, cells)]
    if not filled:
        return ""
    fits = (name for name, form in _FORMS.items() if all(map(form.fullmatch, filled)))
    return next(fits, "word")


def _repeats(cells: Sequence[str]) -> bool:
    counts = Counter(filter(None, cells))
    return len(cells) >= 20 and bool(counts) and min(counts.values()) > 1


_FORMS = {
    "number": re.compile(r"(?=[^\d]*\d)[-+$€£]?[\d.,:%/+ TZ-]+"),  # also dates and times
    "hash": re.compile(r"(?=.*\d)[0-9a-f]{7,64}"),
    "path": re.compile(r"[^\s/@]*[/@]\S*"),
    "sentence": re.compile(r"(?:\S+\s+){3,}\S.*", re.DOTALL),
}
_HEADS = (
    " account address age amount author body branch category channel city class code color"
    " comment comments company content count country created currency customer date day"
    " department description domain due duration email end event file filename first group"
    " hash host id index ip key kind label labels language last latitude level line link"
    " location longitude message method modified month name namespace note notes number order"
    " owner parent path phone place port price priority product project quantity rate reason"
    " reference region repository result role scope score service severity size source start"
    " state status subject summary surname tag tags team text time timestamp title to total"
    " type unit updated url user username value vendor version warning week year zip "
)
