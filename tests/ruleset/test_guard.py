"""A guard decides on a call, or asks once and then decides; the rest is in test_guarding.py."""

from typing import Any

import pytest

from proxy.ruleset.guard import Allow, Decision, Query, QueryResult, Respond, decided
from proxy.transforms.base import Call

CALL = Call("reindex", {"path": "a"})


@pytest.mark.parametrize(
    "decision", [Allow({"path": "b"}), Respond("no"), Query("status"), Query("status", {}, 0.0)]
)
def test_a_decision_is_as_the_guard_makes_it(decision: Decision) -> None:
    asked: list[tuple[Call, QueryResult | None]] = []

    def guard(call: Call, found: QueryResult | None) -> Decision:
        asked.append((call, found))
        return decision

    made: Any = guard
    assert decided(made, CALL, None) is decision
    assert asked == [(CALL, None)]


def test_what_was_found_is_told_to_the_guard() -> None:
    made: Any = lambda call, found: Respond(found.failure)  # noqa: E731
    assert decided(made, CALL, QueryResult(failure="no such tool")) == Respond("no such tool")


@pytest.mark.parametrize(
    ("decision", "found", "why"),
    [
        (None, None, "None is no decision"),
        (QueryResult(), None, "QueryResult(document=None, failure=None) is no decision"),
        (Query("status"), QueryResult("ready"), "it asks a second time"),
        (Query("status", {}, -1.0), None, "it gives the server -1.0 seconds"),
        (Query("status", {}, float("inf")), None, "it gives the server inf seconds"),
    ],
)
def test_what_is_no_decision_is_said(decision: Any, found: QueryResult | None, why: str) -> None:
    made: Any = lambda call, found: decision  # noqa: E731
    with pytest.raises((TypeError, ValueError)) as raised:
        decided(made, CALL, found)
    assert str(raised.value) == why
