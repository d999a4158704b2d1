"""A question with a known answer, and the evidence by which the answer counts as seen."""

from typing import Literal

from msgspec import Struct

Group = Literal["structured", "texts"]


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """Values that must stand together: in one row (the smallest object or array), or in one line.

    `context` are those that the question names: they may stand in the request instead. In a text
    the values may stand as far apart as `near` characters; 0: in one line. A row whose columns
    come in several answers is joined by its `key`, which stands in no other row.
    """

    answer: tuple[str, ...]
    context: tuple[str, ...] = ()
    near: int = 0
    key: str = ""


class Alone(Struct, frozen=True):
    """Values of an answer as a whole: a sum, a count, a highest row.

    They stand in an answer of at most 1,000 characters, or beside its rows and in none of them.
    """

    values: tuple[str, ...]


Atom = Row | Alone


class Every(Struct, frozen=True, forbid_unknown_fields=True):
    """Evidence from all rows of a result that a file describes: `of` are members of the `rows`.

    `rows` is a path as in shapes.py. In a text, each match of `pattern` is a row, its groups are
    the values.
    """

    rows: str = ""
    of: tuple[str, ...] = ()
    key: str = ""
    near: int = 0
    pattern: str = ""


class Entry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question as questions.yaml has it.

    `views` are the best use of `view`, in order, written by hand. `word` is the word of the
    question that a reader would search for who knows nothing of the result, "" if there is none;
    `pattern` is a regular expression, by one who does know it. `counts` and `ranks` are the member
    that the question counts rows by, or whose greatest value it asks for; `filters` is the one that
    it names a value of, which is `word`.
    """

    text: str
    answer: str
    views: str | tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    every_row: bool = False
    word: str = ""
    pattern: str = ""
    counts: str = ""
    ranks: str = ""
    filters: str = ""
    every: Every | None = None


class Question(Entry, frozen=True, kw_only=True):
    """A question about the result of one call.

    `evidence` has alternatives; one of them suffices, if each of its atoms was seen, in whichever
    calls.
    """

    name: str
    group: Group
    tool: str
    set: str = "first"
    evidence: tuple[tuple[Atom, ...], ...] = ()
    views: tuple[str, ...] = ()
