"""The hits of a search, as a view shows them: the first ones, each with views of the whole."""

import re
from typing import Any

from mcp_abridge.document.tree import encode
from mcp_abridge.query.places import FEW, SMALL, Rows

FIRST = 20  # hits that a view shows
LISTED = 1000
"""The hits that are described, for `grep('x').lines[20:40]`."""
COUNTED = 100_000  # matches; a search goes no further
PLACES = 8  # places by which the other hits are counted
_LISTS = {"lines", "at", "names"}
_BESIDE = {
    "ignoring_case": "in another case",
    "as_text": "of the pattern as a text",
    "loosely": "across other blanks or line ends",
    "ignoring_accents": "with other accents",
}
"""Hits beside those that were asked for."""


class Hits(dict[str, Any]):
    """The result of a search; `listed` counts all hits of one whose first hits a view shows.

    `described` counts those that are described, names of members too. `rows` are small ones, or
    parts of large ones, in which a few hits lie; `beside` has the lines around the lines of hits.
    """

    listed = 0
    described = 0
    rows: Rows | None = None
    beside: dict[int, dict[str, str]] | None = None

    @property
    def count(self) -> int:
        """The number of lines, or of values, with a match."""
        name = "matched_lines" if "lines" in self else "matched_values"
        return int(self.get(name, self.get(f"{name}_at_least", 0)))

    @property
    def none(self) -> bool:
        """True if nothing was found."""
        return not any(self.values())

    @property
    def few(self) -> bool:
        """True if so few were found that in other case there may be what was looked for."""
        return "text" not in self and len(self[self.list_name]) <= FEW

    @property
    def places(self) -> set[Any]:
        """The lines, or paths, of the hits that are described."""
        return {_place(hit) for name in _LISTS & self.keys() for hit in self[name]}

    @property
    def others_beside(self) -> list[str]:
        """Sentences on the hits beside these, for a view that shows a part or their number."""
        counts = [
            (hits.count or hits.get("matched_names", 0), words)
            for name, words in _BESIDE.items()
            if (hits := self.get(name))
        ]
        return [f"grep() alone shows {count} more {words}" for count, words in counts if count]

    def beyond(self, other: "Hits") -> "Hits":
        """Return the hits that `other` does not have; of many, only how many they are."""
        if other.none:
            return self
        hits = Hits()
        for name, value in self.items():
            if isinstance(value, int):
                hits[name] = value - other.get(name.removesuffix("_at_least"), 0)
            elif isinstance(value, Hits):  # in the text that structure was read from
                rest = value.beyond(other[name]) if name in other else Hits()
                hits |= {} if rest.none else {name: rest}
            elif "others" not in self:
                earlier = [_place(hit) for hit in other.get(name, ())]
                hits[name] = [hit for hit in value if _place(hit) not in earlier]
        hits.rows, hits.beside = self.rows, self.beside
        return hits

    @property
    def list_name(self) -> str:
        return "lines" if "lines" in self else "at"


def first_hits(
    hits: Hits, before: str = "", room: int = 0, rows_shown: set[str] | None = None
) -> Hits:
    """Return the first hits, with views of the whole: `before` is the view that was searched.

    What is around a few hits is shown, each row once, if all takes at most `room` bytes.
    `rows_shown` are the views of those rows.
    """
    rows_shown = set() if rows_shown is None else rows_shown
    if hits.beside and len(encode(hits)) + len(encode([*hits.beside.values()])) <= room:
        lines = [hit | hits.beside.get(hit["line"], {}) for hit in hits["lines"]]
        hits = Hits(hits, lines=lines)
    if hits.rows and "at" in hits:
        rest = room - len(encode(hits))
        hits = Hits(hits, at=_with_rows(hits["at"], hits.rows, rest, rows_shown))
    part = Hits(hits)
    part.listed = len(hits.get(hits.list_name, ()))
    for name in _LISTS & hits.keys():
        part[name] = [_within(hit, before) for hit in hits[name][:FIRST]]
    for name in {*_BESIDE, "text"} & hits.keys():
        part[name] = first_hits(hits[name], before, room, rows_shown)
    if "others" in hits:
        part["others"] = {
            place if place == "elsewhere" else _piped(before, place): count
            for place, count in hits["others"].items()
        }
    return part


def _with_rows(
    at: list[dict[str, Any]], rows: Rows, room: int, views: set[str]
) -> list[dict[str, Any]]:
    """Return hits with what they lie in, each once, as far as all of it fits in `room` bytes."""
    room = min(room, SMALL)
    hits = []
    for hit in at:
        name, part = rows.get(hit["path"], ("", {}))
        if part and part["view"] not in views and (size := len(encode(part))) <= room:
            views.add(part["view"])
            room -= size
            hit = hit | {name: part}
        hits.append(hit)
    return hits


def hits_of(value: Any) -> list[Any] | None:
    """Return the hits in the result of a search, None if `value` is none."""
    if isinstance(value, dict):
        if "matched_lines" in value or "matched_lines_at_least" in value:
            return list(value["lines"])
        if "matched_names" in value:
            return list(value["at"])
    return None


def _place(hit: dict[str, Any]) -> Any:
    return hit.get("path", hit.get("line"))


def _within(hit: dict[str, Any], before: str) -> dict[str, Any]:
    hit = {
        name: _piped(before, each) if name in ("path", "more") else each
        for name, each in hit.items()
    }
    for name in ("row", "part"):
        if name in hit:
            hit[name] = {**hit[name], "view": _piped(before, hit[name]["view"])}
    return hit


def _piped(before: str, view: str) -> str:
    if before:
        return f"{before} | {view}"
    return f"text{view}" if re.fullmatch(r"\[\d+:\d+\]", view) else view
