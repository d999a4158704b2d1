"""Reads of resources by a rule: what is cut, how the rest is read, and what passes as it is."""

import json
import re
from typing import Any

import pytest
from mcp_abridge.document.message import CLIENT_INFO, PROTOCOL_VERSION
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.ruleset.selection import Budget, budget_rule, with_budget
from mcp_abridge.storage.snapshots import Memory

from tests.builders import answer, file, line, result, rules
from tests.talk import Talk

LOG = "file:///srv/x.log"
LINES = "".join(f"{n:05} GET /item/{n * n} took {n % 97} ms\n" for n in range(3000))
ROWS = [{"id": n, "name": f"name {n}", "state": "open" if n % 3 else "closed"} for n in range(900)]
BOUNDED = "- {resources: '*', max_bytes: 2000}"


def read(uri: str = LOG, id: Any = 1, **params: Any) -> bytes:
    return line(id=id, method="resources/read", params={"uri": uri, **params})


def contents(*texts: str, uri: str = LOG, **members: Any) -> dict[str, Any]:
    return {"contents": [{"uri": uri, "text": text, **members} for text in texts]}


def texts(raw: bytes) -> list[str]:
    return [content["text"] for content in result(raw)["contents"]]


def budgeted(client: str, budget: Budget = "auto") -> RuleSet:
    each = file("version: 1\nrules: [{resources: 'file:///*'}]")
    return RuleSet((with_budget(each, budget_rule(budget, client)),))


def test_without_a_rule_a_read_passes_and_is_counted() -> None:
    talk = Talk(rules("- {tools: '*', max_bytes: 2000}"))
    raw, request = answer(contents(LINES)), read(f"{LOG}#view=help")
    assert talk.exchange(request, raw) == raw
    assert talk.to_server == [request]
    assert [(row.tool, row.rule, row.outcome, row.visible_after) for row in talk.counted()] == [
        ("resources/read", None, "untouched", len(raw))
    ]


def test_a_long_text_is_cut_and_the_uri_in_its_notice_reads_on_from_what_is_stored() -> None:
    talk = Talk(rules(BOUNDED))
    raw = talk.exchange(read(), answer(contents(LINES, mimeType="text/plain", _meta={"v": 1.0})))
    [content] = result(raw)["contents"]
    assert (content["uri"], content["mimeType"], content["_meta"]) == (LOG, "text/plain", {"v": 1})
    assert b'"v":1.0' in raw
    assert len(raw) < 2200
    beginning, notice = content["text"].rsplit("\n", 1)
    more = json.loads(notice)["_abridged"]["more"]
    [(following, start, end)] = re.findall(rf"read ({LOG}#view=text%5B(\d+):(\d+)%5D);", more)
    assert beginning.startswith(LINES[: int(start)])
    [part] = texts(talk.replied(read(following)))
    assert part.startswith(LINES[int(start) : int(end)])
    assert f"#view=text%5B{end}:" in part
    rows = talk.counted()
    assert [(row.tool, row.rule, row.outcome) for row in rows] == [
        ("resources/read", "*", "shaped"),
        ("resources/read", "*", "view"),
    ]
    assert rows[0].visible_before > len(LINES) > 50 * rows[0].visible_after


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("[?state=='closed'].id | [0:3]", [0, 3, 6]),
        ("%5B?state=='closed'%5D.id%20%7C%20%5B0:3%5D", [0, 3, 6]),
        ("count_by(@, &state)", {"open": 600, "closed": 300}),
    ],
)
def test_rows_are_shown_in_brief_and_a_view_with_or_without_escapes_asks_them(
    view: str, expected: Any
) -> None:
    talk = Talk(rules(BOUNDED))
    raw = talk.exchange(read(), answer(contents(json.dumps(ROWS), mimeType="application/json")))
    [brief] = map(json.loads, texts(raw))
    assert brief["columns"] == ["id", "name", "state"]
    assert "of 900" in brief["_abridged"]["items"]
    [reply] = map(json.loads, texts(talk.replied(read(f"{LOG}#view={view}"))))
    assert reply["view"] == expected


