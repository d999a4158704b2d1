"""The lines of a text that stand out: those that are unlike the others, or speak of failure."""

import re
from collections.abc import Iterator

from msgspec import Struct

from mcp_abridge.document.measure import encoded_size
from mcp_abridge.summary.examples import Example
from mcp_abridge.summary.failures import Line, failures
from mcp_abridge.summary.omissions import FAILURE
from mcp_abridge.summary.rare import rare_lines

_LISTED = 5  # line numbers in a note
_FEW = 3  # rare lines of which none speaks of failure
_FAILING = 8  # lines that speak of failure and are all shown, if there are no more
_OF_RUN = 3  # of rare lines in a row that speak of failure
_QUOTED = 200  # characters of such a line that are shown
_SHORTEST = 80  # of each of a few
_NUMBERED = 20  # bytes beside them: `line 12345: `, and a mark
_AROUND = 10  # lines shown on either side of a line
_END = re.compile(  # of a command that failed, in small letters: what it says stands above
    r"exit(?<!\wexit)(?:ed)?(?: with)? (?:status|code)|command failed|\*\*\* .*error \d"
)
_WITH_DIGIT = re.compile(r"\S*\d\S*")


class Highlights(Struct, frozen=True):
    """Such lines, in their order. `complete`: no other line speaks of failure.

    `ends` are the offsets of those that say no more than that a command has failed, `again` those
    of lines like an earlier one but for words with a digit.
    """

    failures: list[Line] = []
    rare: list[Line] = []
    complete: bool = True
    ends: frozenset[int] = frozenset()
    again: frozenset[int] = frozenset()

    def between(self, head: int, tail: int) -> "Highlights":
        """Return those of which a part stands between two offsets."""
        failures = [line for line in self.failures if line.at < tail and line.end > head]
        rare = [line for line in self.rare if head <= line.at < tail]
        return Highlights(failures, rare, self.complete, self.ends, self.again)

    @property
    def _first(self) -> list[Line]:
        """Return the rare lines that speak of failure."""
        return [line for line in self.rare if line.end > line.at and line.at not in self.ends]

    @property
    def _telling(self) -> list[Line]:
        """Return the lines that speak of failure: the rare ones first, the ends last.

        Those like an earlier one come behind it.
        """
        lines = dict.fromkeys([*self._first, *self.failures])
        failing = [line for line in lines if line.end > line.at]
        return sorted(failing, key=lambda line: (line.at in self.ends, line.at in self.again))

    @property
    def ranked(self) -> list[Line]:
        """Those to show: rare ones that speak of failure, other rare ones, other failures.

        Of many, those like an earlier one are left out.
        """
        others = [line for line in self.rare if line.at not in self.ends]
        lines = [*dict.fromkeys([*self._first, *others[:_FEW], *self._telling, *self.rare])]
        new = [line for line in lines if line.at not in self.again]
        some = lines if len(self.failures) <= _FAILING else new or lines
        return some[: _FAILING + _FEW]

    def width(self, room: int) -> int:
        """Return how many characters of a line are quoted, so that a few failures all are."""
        if not 0 < len(self.failures) <= _FAILING:
            return _QUOTED
        return max(min(_QUOTED, room // len(self.ranked) - _NUMBERED), _SHORTEST)

    def quoted(self, text: str, mark: str, room: int, most: int) -> str:
        """Return the first ones with their numbers, as many as fit in `room` bytes as JSON.

        At `most` so many characters of each are shown.
        """
        quotes = dict[int, str]()
        for at, number, end in self.ranked:
            begin = end - most // 2 if end - at > most else at
            line = text[begin : begin + most].partition("\n")[0]
            quote = f"line {number}: {mark * (begin > at)}{line}\n"
            room -= encoded_size(quote) - len('""')
            if room < 0:
                break
            quotes[at] = quote
        return "".join(quotes[at] for at in sorted(quotes))

    @property
    def facts(self) -> list[str]:
        """Return a sentence on how many speak of failure, and one on those unlike the others."""
        facts = []
        if count := len(self.failures):
            least = "at least " * (not self.complete)
            noun = "line" if count == 1 else "lines"
            facts.append(f"{least}{count} {noun} there {FAILURE}: {_listed(self._telling)}")
        if others := [line for line in self.rare if line.end == line.at]:
            facts.append(f"unlike the others: {_listed(others)}")
        return facts

    def way(self, text: str, rows: str) -> Iterator[Example]:
        """Yield the view that shows what is around the first one, if there is one.

        That is its row, if the text is read as `rows`, each of which begins with this name.
        """
        for at, number, _ in self.ranked[:1]:
            begins = re.compile(rf"^{re.escape(rows)}[ \t]*:\s", re.MULTILINE)
            before = sum(1 for _ in begins.finditer(text, 0, at + len(rows) + 2)) if rows else 0
            around = f"lines({max(number - _AROUND, 1)}, {number + _AROUND})"
            yield f"rows[{before - 1}]" if before else around, f"shows line {number}"


def highlights(text: str, line_ends: int) -> Highlights:
    """Find the lines that stand out in all of a text, which has so many line ends."""
    runs = [*rare_lines(text, line_ends)]
    these, rare = failures(text), list[Line]()
    for at, first, last in runs:
        inside = [line for line in these.lines if first <= line.number <= last][:_OF_RUN]
        rare += inside or [Line(at, first, at)]
    ends, again, kinds = set[int](), set[int](), set[str]()
    for line in these.lines:
        words = text[line.at : line.at + _QUOTED].partition("\n")[0]
        ends |= {line.at} if _END.search(words.lower()) else set()
        kind = " ".join(_WITH_DIGIT.sub("", words).split())
        again |= {line.at} if kind in kinds else set()
        kinds.add(kind)
    return Highlights(these.lines, rare, these.complete, frozenset(ends), frozenset(again))


def _listed(lines: list[Line]) -> str:
    numbers = ", ".join(str(line.number) for line in lines[:_LISTED])
    return numbers + ", …" * (len(lines) > _LISTED)
