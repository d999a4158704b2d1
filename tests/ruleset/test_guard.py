"""A guard decides on a call, or queries once and then decides; session/ has the rest."""

from typing import Any

import pytest
from mcp_abridge.query.call import Call
from mcp_abridge.ruleset.guard import Query, QueryResult, run_guard

CALL = Call("reindex", {"path": "a"})


def test_an_invalid_decision_is_an_error() -> None:
    decisions: list[tuple[Any, QueryResult | None, str]] = [
        (None, None, "None is no decision"),
        (Query("status"), QueryResult("ready"), "it asks a second time"),
        (Query("status", {}, -1.0), None, "it gives the server -1.0 seconds"),
        (Query("status", {}, float("inf")), None, "it gives the server inf seconds"),
    ]
    for decision, result, message in decisions:
        guard: Any = lambda *_, decision=decision: decision  # noqa: E731
        with pytest.raises((TypeError, ValueError), match=message):
            run_guard(guard, CALL, result)
