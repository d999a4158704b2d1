"""Counts and log entries of a session, and rules that are out of service."""

import pytest
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.storage.meter import Warnings

from tests.builders import answer, call, document, line, result, rules, texts, tool_result
from tests.samples import (
    ABS,
    DROP,
    FAILS,
    FITS,
    HIDE,
    ITEMS,
    PAGES,
    SECRET,
    after,
    items,
    list_tools,
)
from tests.talk import Talk


def test_every_call_is_counted_once_with_its_rule() -> None:
    talk = Talk(RuleSet((*PAGES.files, *DROP.files, *HIDE.files)))
    first = talk.exchange(call("list"), answer(ITEMS))
    talk.replied(call("list", {"offset": 2}, id=2))
    talk.replied(call("list", {"limit": 99}, id=3))
    talk.replied(call("gone", id=4))
    talk.exchange(call("other", id=5), answer(SECRET, 5))
    talk.exchange(call("get", id=6), answer({**SECRET, "isError": True}, 6))

    rows = {(row.tool, row.outcome): row for row in talk.counted()}

    assert {key: row.rule for key, row in rows.items()} == {
        ("list", "shaped"): "pages",
        ("list", "page"): "pages",
        ("list", "refused"): "pages",
        ("gone", "hidden"): "gone",
        ("other", "untouched"): None,
        ("get", "error"): "drop",
    }
    shaped = rows["list", "shaped"]
    assert (shaped.wire_before, shaped.wire_after) == (len(answer(ITEMS)), len(first))
    assert shaped.visible_after == len(texts(first)[0])
    assert rows["list", "page"].wire_before == 0


@pytest.mark.parametrize(
    ("client", "budget", "visible", "cuts"),
    [("claude-code", 8_000, 1_500, (1, 0)), ("claude-code", 90_000, 1_500, (1, 1)),
     ("mcp", 8_000, 200_000, (0, 0))],
)  # fmt: skip
def test_the_bytes_that_the_client_itself_would_cut_are_counted(
    client: str, budget: int, visible: int, cuts: tuple[int, int]
) -> None:
    talk = Talk(rules(f"- {{tools: list, max_bytes: {budget}}}"))
    info = {"clientInfo": {"name": client, "version": "1"}}
    talk.exchange(line(id=0, method="initialize", params=info), answer({}, 0))
    talk.exchange(call("list"), answer(tool_result("x" * 200_000)))
    [shaped] = [row for row in talk.counted() if row.tool == "list"]
    assert shaped.visible_before - shaped.client_cut == visible
    assert shaped.visible_before == 200_000
    assert shaped.visible_after <= budget
    assert (shaped.cuts_before, shaped.cuts_after) == cuts


WHOLE = "- {name: pages, tools: [list, find], response: [{paginate: {as: items, limit: 2}}]}"


def test_an_object_that_cannot_be_paged_is_logged_once_for_each_tool_and_always_counted() -> None:
    talk = Talk(rules(WHOLE))

    for tool in ("list", "list", "find", "list"):
        assert talk.exchange(call(tool), answer(ITEMS)) == answer(ITEMS)

    reason = "the document is an object; `at` names its array"
    assert talk.log == [f"pages: list: {reason}", f"pages: find: {reason}"]
    [warned] = talk.meter.drain(Warnings)
    assert (warned.rule, warned.kind, warned.count) == ("pages", "paginate: an object", 4)


def test_errors_views_and_a_success_in_between_put_no_rule_out_of_service() -> None:
    text = "response: [{jmespath: 'abs(a)'}], max_bytes: 300"
    talk = Talk(rules(f"- {{name: abs, tools: get, {text}}}"))
    list_tools(talk, {"name": "get", "annotations": {"readOnlyHint": True}})
    failed = answer({**document({"a": 1}), "isError": True})
    after(talk, *[FAILS] * 4, FITS, *[FAILS, failed] * 4)
    for _ in range(5):
        talk.exchange(call("get", {"view": "nothing(@)"}), FAILS)
    assert "out of service" not in str(talk.log)
    after(talk, FAILS)
    assert "out of service" in str(talk.log)


@pytest.mark.fault(34, "inside")
def test_a_rule_that_withholds_is_never_out_of_service() -> None:
    talk = Talk(rules(f"{ABS[:-1]}, on_failure: refuse}}"))
    responses = after(talk, *[FAILS] * 12)
    assert {str(texts(raw)) for raw in responses} == {
        "[\"the response was withheld: rule 'abs' failed on it\"]"
    }
    assert after(talk, FITS) == [answer(document(1))]


DROPPING = "{tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [delete]}}]}"


@pytest.mark.parametrize(("tool", "stale"), [("delete", True), ("get", False)])
def test_a_call_that_makes_pages_stale_drops_their_snapshot(tool: str, stale: bool) -> None:
    talk = Talk(rules(f"- {DROPPING}"))
    talk.exchange(call("list"), answer(ITEMS))
    talk.exchange(call(tool, id=2), answer(tool_result("done"), 2))
    reply = talk.replied(call("list", {"offset": 2}, id=3))
    assert (result(reply).get("isError", False), stale or items(reply)) == (stale, stale or [3, 4])


@pytest.mark.parametrize(("tool", "stale"), [("delete", True), ("get", False)])
def test_a_call_that_makes_a_rule_stale_drops_what_its_views_are_cut_from(
    tool: str, stale: bool
) -> None:
    talk = Talk(rules("- {tools: list, max_bytes: 300, drop_on: [delete]}"))
    talk.exchange(call("list"), answer(document({"items": [*range(900)]})))
    talk.exchange(call(tool, id=2), answer(tool_result("done"), 2))
    reply = talk.replied(call("list", {"view": "items[3]"}, id=3))
    assert result(reply).get("isError", False) == stale


def test_a_first_page_is_not_cut_from_what_was_read_while_a_call_changed_it() -> None:
    talk = Talk(rules(f"- {DROPPING.replace('limit: 2', 'limit: 2, max_age_seconds: 60')}"))
    talk.client(call("delete", id=1))
    talk.exchange(call("list", id=2), answer(ITEMS, 2))
    talk.server(answer(tool_result("done"), 1))
    before = len(talk.to_server)
    talk.client(call("list", id=3))
    assert len(talk.to_server) == before + 1