def test_what_fits_and_what_is_no_text_is_as_the_server_sent_it_to_the_byte() -> None:
    talk = Talk(rules(BOUNDED))
    blob = {"contents": [{"uri": LOG, "mimeType": "image/png", "blob": "iVBORw0K" * 900}]}
    unready = {"resultType": "input_required", "contents": [{"uri": LOG, "text": LINES}]}
    for each in (contents("short"), blob, unready, {"contents": [1, "x" * 9000]}, {"v": LINES}):
        raw = answer(each).replace(b'"contents"', b' "contents"')
        assert talk.exchange(read(), raw) == raw


def test_of_several_texts_each_is_cut_and_blobs_and_all_around_them_stay() -> None:
    blob = {"uri": "a:b", "blob": "iVBORw0K"}
    whole = {"ttlMs": 5, "cacheScope": "private", **contents(LINES, LINES[::-1]), "_meta": {}}
    whole["contents"].insert(1, blob)
    talk = Talk(rules(BOUNDED))
    raw = talk.exchange(read(), answer(whole))
    assert len(raw) < 2500
    shaped = result(raw)
    [first, second, last] = shaped["contents"]
    assert first["text"].startswith(LINES[:90])
    assert last == blob
    assert second["text"].startswith(LINES[::-1][:90])
    assert {**shaped, "contents": 0} == {**whole, "contents": 0}
    notice = json.loads(second["text"].rsplit("\n", 1)[1])["_abridged"]
    [following] = re.findall(r"read (\S+);", notice["more"])
    [part, _] = result(talk.replied(read(following)))["contents"]
    assert part["text"][:900] in LINES


def test_a_view_without_a_stored_answer_reads_the_resource_by_its_own_uri() -> None:
    talk = Talk(rules(BOUNDED))
    reply = talk.exchange(read(f"{LOG}#view=head(1)", _meta={"a": 1}), answer(contents(LINES)))
    assert talk.to_server == [read(_meta={"a": 1})]
    assert texts(reply)[0].startswith(LINES.splitlines()[0])
    assert texts(talk.replied(read(f"{LOG}#view=tail(1)"))) == [LINES.splitlines(keepends=True)[-1]]
    talk.session.state.store = Memory()  # as if it had expired
    talk.exchange(read(f"{LOG}#view=tail(1)"), answer(contents(LINES)))
    assert talk.to_server[1:] == [read()]


def test_a_fragment_of_the_server_s_own_stays_in_front_of_the_view() -> None:
    talk = Talk(rules(BOUNDED))
    own = "note:1#top"
    raw = talk.exchange(read(own), answer(contents(LINES, uri=own)))
    assert talk.to_server == [read(own)]
    assert f"read {own}&view=text%5B" in texts(raw)[0]
    talk.replied(read(f"{own}&view=help"))
    talk.exchange(read(f"{LOG}&view=help"), answer(contents("another resource")))


@pytest.mark.parametrize("how", ["view: false", "mode: shadow"])
def test_a_uri_is_the_server_s_if_its_rule_answers_no_views(how: str) -> None:
    talk = Talk(rules(f"- {{resources: '*', max_bytes: 2000, {how}}}"))
    reply = talk.exchange(read(f"{LOG}#view=FitH"), answer(contents(LINES)))
    assert talk.to_server == [read(f"{LOG}#view=FitH")]
    assert b"read file:" not in reply


def test_nobody_gets_what_another_has_read() -> None:
    talk = Talk(rules(BOUNDED))
    first_line = read(f"{LOG}#view=head(1)")
    for caller in ("jane", "joe"):
        talk.session.state.scope = caller
        # The server is asked by each of them.
        reply = talk.exchange(first_line, answer(contents(f"of {caller}\n{LINES}")))
        assert texts(reply)[0].startswith(f"of {caller}\n")
    for caller in ("jane", "joe"):
        talk.session.state.scope = caller
        assert texts(talk.replied(first_line))[0].startswith(f"of {caller}\n")


def test_why_a_view_is_refused_is_a_text_and_an_error_of_the_server_stays_one() -> None:
    talk = Talk(rules(BOUNDED))
    talk.exchange(read(), answer(contents(json.dumps(ROWS))))
    [reason] = texts(talk.replied(read(f"{LOG}#view=[?nme=='a']")))
    assert "no element has 'nme'" in reason
    error = line(id=1, error={"code": -32002, "message": "not found", "data": {"uri": LOG}})
    assert talk.exchange(read("a:b"), error) == error


