"""The hits of a search, as a view shows them: the first ones, each with views of the whole."""

import re
from typing import Any

from mcp_abridge.document.tree import encode
from mcp_abridge.query.places import SMALL, Rows

FIRST = 20  # hits that a view shows
LISTED = 1000
"""The hits that are described, for `grep('x').lines[20:40]`."""
COUNTED = 100_000  # matches; a search goes no further
PLACES = 8  # places by which the other hits are counted


class Hits(dict[str, Any]):
    """The result of a search; `listed` counts all hits of one whose first hits a view shows.

    `rows` are small ones in which a few hits lie, or parts of large ones; `beside` are the lines
    around each of a few hits in a text.
    """

    listed = 0
    rows: Rows | None = None
    beside: list[dict[str, str]] | None = None

    @property
    def none(self) -> bool:
        """True if nothing was found."""
        return not (self.get("lines") or self.get("at") or self.get("names") or self.get("text"))

    @property
    def list_name(self) -> str:
        return "lines" if "lines" in self else "at"


def first_hits(hits: Hits, before: str = "", room: int = 0) -> Hits:
    """Return the first hits, with views of the whole: `before` is the view that was searched.

    What is around a few hits is shown, each row once, if all takes at most `room` bytes.
    """
    if hits.beside and len(encode(hits)) + len(encode(hits.beside)) <= room:
        lines = [hit | beside for hit, beside in zip(hits["lines"], hits.beside, strict=True)]
        hits = Hits(hits, lines=lines)
    if hits.rows:
        hits = Hits(hits, at=_with_rows(hits["at"], hits.rows, room - len(encode(hits))))
    part = Hits(hits)
    part.listed = len(hits[hits.list_name])
    for name in {"lines", "at", "names"} & hits.keys():
        part[name] = [_within(hit, before) for hit in hits[name][:FIRST]]
    for name in {"ignoring_case", "text"} & hits.keys():
        part[name] = first_hits(hits[name], before, room)
    if "others" in hits:
        part["others"] = {
            place if place == "elsewhere" else _piped(before, place): count
            for place, count in hits["others"].items()
        }
    return part


def _with_rows(at: list[dict[str, Any]], rows: Rows, room: int) -> list[dict[str, Any]]:
    """Return hits with what they lie in, each once, as far as all of it fits in `room` bytes."""
    views, room = set[str](), min(room, SMALL)
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
