"""A guard decides on a call, or queries once and then decides; session/ has the rest."""

from typing import Any

import pytest

from proxy.ruleset.guard import Query, QueryResult, run_guard
from proxy.transforms.base import Call

CALL = Call("reindex", {"path": "a"})


@pytest.mark.parametrize(
    ("decision", "result", "message"),
    [
        (None, None, "None is no decision"),
        (QueryResult(), None, "QueryResult(document=None, failure=None) is no decision"),
        (Query("status"), QueryResult("ready"), "it asks a second time"),
        (Query("status", {}, -1.0), None, "it gives the server -1.0 seconds"),
        (Query("status", {}, float("inf")), None, "it gives the server inf seconds"),
    ],
)
def test_an_invalid_decision_is_an_error(
    decision: Any, result: QueryResult | None, message: str
) -> None:
    guard: Any = lambda call, result: decision  # noqa: E731
    assert run_guard(lambda call, result: Query("status"), CALL, None) == Query("status")  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError)) as raised:
        run_guard(guard, CALL, result)
    assert str(raised.value) == message
