"""Errors stay errors, in the form that a rule gives them, and are never lost."""

import json
import re
from typing import Any

import pytest
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.ruleset.selection import Selection
from mcp_abridge.shaping.pipeline import shape
from mcp_abridge.storage.meter import Warnings

from tests.builders import answer, call, document, line, result, rule, rules, texts, tool_result
from tests.jobs import job
from tests.omissions import check_text
from tests.talk import Talk

ERRORS = """
- name: jobs
  tools: get_job
  arguments: {limit: {type: integer, maximum: 10}}
  errors:
    - recast:
        unless: error
        common: {error: {code: OTHER, message: "{text}"}}
        cases:
          - match: '^no job (?P<id>\\w+)$'
            to: {error: {code: JOB_NOT_FOUND, details: {id: "{id}"}}}
          - {match: '^limit:', to: {error: {code: INVALID_ARGUMENT}}}
          - {match: '^db ', to: {error: {code: DATABASE_ERROR}}}
  response: [{keep: [id, state]}]
"""
NOT_FOUND = {"error": {"code": "JOB_NOT_FOUND", "message": "no job 7", "details": {"id": "7"}}}


def client_response(response: bytes, text: str = ERRORS, **arguments: Any) -> tuple[Any, Talk]:
    """Return the client's version of a response, decoded, and the talk."""
    talk = Talk(rules(text))
    return json.loads(talk.exchange(call("get_job", arguments), response)), talk


IMAGE = {"type": "image", "data": "", "mimeType": "image/png"}
NO_JOB_7 = tool_result("no job 7")["content"]
FAILED = {**document(NOT_FOUND), "isError": True}
OF_DATABASE = {"error": {"code": "DATABASE_ERROR", "message": "db is down"}}
PROMISE = "- {tools: get_job, validate: refuse, output_schema: {type: object, required: [n]}}"

# A rule, and the result that a result becomes.
RESULTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a text": (
        ERRORS,
        tool_result("no job 7", isError=True, _meta={"a": 1}),
        FAILED | {"_meta": {"a": 1}},
    ),
    # Clients that check an error against the outputSchema would refuse it.
    "both copies": (
        ERRORS,
        tool_result("no job 7", structuredContent={"result": "no job 7"}, isError=True),
        FAILED,
    ),
    "a server's own": (
        PROMISE,
        {"content": [], "structuredContent": {"x": 1}, "isError": True},
        tool_result('{"x":1}', isError=True),
    ),
    "beside an image": (
        ERRORS,
        {"content": [IMAGE, *NO_JOB_7], "isError": True},
        {"content": [IMAGE, *document(NOT_FOUND)["content"]], "isError": True},
    ),
    "by error_if": (
        ERRORS + "  error_if: {match: '^db '}",
        tool_result("db is down"),
        {**document(OF_DATABASE), "isError": True},
    ),
    "success": (
        ERRORS,
        document({"id": 7, "state": "no job 7", "more": 1}),
        document({"id": 7, "state": "no job 7"}),
    ),
}


@pytest.mark.parametrize(("text", "before", "after"), RESULTS.values(), ids=RESULTS)
def test_an_error_gets_the_form_of_its_rule_and_is_marked_as_one(
    text: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    reply, talk = client_response(answer(before), text)
    assert reply["result"] == after
    outcome = "error" if "isError" in after else "shaped"
    assert [(row.outcome, row.calls) for row in talk.counted()] == [(outcome, 1)]


def failed(*texts: str) -> bytes:
    return answer(tool_result(*texts, isError=True))


NO_JOB = line(id=1, error={"code": 1, "message": "no job 7"})
FRAMES = "".join(f'  File "job.py", line {n}, in step\n    go({n})\n' for n in range(1_600))
TRACEBACK = f"Traceback (most recent call last):\n{FRAMES}KeyError: 'row 17'"
BOUND = "- {tools: get_job, max_bytes: 2000}"
BROKEN = "- {name: bad, tools: get_job, on_failure: refuse, errors: [{jmespath: 'abs(@)'}]}"


@pytest.mark.parametrize(
    ("text", "response", "warning"),
    [
        (ERRORS, failed('{ "error": {"code": "MINE",  "more": 1.50} }'), ""),
        (ERRORS, failed("something else"), "recast: no case fits"),
        (ERRORS, failed("no job 7", "really"), "errors: no document"),
        (BOUND, failed("no job 7"), ""),
        (BOUND.replace("}", ", mode: shadow}"), failed(TRACEBACK), ""),
        ("- {tools: get_job, response: [{drop: a}]}", failed(TRACEBACK), ""),
        (ERRORS, line(id=1, error={"code": 1, "message": "what"}), "recast: no case fits"),
        *[(ERRORS, line(id=1, error=e), "") for e in ("a", {"code": 1}, {"message": 5}, None)],
        (f"{ERRORS}  mode: shadow", failed("no job 7"), ""),
        (
            "- {tools: get_job, error_if: {match: '^db'}, response: [{keep: [a]}]}",
            answer(tool_result("db is down")),
            "",
        ),
        (BROKEN, failed("no job 7"), ""),
        (BROKEN, NO_JOB, ""),
    ],
)
def test_an_error_that_its_rule_does_not_fit_passes_as_it_came(
    text: str, response: bytes, warning: str
) -> None:
    talk = Talk(rules(text))
    assert talk.exchange(call("get_job"), response) == response
    assert [each.kind for each in talk.meter.drain(Warnings)] == ([warning] if warning else [])
    reason = "bad: get_job: errors: failed at jmespath: "
    assert any(line.startswith(reason) for line in talk.log) is (text is BROKEN)


def test_an_error_that_has_the_form_keeps_its_layout_and_is_marked_as_one() -> None:
    spaced = '{ "error": {"code": "MINE",  "more": 1.50} }'
    unmarked = ERRORS.replace("  tools: get_job", "  tools: get_job\n  error_if: error")
    reply, _ = client_response(answer(tool_result(spaced)), unmarked)
    assert reply["result"] == tool_result(spaced, isError=True)


def test_the_message_of_a_json_rpc_error_is_shaped_and_its_code_and_data_stay() -> None:
    error = {"code": -32000, "message": "no job 7", "data": {"n": 1}}
    reply, _ = client_response(line(id=1, error=error))
    assert json.loads(reply["error"].pop("message")) == NOT_FOUND
    assert reply == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "data": {"n": 1}}}


