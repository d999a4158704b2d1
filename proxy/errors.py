"""Every error the proxy raises on purpose.

AbridgeError
├── RuleErrors       rule files that cannot be used: every problem, each with its place
├── OptionErrors     options that no step can be made of, each mistake with its place
├── PathError        a path of the path language that cannot be read
├── DocumentError    a document that cannot be decoded; its message passes as it came
├── Mismatch         a document of another shape than the rule expects; it passes as it came
│   └── Emptied      one of which a rule would leave nothing, which does so too
├── TransformError   a transform that raised; the rule's `on_failure` decides
├── Spent            what a rule or a view needed was more work than it may do (fuel.py)
├── StoreError       a store of snapshots that cannot be reached; what needs no snapshot goes on
└── Refusal          a call or view that is answered with this message instead
"""

import os
from collections.abc import Iterable
from itertools import islice

from msgspec import Struct

_MOST = 500  # words that are looked at


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most like `word`, or None where none is like it.

    >>> nearest("paginat", ["paginate", "project"]), nearest("zebra", ["paginate"])
    ('paginate', None)
    """
    # Imported where a mistake was made only.
    from difflib import get_close_matches

    # Each is compared with the word: of very many, those that come first will do.
    return next(iter(get_close_matches(word[:100], list(islice(known, _MOST)), 1)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown word: `; did you mean ...?`, or nothing.

    >>> did_you_mean("paginat", ["paginate", "project"])
    "; did you mean 'paginate'?"
    """
    found = nearest(word, known)
    return f"; did you mean {found!r}?" if found else ""


BESIDE_RULES = "beside_rules_"
"""How the names of modules begin that are loaded from beside a rule file."""


class AbridgeError(Exception):
    """Anything below; the message is written for the person who reads it."""


class OptionError(Struct, frozen=True):
    """One mistake among options: the words and positions that lead to it, from the options on.

    `of_key`: it is the last word itself that is wrong, not what it holds.
    """

    at: tuple[str | int, ...]
    message: str
    of_key: bool = False


class OptionErrors(AbridgeError):
    """Options that no step can be made of, with every mistake found in them."""

    def __init__(self, wrong: list[OptionError]) -> None:
        super().__init__("; ".join(each.message for each in wrong))
        self.wrong = wrong


class PathError(AbridgeError):
    """A path that cannot be read: what was found and what would be right."""


class DocumentError(AbridgeError):
    """A document that cannot be decoded: its message goes out as it came."""


class ShapeMismatch(AbridgeError):
    """None of the paths of a step exists: the document has another shape than the rule expects."""


class EmptyResult(ShapeMismatch):
    """A rule would leave nothing of a document that held something: which one."""


class TransformError(AbridgeError):
    """A transform raised.

    `step` is the transform's name in the rule file, the cause is chained.
    """

    def __init__(self, step: str, cause: BaseException) -> None:
        super().__init__(f"{step}: {raised(cause)}")
        self.step = step


def raised(error: BaseException) -> str:
    """Say what was raised, and in which line of the Python beside a rule file, if it was there.

    >>> raised(KeyError("files"))
    "KeyError: 'files'"
    """
    place, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").startswith(BESIDE_RULES):
            file = os.path.basename(trace.tb_frame.f_code.co_filename)
            place = f" ({file}:{trace.tb_lineno})"
        trace = trace.tb_next
    return f"{type(error).__name__}: {error}{place}"


class OutOfFuel(AbridgeError):
    """A rule or a view that needed more work than it may do: how much that is."""


class StoreError(AbridgeError):
    """A store of snapshots that cannot be reached: which one, and why."""


class Refusal(AbridgeError):
    """A call or a view that cannot be served as asked; the message is shown to the model."""


class Problem(Struct, frozen=True, order=True):
    """One mistake in a rule file; `line` and `column` count from 1, or are 0: the file itself."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.file}{place}: {self.message}"


class RuleErrors(AbridgeError):
    """Rule files that cannot be used, with every problem found in them.

    `brief` is what a client is told, who sees no log.
    """

    brief = "the rules cannot be used; `mcp-abridge check` says why"

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
