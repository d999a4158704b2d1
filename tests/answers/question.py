"""A question with a known answer, and the evidence by which the answer counts as seen."""

from typing import Literal

from msgspec import Struct

Group = Literal["structured", "texts"]


class Row(Struct, frozen=True):
    """Values that must stand together: in one row (the smallest object or array), or in one line.

    `given` are those that the question names: they may stand in the request instead. In a text
    the values may stand as far apart as `near` characters; 0: in one line.
    """

    answer: tuple[str, ...]
    given: tuple[str, ...] = ()
    near: int = 0


class Alone(Struct, frozen=True):
    """Values of an answer as a whole: a sum, a count, a highest row.

    They stand in an answer of at most 1,000 characters, or beside its rows and in none of them.
    """

    values: tuple[str, ...]


Atom = Row | Alone


class Question(Struct, frozen=True):
    """A question about the result of one call.

    `evidence` has alternatives; one of them suffices, if each of its atoms was seen, in whichever
    calls. `views` are the best use of `view`, in order, written by hand. `pattern` is what a reader
    would search for, as a regular expression.
    """

    name: str
    group: Group
    tool: str
    text: str
    answer: str
    evidence: tuple[tuple[Atom, ...], ...]
    views: tuple[str, ...]
    pattern: str