TEXT = "errors: [{recast: {cases: [{to: {error: '{text}'}}]}}], "


@pytest.mark.parametrize(
    ("text", "arguments", "reason"),
    [
        ("arguments: {n: {maximum: 1}}", {"n": 2}, "n: 2 is greater than the maximum of 1"),
        ("response: [{paginate: {at: items, limit: 2}}]", {"offset": 2}, "nothing is kept of an"),
    ],
)
@pytest.mark.parametrize("broken", [False, True])
def test_a_refusal_takes_the_form_of_errors_unless_a_step_fails(
    text: str, arguments: dict[str, Any], reason: str, broken: bool
) -> None:
    errors = "errors: [{jmespath: 'abs(@)'}], " if broken else TEXT
    talk = Talk(rules(f"- {{tools: list, {errors}{text}}}"))
    reply = talk.replied(call("list", arguments))
    assert result(reply)["isError"] is True
    [refusal] = texts(reply)
    assert (refusal if broken else json.loads(refusal)["error"]).startswith(reason)


@pytest.mark.fault(35, "inside")
def test_an_error_that_grows_out_of_all_proportion_goes_out_as_it_came() -> None:
    shape_of = ", ".join(["'{text}'"] * 100)
    text = f"name: r\nerrors: [{{recast: {{cases: [{{match: '.', to: {{a: [{shape_of}]}}}}]}}}}]"
    raw = answer(tool_result("x" * 20_000, isError=True))
    outcome = shape(job(rule(text), raw))
    assert (outcome.raw, outcome.outcome) == (raw, "error")
    assert outcome.log_line is not None
    assert outcome.log_line.startswith("r: t: errors: a result of ")


def budget(size: int = 8_000) -> RuleSet:
    return Selection((), size, lambda _: None)("server", None)


def rejoined(talk: Talk, excerpt: str, note: Any) -> str:
    """Join the excerpt of a text with views of the part left out."""
    start, tail, total = map(int, re.findall("[0-9]+", note["text"])[:3])
    whole, end = excerpt[:start], total - tail
    while start < end:
        view = {"view": f"text[{start}:{min(start + 5000, end)}]"}
        reply = talk.replied(call("run", view, id=start))
        assert result(reply)["isError"] is True
        part, *_ = texts(reply)
        whole, start = whole + part, start + len(part)
    return whole + excerpt[len(excerpt) - tail :]


def test_a_long_traceback_shows_its_first_and_last_lines_and_the_rest_on_demand() -> None:
    talk = Talk(budget())
    reply = talk.exchange(call("run"), failed(TRACEBACK))

    excerpt, notice = texts(reply)
    assert len(TRACEBACK) > 60_000
    assert len(excerpt) + len(notice) <= 8_000
    assert result(reply)["isError"] is True
    assert excerpt.startswith("Traceback (most recent call last):\n")
    assert excerpt.endswith("\n    go(1599)\nKeyError: 'row 17'")
    note = json.loads(notice)["_abridged"]
    check_text(TRACEBACK, excerpt, note)
    assert note["more"].startswith("call again with view='text[")
    assert rejoined(talk, excerpt, note) == TRACEBACK
    assert len(talk.to_server) == 1
    assert [row.outcome for row in talk.counted() if row.outcome != "view"] == ["error"]


def test_a_long_error_of_several_texts_is_one_text_and_its_images_stay() -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    value = tool_result("the build failed", TRACEBACK, isError=True)
    value["content"].insert(1, image)
    reply = result(Talk(budget()).exchange(call("run"), answer(value)))

    first, notice, last = reply["content"]
    assert last == image
    assert first["text"].startswith("the build failed\nTraceback")
    assert first["text"].endswith("KeyError: 'row 17'")
    check_text(
        f"the build failed\n{TRACEBACK}", first["text"], json.loads(notice["text"])["_abridged"]
    )


