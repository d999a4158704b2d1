"""Few rows that are there for the rows inside of them: what is shown, and what is offered."""

import json
import re
from typing import Any

from mcp_abridge.document.tree import Document, plain
from mcp_abridge.query.call import Call
from mcp_abridge.query.view import look
from mcp_abridge.summary.abridgement import abridge

from tests.summary.lists import Dice

Rows = list[dict[str, Any]]


def jobs(count: int, steps: int, beside: int = 0) -> Rows:
    """Return jobs of so many steps, each with so many bytes beside them; one step failed."""
    rows: Rows = [
        {
            "name": f"job {n}",
            "note": "x" * beside,
            "steps": [
                {"name": f"step {s} of {n}", "state": "ok", "log": "y" * 500, "seconds": 9 * s + n}
                for s in range(steps)
            ],
        }
        for n in range(count)
    ]
    rows[-1]["steps"][steps // 2]["state"] = "FAILED"
    return rows


def look_at(rows: Rows) -> tuple[Any, dict[str, Any], list[str]]:
    """Return a look at jobs, the notes on it, and the views that these offer."""
    document = Document.read(json.dumps({"jobs": rows}).encode())
    abridge(
        document, 10_000, Call("list", bound=10_000, notices=[], viewable=True), first_look=2000
    )
    value = json.loads(document.encode())
    notes = value.pop("_abridged")
    views = [view for _, view in re.findall(r"view=(['\"])(.*?)\1[ ;]", notes["more"] + ";")]
    return value["jobs"], notes, views


def value_of(rows: Rows, view: str) -> Any:
    return plain(look(Document({"jobs": rows}), view))


def test_each_of_few_rows_has_those_inside_of_it_in_brief() -> None:
    rows = jobs(4, 15)
    parts, notes, [following, *offers] = look_at(rows)
    for row, whole in zip(parts, rows, strict=True):
        inner = row["steps"]
        names = [each["name"] for each in inner] if isinstance(inner, list) else None
        names = names or [cells[inner["columns"].index("name")] for cells in inner["rows"]]
        assert row["name"] == whole["name"]
        assert names == [step["name"] for step in whole["steps"]]
    assert "log" in notes["jobs.steps"]

    assert following.startswith("jobs[0].steps[0:")
    assert offers[0] == "jobs[].steps[] | [?state=='FAILED'].[name, seconds]"
    assert value_of(rows, offers[0]) == [["step 7 of 3", 66]]
    assert value_of(rows, "count_by(jobs[].steps[], &state)") == {"ok": 59, "FAILED": 1}
    assert {"max_by(jobs[].steps[], &seconds)", "count_by(jobs[].steps[], &state)"} <= {*offers}


def test_if_few_columns_are_missing_the_next_view_shows_them_of_all() -> None:
    rows = jobs(4, 15)
    for step in (step for row in rows for step in row["steps"]):
        del step["log"]
        step |= {f"part{n}": f"rack {step['seconds'] * n % 97} in the room" for n in range(20)}
    _, _, [following, *_] = look_at(rows)
    assert following.startswith("jobs[*].steps[*].{")
    assert [*map(len, value_of(rows, following))] == [15] * 4


def test_rows_that_leave_no_room_for_those_inside_stand_in_brief_with_views_of_these() -> None:
    rows = jobs(20, 40)
    parts, _, [following, *offers] = look_at(rows)
    assert len(parts["rows"]) == 20
    assert parts["columns"][:2] == ["name", "steps[].name"]
    assert "steps[].name" in following
    assert offers[0] == "jobs[].steps[] | [?state=='FAILED'].[name, seconds]"
    assert "sum(jobs[].steps[].seconds)" in offers
    total = sum(step["seconds"] for row in rows for step in row["steps"])
    assert value_of(rows, "sum(jobs[].steps[].seconds)") == total


def test_what_is_no_list_of_inner_rows_stays_what_it_is() -> None:
    for rows in (jobs(9, 4, beside=3000), jobs(40, 1)):
        _, _, views = look_at(rows)
        assert not any("[].steps[]" in view for view in views)


def test_each_of_few_rows_has_the_first_of_many_inside_of_it_and_counts_of_all() -> None:
    rows = jobs(3, 90, beside=300)
    parts, notes, [following, *_] = look_at(rows)
    visible = [part["steps"]["rows"] for part in parts]
    assert 6 <= min(map(len, visible)) <= 44
    assert parts[0]["steps"]["same"]["state"] == "ok"
    assert parts[2]["steps"]["counts"] == {"state": {"ok": 89, "FAILED": "1 at [45]"}}
    assert f"{sum(map(len, visible))} of 270 in 3 arrays" in notes["jobs.steps"]
    assert value_of(rows, following)


def test_of_few_rows_that_cannot_show_those_inside_these_stand_in_brief_with_what_is_around() -> (
    None
):
    services = [
        f"Amazon {name} Service" for name in ("Database", "Queue", "Storage", "Search", "Mail")
    ]
    rows: Rows = [
        {
            "name": f"2026-10-{day + 1:02}",
            "steps": [
                {"Keys": [f"{each} {n}"], "Cost": {"Amount": f"{day * n}.25", "Unit": "USD"}}
                for n, each in enumerate(3 * services)
            ],
        }
        for day in range(31)
    ]
    table, notes, [following, *offers] = look_at(rows)
    assert [*table["columns"]] == ["steps.Keys[0]", "steps.Cost.Amount", "name"]
    assert table["rows"][16] == ["Amazon Queue Service 1", "1.25", "2026-10-02"]
    assert " of 465" in notes["unnest(jobs, &steps)"]
    count = len(table["rows"]) - 1
    assert value_of(rows, following)[0]["name"] == rows[count // 15]["name"]
    [of_one] = [each for each in offers if "[?" in each]
    assert len(value_of(rows, of_one)) == 31
    assert value_of(rows, of_one)[3][0] == "2026-10-04"
    by_name = "sum_by(jobs[].steps[], &Keys[0], &Cost.Amount)"
    assert by_name in offers
    days = range(31)
    assert value_of(rows, by_name)["Amazon Mail Service 14"] == sum(14 * n + 0.25 for n in days)


def test_many_rows_with_others_inside_stand_in_brief_and_views_of_both_are_offered() -> None:
    rows = [
        {"file": f"src/part{n}.ts", "errors": n * 37 % 11, "messages": messages}
        for n in range(120)
        for messages in [
            [{"rule": f"rule-{m % 4}", "line": n * m, "text": "x" * 200} for m in range(n % 5)]
        ]
    ]
    parts, _, views = look_at(rows)
    assert {"file", "errors"} <= {*parts["columns"]}
    assert len(parts["rows"]) > 20
    assert "max_by(jobs, &errors)" in views
    assert "count_by(jobs[].messages[], &rule)" in views


def test_of_many_rows_without_a_name_those_inside_stand_in_brief_with_what_is_around() -> None:
    rows = [
        {"id": f"{n * 7919:08x}", "history": str(n * 104729), "mails": mails}
        for n in range(60)
        for mails in [
            [{"subject": f"Mail {n} {m}", "size": n + m, "text": "x" * 200} for m in range(3)]
        ]
    ]
    parts, notes, views = look_at(rows)
    assert "mails.subject" in parts["columns"]
    assert "4 of 5+ columns, without mails.text" in notes["unnest(jobs, &mails)"]
    [greatest] = [view for view in views if view.startswith("max_by(unnest(")]
    assert value_of(rows, greatest)["mails"]["subject"] == "Mail 59 2"


def test_what_is_around_inner_rows_is_counted_and_added_up_once_for_each_outer_one() -> None:
    dice = Dice(1)
    rows: Rows = [
        {"id": dice.hex(32), "status": ("sent", "lost")[n % 3 % 2], "weight": n, "stops": stops}
        for n in range(90)
        for stops in [
            [{"message": dice.title(), "text": "x" * 200, "leg": m} for m in range(n % 4 + 4)]
        ]
    ]

    parts, notes, views = look_at(rows)

    assert "unnest(jobs, &stops)" in notes
    assert "status" not in parts.get("counts", {})
    assert {"count_by(jobs, &status)", "sum(jobs[*].weight)"} <= {*views}
    assert value_of(rows, "sum(jobs[*].weight)") == sum(range(90))


def test_rows_with_a_number_that_is_read_and_others_inside_stand_in_brief_by_it() -> None:
    dice = Dice(1)
    rows: Rows = [
        {
            "id": f"trk_{dice.hex(32)}",
            "tracking_code": f"{dice.randint(10**19, 10**20 - 1)}",
            "status": ("sent", "lost")[n % 3 % 2],
            "stops": [{"text": dice.title(), "at": dice.time(), "leg": m} for m in range(6)],
        }
        for n in range(90)
    ]

    parts, _, views = look_at(rows)

    assert parts["columns"][0] == "tracking_code"
    assert parts["counts"]["status"] == {"sent": 60, "lost": 30}
    assert "jobs[?status=='lost'].[tracking_code, stops[].text]" in views
