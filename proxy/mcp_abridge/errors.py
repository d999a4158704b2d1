"""All errors that the proxy raises on purpose, and "did you mean" for their messages."""

import os
from collections.abc import Collection, Iterable
from itertools import islice

from msgspec import Struct

_MAX_WORDS = 500
_MAX_LENGTH = 100
_MAX_EDITS = 3


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the known word most similar to `word`, or None if none is similar.

    That is the one with the fewest letters to insert, delete, replace or swap, at most one in
    three; or else the only one that has all parts of `word`, or begins like it.

    >>> nearest("paginat", ["paginate", "project"]), nearest("zebra", ["paginate"])
    ('paginate', None)
    >>> nearest("ofset", ["max_offset", "limit"]), nearest("issue", ["get_issue", "get_user"])
    (None, 'get_issue')
    """
    plain, match = _plain(word), None
    choices = [(each, _plain(each)) for each in islice(words, _MAX_WORDS)]
    enough = min(len(plain) // 3, _MAX_EDITS) + 1
    for each, other in choices:
        if (edits := _edits(plain, other, enough)) < enough:
            enough, match = edits, each
    akin = [each for each, other in choices if _akin(plain, other)] if match is None else [match]
    return akin[0] if len(akin) == 1 else None


def _plain(word: str) -> str:
    return word[:_MAX_LENGTH].lower().replace("-", "_")


def _akin(word: str, other: str) -> bool:
    begins = len(word) > 2 and other.startswith(word)
    begins = begins or (word.startswith(other) and len(word) <= 2 * len(other))
    return begins or {*word.split("_")} <= {*other.split("_")}


def _edits(first: str, second: str, enough: int) -> int:
    """Return the letters to insert, delete, replace or swap with the next; any from `enough` on."""
    if abs(len(first) - len(second)) >= enough:
        return enough
    before: list[int] = []
    last: list[int] = list(range(len(second) + 1))
    for row, letter in enumerate(first, 1):
        current = [row] + [enough] * len(second)
        for column in range(max(1, row - enough), min(len(second), row + enough) + 1):
            other = second[column - 1]
            edits = min(last[column], current[column - 1], last[column - 1] - (letter == other)) + 1
            if row > 1 and column > 1 and letter + other == second[column - 2] + first[row - 2]:
                edits = min(edits, before[column - 2] + 1)
            current[column] = edits
        before, last = last, current
    return last[-1]


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return the end of a message on an unknown word: `; did you mean ...?`, or an empty text.

    >>> did_you_mean("paginat", ["paginate", "project"])
    "; did you mean 'paginate'?"
    """
    match = nearest(word, words)
    return f"; did you mean {match!r}?" if match else ""


def did_you_mean_or_known(word: str, words: Collection[str]) -> str:
    """Return the end of a message on an unknown word: a similar word, or else all known ones.

    >>> did_you_mean_or_known("zebra", ["paginate", "project"]), did_you_mean_or_known("zebra", [])
    ('; known: paginate, project', '; known: none')
    """
    return did_you_mean(word, words) or f"; known: {', '.join(words) or 'none'}"


BESIDE_RULES = "beside_rules_"
"""The prefix of the names of modules that are loaded from beside a rule file."""


class AbridgeError(Exception):
    """The base class of all errors below; the message is written for users."""


class OptionError(Struct, frozen=True):
    """One mistake in options; `at` has the keys and positions that lead to it.

    `of_key`: the last key itself is wrong, not its value.
    """

    at: tuple[str | int, ...]
    message: str
    of_key: bool = False


class OptionErrors(AbridgeError):
    """Invalid options of a step, with every mistake found in them."""

    def __init__(self, wrong: list[OptionError]) -> None:
        super().__init__("; ".join(each.message for each in wrong))
        self.wrong = wrong


class PathError(AbridgeError):
    """A path that cannot be parsed; the message shows the mistake and its correction."""


class DocumentError(AbridgeError):
    """A document that cannot be decoded; its message is sent unchanged."""


class ShapeMismatch(AbridgeError):
    """A document of another shape than the rule expects: none of the paths of a step exists."""


class EmptyResult(ShapeMismatch):
    """A rule would remove all content of a nonempty document; the message names the rule."""


class TransformError(AbridgeError):
    """An exception in a transform.

    `step` is the transform's name in the rule file. The cause is chained.
    """

    def __init__(self, step: str, cause: BaseException) -> None:
        super().__init__(f"{step}: {raised(cause)}")
        self.step = step


def raised(error: BaseException) -> str:
    """Return the text of an exception, with its line if Python beside a rule file raised it.

    The class is part of it unless the error is the proxy's own, whose message says it all.

    >>> raised(KeyError("files")), raised(Refusal("pattern: more than 1000 characters"))
    ("KeyError: 'files'", 'pattern: more than 1000 characters')
    """
    place, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").startswith(BESIDE_RULES):
            file = os.path.basename(trace.tb_frame.f_code.co_filename)
            place = f" ({file}:{trace.tb_lineno})"
        trace = trace.tb_next
    kind = "" if isinstance(error, AbridgeError) else f"{type(error).__name__}: "
    return f"{kind}{error}{place}"


class OutOfFuel(AbridgeError):
    """A rule or a view that needs more work than its fuel allows; the message states the limit."""


class StoreError(AbridgeError):
    """A snapshot store that cannot be reached; the message names it and the reason.

    `again`: nothing was tried, since it could not be reached a moment before.
    """

    again = False


class Refusal(AbridgeError):
    """A call or a view that cannot be served; the message is shown to the model."""


class Problem(Struct, frozen=True, order=True):
    """One mistake in a rule file; `line` and `column` count from 1, or are 0 for the whole file."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.file}{place}: {self.message}"


class RuleErrors(AbridgeError):
    """Rule files that cannot be used, with every problem found in them.

    `brief` is the text for the client, which does not see the log.
    """

    brief = "the rules cannot be used; `mcp-abridge check` says why"

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