@pytest.mark.parametrize(
    ("value", "stays"),
    [
        ({"structuredContent": {"result": TRACEBACK}, "isError": True}, None),
        ({"structuredContent": {"code": 17.0}, "isError": True}, {"code": 17.0}),
        ({"structuredContent": {"a": TRACEBACK}}, None),  # by error_if
    ],
)
def test_a_long_error_is_a_text_alone_but_for_short_facts_beside_it(
    value: dict[str, Any], stays: Any
) -> None:
    # Clients that check it by the outputSchema would refuse the rest of it.
    ruleset = rules("- {tools: run, max_bytes: 2000, error_if: {match: '^Traceback'}}")
    reply = Talk(ruleset).exchange(call("run"), answer(tool_result(TRACEBACK, **value)))

    assert result(reply)["isError"] is True
    assert result(reply).get("structuredContent") == stays
    assert texts(reply)[0].endswith("KeyError: 'row 17'")
    assert sum(map(len, texts(reply))) <= 2_000


def test_the_steps_for_errors_run_before_the_bound() -> None:
    text = """
        max_bytes: 2000
        errors: [{replace: {pattern: "KeyError: ", with: "no "}}]
    """
    excerpt, notice = texts(shape(job(rule(text), failed(TRACEBACK))).raw)
    assert excerpt.endswith("no 'row 17'")
    assert len(excerpt) + len(notice) <= 2_000


PAGED = """
- tools: run
  max_bytes: 2000
  response: [{paginate: {at: items, limit: 2, refetch: true}}]
"""


def test_an_error_is_never_taken_for_the_answer_that_pages_are_cut_from() -> None:
    talk = Talk(rules(PAGED))
    talk.exchange(call("run", {"offset": 2}), failed(TRACEBACK))
    reply = talk.exchange(call("run", {"offset": 2}), answer(document({"items": [1, 2, 3]})))
    assert json.loads(texts(reply)[0])["items"] == [3]


@pytest.mark.parametrize(
    ("view", "begins"),
    [
        ("tail(1)", "KeyError: 'row 17'"),
        ("grep('row 17')", '{"view":{"matches":1,'),
        ("items[*].id", "Traceback (most recent call last):\n"),
        ("tail(no)", "Traceback (most recent call last):\n"),
    ],
)
def test_a_first_call_with_a_view_looks_into_the_text_of_an_error(view: str, begins: str) -> None:
    talk = Talk(budget())
    listed = {"tools": [{"name": "run", "annotations": {"readOnlyHint": True}}]}
    talk.exchange(line(id=9, method="tools/list"), answer(listed, 9))
    reply = talk.exchange(call("run", {"view": view}), failed(TRACEBACK))
    assert texts(reply)[0].startswith(begins)
    assert result(reply)["isError"] is True


def test_the_message_of_a_long_json_rpc_error_shows_both_ends_and_the_rest_on_demand() -> None:
    talk = Talk(budget())
    error = {"code": -32603, "message": TRACEBACK, "data": {"n": 1.0}}
    reply = json.loads(talk.exchange(call("run"), line(id=1, error=error)))

    assert (reply["error"]["code"], reply["error"]["data"]) == (-32603, {"n": 1.0})
    excerpt, _, notice = reply["error"]["message"].rpartition("\n")
    assert len(reply["error"]["message"]) <= 8_000
    assert excerpt.startswith("Traceback (most recent call last):\n")
    assert excerpt.endswith("KeyError: 'row 17'")
    assert rejoined(talk, excerpt, json.loads(notice)["_abridged"]) == TRACEBACK
    assert len(talk.to_server) == 1


def test_data_of_a_json_rpc_error_that_fits_the_bound_stay_as_they_came() -> None:
    raw = line(id=1, error={"code": 1, "message": "no", "data": ["x" * 50] * 30})
    assert shape(job(rule("max_bytes: 2000"), raw)).raw == raw


def test_an_error_that_is_too_long_by_white_space_alone_goes_out_without_it() -> None:
    error = b'{"code": 1, "message": "no", "data": [%b1]}' % (b" " * 9_000)
    raw = b'{"jsonrpc": "2.0", "id": 1, "error": %b}' % error
    reply = Talk(budget()).exchange(call("run"), raw)
    assert json.loads(reply) == json.loads(raw)
    assert len(reply) < 8_000


@pytest.mark.parametrize("data", [TRACEBACK, {"rows": list(range(20_000))}])
def test_long_data_of_a_json_rpc_error_keeps_its_type_and_its_message_says_what_is_missing(
    data: Any,
) -> None:
    talk = Talk(budget())
    error = {"code": 1, "message": "no", "data": data}
    reply = json.loads(talk.exchange(call("run"), line(id=1, error=error)))["error"]

    assert type(reply["data"]) is type(data)
    assert len(json.dumps(reply)) < 8_000
    summary, _, notice = reply["message"].partition("\n")
    assert summary == "no"
    [(place, note)] = json.loads(notice)["_abridged"].items()
    assert place.startswith("data")
    assert " of " in note
