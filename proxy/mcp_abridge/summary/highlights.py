"""The lines of a text that stand out: those that are unlike the others, or speak of failure."""

from msgspec import Struct

from mcp_abridge.document.measure import encoded_size
from mcp_abridge.query.call import Call
from mcp_abridge.summary.failures import failures
from mcp_abridge.summary.rare import rare_lines

_LISTED = 5  # lines that are shown, and line numbers in a note
_QUOTED = 200  # characters of such a line that are shown
_AROUND = 10  # lines shown on either side of a line


class Highlights(Struct, frozen=True):
    """The offsets of such lines; of those of failure, also the end of the first such word in each.

    `complete`: no other line speaks of failure.
    """

    failures: dict[int, int]
    rare: list[int]
    complete: bool = True

    def between(self, head: int, tail: int) -> "Highlights":
        """Return those of which a part stands between two offsets."""
        failures = {at: end for at, end in self.failures.items() if at < tail and end > head}
        rare = [at for at in self.rare if head <= at < tail]
        return Highlights(failures, rare, self.complete)

    @property
    def ranked(self) -> list[int]:
        """Those to show: rare ones that speak of failure, other rare ones, other failures."""
        both = [at for at in self.rare if at in self.failures]
        return [*dict.fromkeys([*both, *self.rare, *self.failures])][:_LISTED]

    def quoted(self, text: str, mark: str, room: int) -> str:
        """Return the first ones with their numbers, as many as fit in `room` bytes as JSON."""
        quotes = dict[int, str]()
        for at in self.ranked:
            end = self.failures.get(at, at)
            begin = end - _QUOTED // 2 if end - at > _QUOTED else at
            line = text[begin : begin + _QUOTED].partition("\n")[0]
            quote = f"line {_number(text, at)}: {mark * (begin > at)}{line}\n"
            room -= encoded_size(quote) - len('""')
            if room < 0:
                break
            quotes[at] = quote
        return "".join(quotes[at] for at in sorted(quotes))

    def facts(self, text: str) -> list[str]:
        """Return a sentence on how many speak of failure, and one on those unlike the others."""
        facts = []
        if count := len(self.failures):
            least = "at least " * (not self.complete)
            noun = "line" if count == 1 else "lines"
            listed = _listed(text, [*self.failures])
            facts.append(f"{least}{count} {noun} there with a failure: {listed}")
        if any(at not in self.failures for at in self.rare):
            facts.append(f"unlike the others: {_listed(text, self.rare)}")
        return facts

    def way(self, text: str, call: Call) -> list[str]:
        """Return the call that shows what is around the first one, if there is one."""
        numbers = [_number(text, at) for at in self.ranked[:1]]
        views = ((f"lines({max(each - _AROUND, 1)}, {each + _AROUND})", each) for each in numbers)
        return [f"{call.question(view)} shows line {number}" for view, number in views]


def highlights(text: str) -> Highlights:
    """Find the lines that stand out in all of a text."""
    lines = failures(text)
    return Highlights(dict(lines.spans), rare_lines(text), lines.complete)


def _listed(text: str, places: list[int]) -> str:
    numbers = ", ".join(str(_number(text, at)) for at in places[:_LISTED])
    return numbers + ", …" * (len(places) > _LISTED)


def _number(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
