"""A job whose response goes out as it came."""

import json

from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.storage.snapshots import Snapshot
from tests.given import answer, document, result, rule, texts
from tests.jobs import job


def test_what_goes_out_as_it_came_is_seen_as_it_was() -> None:
    raw = answer(document({"a": 1}))
    made = job(rule(""), raw)

    assert made.original("untouched", "why") == ShapeResult(
        raw=raw,
        outcome="untouched",
        visible_before=len(raw),
        visible_after=len(raw),
        log_line="why",
    )
    seen = made.original("error", None, 7)
    assert (seen.raw, seen.outcome, seen.visible_before, seen.visible_after) == (raw, "error", 7, 7)


def test_where_nothing_came_an_error_goes_out() -> None:
    later = ShapeJob(rule=rule(""), tool="t", id=b"2", snapshot=Snapshot(b"{}", b"{}"))

    refused, told = later.original("failed"), later.original("failed", "r: failed")

    assert texts(refused.raw) == ["nothing is kept of the earlier answer"]
    assert result(refused.raw)["isError"] is True
    assert json.loads(refused.raw)["id"] == 2
    assert (refused.outcome, refused.visible_after) == ("refused", len(refused.raw))
    assert (texts(told.raw), told.log_line) == (["r: failed"], "r: failed")
