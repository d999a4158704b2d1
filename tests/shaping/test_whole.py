"""Results that a client shows whole: by its budget, by an author's hint, and on request."""

import json
from typing import Any

import pytest
from mcp_abridge.document.tokens import tokens
from mcp_abridge.ruleset.clients import CLIENTS, Client
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.selection import Budget, Selection
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.shaping.pipeline import shape

from tests.builders import answer, document, file, texts, tool_result
from tests.jobs import job, structured

KNOWN = [client for client in CLIENTS if client.measured and client.limit_bytes]
NAMES = [client.name for client in KNOWN]


def rule_for(client: str, budget: Budget = "auto") -> Rule:
    rule = Selection((), budget, print)("server", client).otherwise
    assert rule is not None
    return rule


def lines(size: int) -> str:
    return "".join(f"line {n} of {size} bytes\n" for n in range(size))[:size]


def first(
    result: dict[str, Any], client: str, budget: Budget = "auto", **facts: Any
) -> ShapeResult:
    return shape(job(rule_for(client, budget), answer(result), keep=True, **facts))


def everything(before: ShapeResult, client: str, **facts: Any) -> ShapeResult:
    snapshot = before.snapshot
    assert snapshot is not None
    rule = rule_for(client)
    return shape(ShapeJob(rule=rule, tool="t", id=b"2", snapshot=snapshot, view="all", **facts))


@pytest.mark.parametrize("client", KNOWN, ids=NAMES)
def test_an_answer_is_untouched_up_to_the_budget_of_a_client_and_not_beyond(client: Client) -> None:
    overhead = first(tool_result(""), client.name).visible_before
    most = client.budget_bytes - overhead
    assert first(tool_result("a" * most), client.name).outcome == "untouched"
    assert first(tool_result("a" * (most + 1)), client.name).outcome == "shaped"


@pytest.mark.parametrize("client", KNOWN, ids=NAMES)
def test_only_what_the_client_itself_would_cut_is_shortened_if_the_user_wants_that(
    client: Client,
) -> None:
    most = client.whole_bytes - first(tool_result(""), client.name).visible_before
    assert first(tool_result("a" * most), client.name, "client").outcome == "untouched"
    assert first(tool_result("a" * (most + 1)), client.name, "client").outcome == "shaped"
    longer = first(tool_result(lines(2 * client.whole_bytes)), client.name, "client")
    assert longer.visible_after <= client.budget_bytes


def test_a_client_that_shows_all_has_no_budget_then() -> None:
    assert Selection((), "client", print)("server", "continue-cli-client").otherwise is None


@pytest.mark.parametrize("client", KNOWN, ids=NAMES)
def test_all_of_an_answer_comes_at_once_if_the_client_shows_so_much(client: Client) -> None:
    text = lines(client.whole_bytes)
    before = first(tool_result(text), client.name)
    if before.outcome == "untouched":
        return
    escapes = client.shows in ("blocks", "result")
    assert escapes or f"view='all' gives all {len(text):,} bytes" in texts(before.raw)[-1]
    after = everything(before, client.name)
    assert after.visible_after <= max(client.limit_bytes or 0, client.budget_bytes)
    assert escapes or "".join(texts(after.raw)) == text


def test_all_of_a_text_that_was_read_as_rows_is_the_text() -> None:
    text = "".join(f"{n},place {n},open\n" for n in range(9_000))[:47_000]
    before = first(tool_result(text), "claude-code")
    assert "view='all' gives all 47,000 bytes" in texts(before.raw)[-1]
    assert texts(everything(before, "claude-code").raw) == [text]


def test_all_of_structure_comes_as_it_was() -> None:
    rows = {"rows": [{"id": n, "name": f"name {n}", "note": "x" * 60} for n in range(400)]}
    before = first(document(rows, structured=True), "claude-code")
    assert "view='all' gives all" in structured(before)["_abridged"]["more"]
    assert structured(everything(before, "claude-code"))["view"] == rows


def test_what_is_too_long_for_the_client_is_not_offered_and_comes_in_parts() -> None:
    before = first(tool_result(lines(300_000)), "codex-mcp-client")
    assert "view='all'" not in texts(before.raw)[-1]
    after = everything(before, "codex-mcp-client")
    assert 40_000 < after.visible_after <= 47_900
    assert "view='text[" in texts(after.raw)[-1]


