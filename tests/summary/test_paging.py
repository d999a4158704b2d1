"""A page of an array: the look says how many elements the server has."""

from typing import Any

import pytest
from mcp_abridge.document.tree import Document
from mcp_abridge.query.call import Call
from mcp_abridge.summary.abridgement import abridge

ROWS = [{"id": n, "name": f"name {n}", "state": ("open", "closed")[n % 2]} for n in range(90)]


def note(value: Any, path: str) -> str:
    document = Document(value)
    abridge(document, 1500, Call("list", viewable=True))
    notes = document.root.get()["_abridged"]
    return str(notes.get(path))


@pytest.mark.parametrize(
    ("beside", "path", "total"),
    [
        ({"total": 317, "offset": 0, "limit": 90}, "items", "317"),
        ({"total_count": 1205, "incomplete_results": False}, "items", "1205"),
        ({"startAt": 0, "maxResults": 90, "total": 600, "warnings": []}, "items", "600"),
        ({"total": {"value": 10000, "relation": "gte"}, "max_score": 1.0}, "items", "10000+"),
        ({"meta": {"total": 317, "per_page": 90}}, "items", "317"),
        ({"total": 317, "next": None}, "items", "317"),
    ],
)
def test_a_page_says_how_many_elements_the_server_has(
    beside: dict[str, Any], path: str, total: str
) -> None:
    text = note({**beside, path: ROWS}, path)
    assert text.split("; ")[1] == f"the server has {total}"
    assert " of 90; " in text


@pytest.mark.parametrize(
    "beside",
    [
        {"total": 48210},  # a sum of the rows
        {"start": "2026-11-01", "end": "2026-11-30", "total": 48210},
        {"total": 4210, "limit": 5000},  # a quota
        {"total": 90, "next": None},
        {"count": 100, "offset": 0},  # how many were asked for
        {"total": 317, "offset": 0, "others": ROWS[:3]},  # of which of them is not text
        {"total": 317, "offset": 400, "others": []},  # behind the last page
        {"total": "317", "offset": 0},
        {"total": 317.5, "offset": 0},
        {"total": 10**4000, "offset": 0},
    ],
)
def test_a_total_of_something_else_is_not_taken_for_that_of_a_page(beside: dict[str, Any]) -> None:
    assert "server" not in note({**beside, "items": ROWS}, "items")
