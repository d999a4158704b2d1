"""Counts and log entries of a session, and rules that are out of service."""

import json

import pytest

from proxy.ruleset.rule import EMPTY, RuleSet
from proxy.session.state import PendingRequest, SessionState
from proxy.storage.meter import Meters, Warnings
from tests.given import answer, call, document, line, result, rule, rules, texts, tool_result
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


OUT = (
    "rule 'abs' is out of service after 5 failures in a row, until the rules are loaded again; "
    "its responses go out as they came"
)


@pytest.mark.fault(34, "inside")
def test_five_failures_in_a_row_put_a_rule_out_of_service_with_one_log_entry() -> None:
    talk = Talk(rules(ABS))

    assert after(talk, *[FAILS] * 4, FITS) == [*[FAILS] * 4, answer(document(1))]
    assert after(talk, *[FAILS] * 5, FITS, FAILS) == [*[FAILS] * 5, FITS, FAILS]

    assert [entry for entry in talk.log if entry == OUT] == [OUT]
    assert [entry.startswith("abs: get: failed at jmespath") for entry in talk.log] == [
        *[True] * 9,
        False,
    ]
    [warned] = talk.meter.drain(Warnings)
    assert (warned.rule, warned.kind, warned.count) == ("abs", "out of service", 1)
    words = [row.outcome for row in talk.counted() for _ in range(row.calls)]
    assert words.count("failed") == 11


def test_errors_and_views_count_neither_as_failures_nor_as_successes() -> None:
    talk = Talk(
        rules("- {name: abs, tools: get, response: [{jmespath: 'abs(a)'}], max_bytes: 300}")
    )
    list_tools(talk, {"name": "get", "annotations": {"readOnlyHint": True}})
    failed = answer({**document({"a": 1}), "isError": True})
    after(talk, *[FAILS, failed] * 4)
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


CODED = """
name: coded
errors: [{recast: {cases: [{match: busy, to: {code: BUSY, message: '{text}'}}]}}]
"""


def test_a_refusal_has_the_form_that_its_rule_gives_errors_unless_the_rule_is_in_shadow() -> None:
    state = SessionState(lambda *_: EMPTY, Meters().of, print)
    active = PendingRequest(b"", b"1", "tools/call", "get", rule(CODED))
    shadow = PendingRequest(b"", b"1", "tools/call", "get", rule(f"mode: shadow\n{CODED}"))
    coded = json.loads(texts(state.refusal(active, "busy"))[0])
    assert coded == {"code": "BUSY", "message": "busy"}
    assert texts(state.refusal(shadow, "busy")) == ["busy"]


DROPPING = "{tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [delete]}}]}"


@pytest.mark.parametrize(("tool", "stale"), [("delete", True), ("get", False)])
def test_a_call_that_makes_pages_stale_drops_their_snapshot(tool: str, stale: bool) -> None:
    talk = Talk(rules(f"- {DROPPING}"))
    talk.exchange(call("list"), answer(ITEMS))
    talk.exchange(call(tool, id=2), answer(tool_result("done"), 2))
    reply = talk.replied(call("list", {"offset": 2}, id=3))
    assert (result(reply).get("isError", False), stale or items(reply)) == (stale, stale or [3, 4])
