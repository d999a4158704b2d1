"""The view `kept`: what is stored for the caller, on any tool, which does not run for it."""

import json
import re
from typing import Any

import pytest
from mcp_abridge.storage.calls import RecentCalls

from tests.builders import answer, call, document, line, rules, texts
from tests.talk import Talk

BUDGET = rules("- {name: budget, tools: '*', max_bytes: 2000}")
ROWS = answer(document({"rows": [{"id": n, "name": f"name {n} of many"} for n in range(200)]}))


def answers(
    talk: Talk, tool: str, arguments: dict[str, Any] | None = None, view: str = "kept"
) -> Any:
    raw = talk.replied(call(tool, {**(arguments or {}), "view": view}))
    return json.loads(texts(raw)[0])["view"]


def test_stored_answers_are_listed_on_any_tool_which_does_not_run() -> None:
    talk = Talk(BUDGET, calls=RecentCalls())
    talk.exchange(call("search", {"query": "cats", "api_key": "hunter2"}), ROWS)
    talk.exchange(call("list", {"page": 2}), ROWS)
    calls = len(talk.to_server)

    newest, oldest = answers(talk, "delete", {"id": 5})
    assert (newest["tool"], newest["arguments"]) == ("list", {"page": 2, "view": "help"})
    assert oldest["arguments"] == {"query": "cats", "api_key": "***"}
    assert oldest["bytes"] > 6000
    assert oldest["age"] == "0 s"
    assert len(talk.to_server) == calls
    talk.replied(call("list", newest["arguments"]))
    assert len(talk.to_server) == calls


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "https://api.example.org/v1?token=hunter2&q=2"},
        {"dsn": "postgres://user:hunter2@db:5432/x"},
        {"headers": {"Authorization": "Bearer hunter2"}},
        {"headers": [{"name": "X-Api-Key", "value": "hunter2"}]},
        {"env": {"AWS_SECRET_ACCESS_KEY": "hunter2", "GITHUB_PAT": "hunter2"}},
        {"note": "ghp_hunter2hunter2"},
    ],
)
def test_a_secret_is_masked_wherever_it_stands_and_the_row_says_so(
    arguments: dict[str, Any],
) -> None:
    talk = Talk(BUDGET, calls=RecentCalls())
    talk.exchange(call("fetch", arguments), ROWS)
    [row] = answers(talk, "fetch")
    assert "hunter2" not in str(row)
    assert row["masked"] == "to look into it, call with the value that *** hides and view='help'"
    assert "view" not in row["arguments"]


def test_the_list_shows_each_call_whole_and_the_view_of_the_others_works() -> None:
    talk = Talk(BUDGET, calls=RecentCalls())
    for n in range(40):
        talk.exchange(call(f"tool{n}", {f"name{n}": "x" * 40}), ROWS)
    raw = talk.replied(call("search", {"view": "kept"}))
    first = json.loads(texts(raw)[0])
    [view] = re.findall("view='(kept[^']*)'", first["_abridged"]["more"])
    second = answers(talk, "search", view=view)
    names = [row["tool"] for row in (*first["view"], *second)]
    assert names == [f"tool{39 - n}" for n in range(len(names))]
    assert all(row["arguments"]["view"] == "help" for row in (*first["view"], *second))
    assert answers(talk, "search", view="kept() | length(@)") == 40
    assert answers(talk, "search", view="kept[].tool")[0] == "tool39"


def test_a_call_too_long_to_be_listed_is_named_by_its_tool() -> None:
    talk = Talk(BUDGET, calls=RecentCalls())
    talk.exchange(call("search", {"query": "x" * 600}), ROWS)
    [row] = answers(talk, "search")
    assert (row["tool"], row["arguments"]) == ("search", "too long to be listed")
    calls = len(talk.to_server)
    talk.replied(call("search", {"query": "x" * 600, "view": "rows[0]"}))
    assert len(talk.to_server) == calls


def test_nobody_sees_what_another_caller_has_stored() -> None:
    talk = Talk(BUDGET, calls=RecentCalls())
    talk.session.state.scope = "jane"
    talk.exchange(call("search", {"query": "cats"}), ROWS)
    talk.session.state.scope = "joe"
    assert answers(talk, "search") == []


def test_a_result_with_a_member_of_that_name_shows_that_member() -> None:
    talk = Talk(BUDGET, calls=RecentCalls())
    value = {"kept": [1, 2], "rows": [{"id": n, "name": f"name {n}"} for n in range(200)]}
    talk.exchange(call("search"), answer(document(value)))
    assert answers(talk, "search") == [1, 2]


@pytest.mark.parametrize("hints", [{}, {"readOnlyHint": True}])
def test_the_list_is_refused_to_a_call_for_a_task_and_none_begins(hints: dict[str, Any]) -> None:
    talk = Talk(BUDGET, calls=RecentCalls())
    tool = {"name": "search", "inputSchema": {"type": "object"}, "annotations": hints}
    talk.exchange(line(id=9, method="tools/list"), answer({"tools": [tool]}, id=9))
    talk.exchange(call("search"), ROWS)
    error = json.loads(talk.replied(call("search", {"view": "kept"}, task={})))["error"]
    assert error["message"] == "the list of what is kept needs no task: call again without one"
