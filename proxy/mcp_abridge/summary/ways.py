"""The calls that show what is left out, in the notes on it: without them a model cannot ask on."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.document.measure import encoded_size
from mcp_abridge.query.call import Call
from mcp_abridge.summary.cuts import calls_for_more
from mcp_abridge.summary.examples import COUNTS
from mcp_abridge.summary.omissions import COLUMNS, LONGEST, MEMBERS, Omission, notes_on
from mcp_abridge.summary.origin import first_words
from mcp_abridge.summary.place import UNSHOWN

VIEW = "view"  # the path of the result of a view

_MORE = 450  # bytes for the calls that show more
_NAMED = 40  # characters of a view that names the columns of the next rows
_PAGE = re.compile(r"\[\d*:\d*\]$")


class Ways(Struct, frozen=True):
    """The ways to what an answer of `bound` bytes leaves out, which may be that to a view.

    `viewed` is that view, `origin` the note on what the structure was read from.
    """

    call: Call
    bound: int
    viewed: str
    origin: dict[str, str]

    def _next(self, cut: Omission) -> str | None:
        place = cut.place
        if UNSHOWN in place or (self.viewed and not place.startswith(VIEW)):
            return None
        window_of_each = "[*]" in place and not cut.following
        if cut.visible == cut.total or window_of_each:
            return None  # all rows are shown, in another shape
        if self.viewed:
            place = place.removeprefix(VIEW).removeprefix(".")
            if cut.unit == COLUMNS and _PAGE.search(self.viewed):
                return None  # the next window comes first
        expression = place  # of the first member that is missing
        if cut.unit != MEMBERS or not cut.names:
            expression = self._window(cut, place)
        if self.viewed:
            from mcp_abridge.query.windows import within  # for views alone

            expression = within(self.viewed, expression)
        return expression if len(expression) <= 2 * LONGEST else None

    def _window(self, cut: Omission, place: str) -> str:
        start, rest = cut.first_shown, cut.total - cut.visible
        if cut.unit == MEMBERS and not place.startswith("entries("):
            place = f"entries({place or '@'})"
        elif cut.unit == COLUMNS:
            start, rest = 0, cut.first_shown
        # As many as fit: as were shown, or as of those that were not.
        step = max(start, self.bound * 9 // 10 * rest // max(cut.loss, 1), 1)
        window = f"[{start}:{min(start + step, cut.first_total)}]"
        # The columns of the next rows are named if that leaves room for the other ways.
        plain = cut.unit != COLUMNS and (self.viewed or len(cut.following) > _NAMED)
        following = "" if plain else cut.following
        return f"{place}{following or window}"

    def _more(self, cuts: list[Omission]) -> Iterator[str]:
        """Yield what says how to see the rest, each time in fewer words."""
        search = self.call.next_question("grep('word')")
        following = next(filter(None, map(self._next, cuts)), None)
        if following is not None:
            text, *others = calls_for_more(self.call, following)
            ways = []
            if not self.viewed:
                reachable = (cut.examples for cut in cuts if UNSHOWN not in cut.place)
                examples, *beside = [*dict.fromkeys(filter(None, reachable))] or [()]
                counts = (each for some in beside for each in some if each[1] == COUNTS)
                ways = [
                    f"{self.call.question(view)} {effect}" for view, effect in (*examples, *counts)
                ]
                ways = [*ways[:1], *others, *ways[1:]]
            whole = text
            for way in ways:
                if len(whole) + len(way) + 2 <= _MORE + len(self.call.reader + self.call.uri):
                    whole = f"{whole}; {way}"
            yield whole
            yield text
            plain = (self._next(replace(cut, following="")) for cut in cuts)
            yield self.call.next_question(next(filter(None, plain), following))
        if not self.viewed and any(cut.visible for cut in cuts):  # data is for no reader
            yield f"{search} searches"

    def notes(
        self, cuts: list[Omission], room: int, facts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        facts = facts or {}
        room += encoded_size(facts) if facts else 0
        origin = self.origin
        for more in self._more(cuts) if self.call.viewable else ():
            notes = notes_on(cuts, facts | {"more": more} | origin, room)
            if encoded_size(notes) <= room:
                return notes
            origin = first_words(origin)
        return notes_on(cuts, facts | origin, room)