def test_rows_of_digits_take_more_tokens_so_fewer_bytes_come_at_once() -> None:
    text = "".join(f"{n * 7919:05x} {n * 104729 % 9999991:08x}\n" for n in range(2900))
    assert len(text) < 49_900 < 2 * tokens(text)
    before = first(tool_result(text), "claude-code")
    assert "view='all'" not in texts(before.raw)[-1]
    assert tokens(texts(everything(before, "claude-code").raw)[0]) <= 25_000


def test_a_result_with_a_member_all_shows_that_member() -> None:
    rows = {"all": [1, 2, 3], "rows": [{"name": f"name {n}", "note": "x" * 60} for n in range(400)]}
    after = everything(first(document(rows), "claude-code"), "claude-code")
    assert json.loads(texts(after.raw)[0])["view"] == [1, 2, 3]


def test_a_budget_in_bytes_bounds_all_too() -> None:
    before = first(tool_result(lines(30_000)), "claude-code", 5000)
    assert "view='all'" not in texts(before.raw)[-1]
    after = shape(
        ShapeJob(
            rule=rule_for("claude-code", 5000),
            tool="t",
            id=b"2",
            snapshot=before.snapshot,
            view="all",
        )
    )
    assert after.visible_after <= 5000


HINT = 200_000


def test_the_author_of_a_tool_may_raise_the_budget_to_what_the_client_shows() -> None:
    text = tool_result(lines(47_000))
    assert first(text, "claude-code").outcome == "shaped"
    assert first(text, "claude-code", author_bytes=HINT).outcome == "untouched"
    # Another client does not know that hint.
    assert first(
        tool_result(lines(20_000)), "qwen-cli-mcp-client-x", author_bytes=HINT
    ).outcome == ("shaped")
    assert first(text, "claude-code", 10_000, author_bytes=HINT).outcome == "shaped"


def test_beyond_that_the_model_gets_a_look_and_all_by_a_request_as_the_hint_allows() -> None:
    text = lines(150_000)
    before = first(tool_result(text), "claude-code", author_bytes=HINT)
    assert before.visible_after <= 10_000
    assert "view='all' gives all 150,000 bytes" in texts(before.raw)[-1]
    after = everything(before, "claude-code", author_bytes=HINT)
    assert "".join(texts(after.raw)) == text
    assert everything(before, "claude-code").visible_after <= 49_900


AUTO = file("version: 1\nrules:\n- {tools: t, response: [{drop: gone}], max_bytes: auto}")


def ruled(value: Any, client: str, budget: Budget) -> ShapeResult:
    [own] = Selection((AUTO,), budget, print)(None, client).files[0].rules
    return shape(job(own, answer(document(value)), keep=True))


def test_a_rule_may_have_the_budget_of_the_client_and_is_whole_where_that_is() -> None:
    rows = {"rows": [{"id": n, "word": "word"} for n in range(1_000)], "gone": 1}
    cut = {client: ruled(rows, client, "auto") for client in ("claude-code", "codex-mcp-client")}
    sizes = [each.visible_after for each in cut.values()]
    assert sizes == [cut_by_budget(rows, client) for client in cut]
    assert ruled(rows, "claude-code", 3_000).visible_after <= 3_000
    for budget in ("client", "off"):
        [text] = texts(ruled(rows, "claude-code", budget).raw)
        assert json.loads(text) == {"rows": rows["rows"]}
    snapshot = cut["claude-code"].snapshot
    assert snapshot is not None
    [own] = Selection((AUTO,), "auto", print)(None, "claude-code").files[0].rules
    whole = shape(ShapeJob(rule=own, tool="t", id=b"2", snapshot=snapshot, view="all"))
    assert json.loads(texts(whole.raw)[0])["view"] == {"rows": rows["rows"]}


def cut_by_budget(value: dict[str, Any], client: str) -> int:
    without = {name: each for name, each in value.items() if name != "gone"}
    return first(document(without), client).visible_after


def test_the_size_of_all_is_that_of_what_comes_however_the_server_spaces_it() -> None:
    rows = [{"id": n, "text": f"entry {n}", "on": [n, n]} for n in range(400)]
    before = first(tool_result(json.dumps({"rows": rows}, indent=2)), "claude-code")
    [look] = texts(before.raw)
    all_of_it = json.dumps({"rows": rows}, separators=(",", ":"))
    assert f"view='all' gives all {len(all_of_it):,} bytes" in json.loads(look)["_abridged"]["more"]
    [answered] = texts(everything(before, "claude-code").raw)
    assert answered == f'{{"view":{all_of_it}}}'