def test_a_rule_that_refuses_in_doubt_answers_with_an_error_of_the_protocol() -> None:
    talk = Talk(rules("- {resources: '*', on_failure: refuse, response: [{keep: [id]}]}"))
    error = json.loads(talk.exchange(read(), answer(contents("no JSON"))))["error"]
    assert error["message"].startswith("the response was withheld: rule '*'")


def test_steps_run_on_the_text_of_a_resource() -> None:
    talk = Talk(rules("- {resources: 'file:*', response: [{keep: [id]}]}\n" + BOUNDED))
    raw = talk.exchange(read(), answer(contents(json.dumps(ROWS[:2]))))
    assert texts(raw) == ['[{"id":0},{"id":1}]']
    assert talk.exchange(read("ab:c"), raw) == raw


def test_what_is_beside_the_text_goes_if_its_rule_says_so() -> None:
    talk = Talk(rules("- {resources: '*', blocks: {drop: [resource]}, max_bytes: 2000}"))
    both = contents("short")
    both["contents"].append({"uri": "a:b", "blob": "iVBORw0K"})
    assert texts(talk.exchange(read(), answer(both))) == ['short\n{"_dropped":{"resource":1}}']


def test_the_widget_of_a_tool_is_cut_by_a_rule_for_widgets_alone() -> None:
    raw = answer(contents(f"<html>{LINES}", uri="ui://a/b"))
    assert Talk(rules(BOUNDED)).exchange(read("ui://a/b"), raw) == raw
    own = Talk(rules("- {resources: 'ui://*', max_bytes: 2000}"))
    assert len(own.exchange(read("ui://a/b"), raw)) < 3000


@pytest.mark.parametrize(("client", "most"), [("codex-mcp-client", 8000), ("claude-code", 10_000)])
def test_a_rule_without_steps_has_the_budget_of_the_client(client: str, most: int) -> None:
    talk = Talk(budgeted(client))
    talk.session.rules.rename(client=client)
    raw = talk.exchange(read(), answer(contents(LINES)))
    assert len(raw) < 3000
    fits = answer(contents(LINES[: most - 400]))
    assert talk.exchange(read(), fits) == fits
    talk.exchange(read(), answer(contents(LINES[: 2 * most])))
    [whole] = texts(talk.replied(read(f"{LOG}#view=all")))
    assert whole == LINES[: 2 * most]
    off = Talk(budgeted(client, "off"))
    assert off.exchange(read(), answer(contents(LINES))) == answer(contents(LINES))


def test_a_stateless_answer_of_the_proxy_says_that_none_may_cache_it() -> None:
    talk = Talk(rules(BOUNDED))
    meta = {PROTOCOL_VERSION: "2026-07-28", CLIENT_INFO: {"name": "codex-mcp-client"}}
    whole = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public", **contents(LINES)}
    reply = result(talk.exchange(read(_meta=meta), answer(whole)))
    assert {**reply, "contents": 0} == {**whole, "contents": 0}
    view = result(talk.replied(read(f"{LOG}#view=help", _meta=meta)))
    assert {**view, "contents": 0} == {**whole, "contents": 0}
    listed = result(talk.replied(read(f"{LOG}#view=kept", _meta=meta)))
    never = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "contents": 0}
    assert {**listed, "contents": 0} == never
    [row] = json.loads(listed["contents"][0]["text"])["view"]
    assert row["arguments"] == {"uri": f"{LOG}#view=help"}


def test_an_answer_to_a_request_for_input_is_not_stored() -> None:
    talk = Talk(rules(BOUNDED))
    raw = talk.exchange(read(requestState="s", inputResponses={}), answer(contents(LINES)))
    assert b"#view=" not in raw
    talk.exchange(read(f"{LOG}#view=help"), answer(contents(LINES)))


def test_prompts_are_counted_and_never_cut() -> None:
    talk = Talk(rules(BOUNDED))
    message = {"role": "user", "content": {"type": "text", "text": LINES}}
    raw = answer({"messages": [message]})
    assert talk.exchange(line(id=1, method="prompts/get", params={"name": "p"}), raw) == raw
    assert [(row.tool, row.wire_after) for row in talk.counted()] == [("prompts/get", len(raw))]
