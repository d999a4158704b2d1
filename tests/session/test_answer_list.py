"""The view `kept`: what is stored for the caller, on any tool, which does not run for it."""

import json
from typing import Any

from mcp_abridge.storage.calls import RecentCalls

from tests.builders import answer, call, document, rules, texts
from tests.talk import Talk

BUDGET = rules("- {name: budget, tools: '*', max_bytes: 2000}")
ROWS = answer(document({"rows": [{"id": n, "name": f"name {n} of many"} for n in range(200)]}))


def answers(talk: Talk, tool: str, arguments: dict[str, Any] | None = None) -> Any:
    raw = talk.replied(call(tool, {**(arguments or {}), "view": "kept"}))
    return json.loads(texts(raw)[0])["view"]


def test_stored_answers_are_listed_on_any_tool_which_does_not_run() -> None:
    talk = Talk(BUDGET, calls=RecentCalls())
    talk.exchange(call("search", {"query": "cats", "api_key": "hunter2"}), ROWS)
    talk.exchange(call("list", {"page": 2}), ROWS)
    calls = len(talk.to_server)

    newest, oldest = answers(talk, "delete", {"id": 5})
    assert newest["tool"], newest["arguments"] == ("list", {"page": 2, "view": "help"})
    assert oldest["arguments"] == {"query": "cats", "api_key": "***", "view": "help"}
    assert oldest["bytes"] > 6000
    assert oldest["age"] == "0 s"
    assert len(talk.to_server) == calls
    talk.replied(call("list", newest["arguments"]))
    assert len(talk.to_server) == calls


def test_nobody_sees_what_another_caller_has_stored() -> None:
    talk = Talk(BUDGET, calls=RecentCalls())
    talk.session.scope = "jane"
    talk.exchange(call("search", {"query": "cats"}), ROWS)
    talk.session.scope = "joe"
    assert answers(talk, "search") == []


def test_a_result_with_a_member_of_that_name_shows_that_member() -> None:
    talk = Talk(BUDGET, calls=RecentCalls())
    value = {"kept": [1, 2], "rows": [{"id": n, "name": f"name {n}"} for n in range(200)]}
    talk.exchange(call("search"), answer(document(value)))
    assert answers(talk, "search") == [1, 2]
