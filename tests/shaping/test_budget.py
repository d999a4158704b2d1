"""A result fits within `max_bytes`: its document, and the texts beside it."""

import json
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.ruleset.clients import CLIENTS, Client, Shows
from mcp_abridge.ruleset.selection import Selection
from mcp_abridge.shaping.job import ShapeJob
from mcp_abridge.shaping.pipeline import shape
from msgspec.structs import replace

from tests.builders import answer, document, result, rule, texts, tool_result
from tests.jobs import CONTRACT, job, shaped, structured
from tests.omissions import check_notes, check_text, left_out

BOUND = "max_bytes: 1000"


PROSE = "A line of prose.\n" * 500


def test_prose_that_crowds_a_json_text_out_is_abridged_with_it() -> None:
    text = "max_bytes: 4000"
    outcome = shaped(text, tool_result(PROSE, json.dumps({"items": [1]})), keep=True)

    prose, small, note = texts(outcome.raw)
    assert json.loads(small) == {"items": [1]}
    assert len(prose + small + note) <= 4000
    view = json.loads(note)["_abridged"]["more"].split("'")[1]
    more = shape(ShapeJob(rule=rule(text), tool="t", id=b"2", snapshot=outcome.snapshot, view=view))
    [answered, *_] = texts(more.raw)
    assert PROSE.startswith(prose.partition("…")[0] + answered)


@pytest.mark.parametrize("value", [{"items": [1]}, {"items": ["x" * 20] * 100}])
def test_prose_that_crowds_structured_content_out_is_shortened(value: dict[str, Any]) -> None:
    outcome = shaped(BOUND, {**tool_result(PROSE), "structuredContent": value})

    prose, note = texts(outcome.raw)
    check_text(PROSE, prose, json.loads(note)["_abridged"])
    assert len(prose + note) <= 1000
    content = structured(outcome)
    assert len(json.dumps(content)) <= 1000
    assert (content == value) == (value == {"items": [1]})


@pytest.mark.parametrize("kind", ["text", "blocks"])
@pytest.mark.parametrize("shows", ["structured", "both"])
def test_structured_content_beside_a_document_that_is_elsewhere_is_bounded_too(
    kind: str, shows: Shows
) -> None:
    value = {"items": ["x" * 20] * 100}
    outcome = shaped(f"document: {kind}\n{BOUND}", document(value, structured=True), shows=shows)

    content = structured(outcome)
    assert content["items"] == value["items"][: len(content["items"])]
    assert "items" in content["_abridged"]
    assert outcome.visible_after <= 1000
    assert outcome.visible_after > 500


def test_structured_content_that_is_too_long_by_white_space_alone_goes_out_without_it() -> None:
    value = {"_abridged": {"more": "x"}, "items": [*range(250)]}
    raw = answer(document(value, structured=True))
    raw = raw.replace(b'"items":', b'"items":%b' % (b" " * 200))
    assert b"  " in raw
    job = ShapeJob(rule=rule(f"document: text\n{BOUND}"), tool="t", id=b"1", raw=raw)
    outcome = shape(replace(job, shows="structured"))
    assert structured(outcome) == {"_abridged_of_server": {"more": "x"}, "items": value["items"]}
    assert outcome.visible_after <= 1000


@pytest.mark.parametrize("promise", ["", "output_schema: {type: object}"])
def test_both_copies_are_the_same_and_count_if_both_are_shown(promise: str) -> None:
    value = document({"items": ["x" * 20] * 100}, structured=not promise)
    outcome = shaped(f"{BOUND}\n{promise}", value, shows="both")

    assert structured(outcome) == json.loads(texts(outcome.raw)[0])
    assert "_abridged" in structured(outcome)
    assert 500 < outcome.visible_after <= 1000


@pytest.mark.parametrize("shows", ["structured", "text", "either", "both"])
@pytest.mark.parametrize("step", ["", "response: [{truncate: {max_length: 300}}]"])
def test_a_text_that_was_cut_stands_in_promised_structured_content_with_what_was_cut(
    step: str, shows: Shows
) -> None:
    contract = f"{step}\n{BOUND}\noutput_schema: {{type: object}}"
    outcome = shaped(contract, tool_result('say "\n" ' * 400), shows=shows)

    text, note = texts(outcome.raw)
    content = structured(outcome)
    assert list(content) == ["text", "truncation" if step else "_abridged"]
    assert content["text"] == text
    assert content["truncation" if step else "_abridged"] == (
        json.loads(note) if step else json.loads(note)["_abridged"]
    )
    assert 300 < outcome.visible_after <= 1000


def test_text_beside_unrelated_structured_content_costs_nothing_if_it_is_not_shown() -> None:
    value = {"items": [{"id": n, "body": "x" * 20} for n in range(100)]}
    prose = "A line of prose.\n" * 40

    outcome = shaped(BOUND, {**tool_result(prose), "structuredContent": value}, shows="structured")

    assert texts(outcome.raw) == [prose]
    assert 800 < outcome.visible_after <= 1000


STRINGS = [f"{n}: " + "x" * 90 for n in range(200)]


def test_the_notes_count_all_that_is_left_out_of_several_blocks() -> None:
    blocks = ["short", json.dumps({"lines": STRINGS}), *STRINGS[:3], "z" * 9000]

    *after, note = texts(shaped("max_bytes: 4000", tool_result(*blocks)).raw)

    before = [json.loads(text) if text[0] == "{" else text for text in blocks]
    documents = [json.loads(text) if text[0] == "{" else text for text in after]
    check_notes(left_out(before, documents, blocks=True), json.loads(note)["_abridged"])


@pytest.mark.parametrize(
    "value",
    [{"lines": STRINGS}, STRINGS, {"data": [STRINGS] * 5}, [STRINGS[:50]] * 5],
    ids=["200 strings", "root array", "arrays of arrays", "root array of arrays"],
)
@pytest.mark.parametrize("promised", [False, True], ids=["text", "structuredContent"])
def test_the_notes_count_all_strings_that_are_left_out(value: Any, promised: bool) -> None:
    whole = {"items": value} if isinstance(value, list) else value
    message = document(whole, structured=True) if promised else tool_result(json.dumps(value))

    outcome = shaped("max_bytes: 4000", message)

    after = structured(outcome) if promised else json.loads(texts(outcome.raw)[0])
    notes = after.pop("_abridged")
    check_notes(left_out(whole, after, notes=notes), notes)


def test_rows_in_a_block_each_are_shown_in_brief_as_one_table() -> None:
    rows = [{"id": n, "title": f"row {n}", "body": "x" * 300} for n in range(200)]

    outcome = shaped("max_bytes: 8000", tool_result("Found 200", *map(json.dumps, rows)), keep=True)

    prose, text = texts(outcome.raw)
    assert prose == "Found 200"
    after = json.loads(text)
    notes = after.pop("_abridged")
    assert len(after["rows"]) == 200
    check_notes(left_out(rows, after), notes)
    view = ShapeJob(rule=rule("max_bytes: 8000"), tool="t", id=b"2", snapshot=outcome.snapshot)
    assert texts(shape(replace(view, view="[7].body")).raw)[-1] == rows[7]["body"]


WORDS = st.sampled_from(['a "quoted" word', "C:\\dir\\file", "plain", "über 9,000"])
VALUES = st.recursive(
    WORDS | st.integers(0, 99),
    lambda inner: (
        st.lists(inner, min_size=5, max_size=9).map(lambda each: each * 9)
        | st.dictionaries(WORDS, inner, min_size=1, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("shows", get_args(Shows))
@given(value=VALUES, times=st.integers(1, 4), budget=st.integers(300, 2000), both=st.booleans())
def test_json_in_strings_of_json_fits_with_its_escapes_whatever_the_client_shows(
    shows: Shows, value: Any, times: int, budget: int, both: bool
) -> None:
    text = value
    for _ in range(times):
        text = json.dumps(text)
    members = {"structuredContent": {"result": text}} if both else {}
    text = json.dumps({"result": text}) if both else text
    outcome = shaped(f"max_bytes: {budget}", tool_result(text, **members), shows=shows, keep=True)
    assert outcome.visible_after <= budget


@pytest.mark.fault(38, "inside")
def test_a_document_of_another_shape_is_bounded_all_the_same() -> None:
    text = f"response: [{{keep: [items.id]}}]\n{BOUND}"
    outcome = shaped(text, document({"other": ["x" * 50] * 100, "n": 1}))
    assert "_abridged" in texts(outcome.raw)[0]
    assert len(texts(outcome.raw)[0]) <= 1000
    assert str(outcome.log_line).startswith("*: t: left as it came:")


def test_a_cut_by_max_bytes_is_no_violation() -> None:
    open_schema = CONTRACT.replace("n: {", "items: {type: array}, n: {")
    value = document({"n": 1, "items": ["x" * 50] * 50})
    outcome = shaped(open_schema + "validate: refuse\nmax_bytes: 600", value)
    assert outcome.outcome == "shaped"
    assert outcome.warnings == ()
    assert structured(outcome)["n"] == 1


LONG_RESULTS = {
    "rows": document(
        [{"id": n, "score": n * 1.0, "name": f"row {n} of a long list"} for n in range(999)]
    ),
    "quotes": tool_result('say "\\"\n' * 1_700),
    "member": tool_result("ä\n" * 4_500, structuredContent={"result": "ä\n" * 4_500}),
    "blocks": tool_result(*['{"a": "b"}'] * 999),
    "error": tool_result('at "x"\n' * 2_000, isError=True),
    "differs": tool_result("p" * 15_000, structuredContent={"items": ["x" * 20] * 2_000}),
}


def visible_bytes(client: Client, value: dict[str, Any]) -> int:
    """Count the bytes of a result that a client gives to its model, as it was measured."""
    texts = [block["text"] for block in value["content"]]
    structured = value.get("structuredContent")
    own = "" if structured is None else dumps(structured)
    match client.shows:
        case "structured":
            shows = own or "".join(texts)
        case "text":
            shows = "".join(texts)
        case "blocks":
            shows = dumps(value["content"])
        case "result":
            shows = dumps(value)
        case "once" if own in texts:
            shows = own
        case "once_in_javascript" if dumps(structured, in_javascript=True) in texts:
            shows = dumps(structured, in_javascript=True)
        case "either":
            shows = max(own, "".join(texts), key=len)
        case _:
            shows = own + "".join(texts)
    return len(shows.encode())


def dumps(value: Any, *, in_javascript: bool = False) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r"(\d)\.0\b", r"\1", text) if in_javascript else text


@pytest.mark.parametrize("name", LONG_RESULTS)
@pytest.mark.parametrize("client", [each for each in CLIENTS if each.measured])
def test_a_client_shows_whole_what_its_budget_made(client: Client, name: str) -> None:
    budget = Selection((), "auto", pytest.fail)(None, client.name).otherwise
    assert budget is not None

    outcome = shape(job(budget, answer(LONG_RESULTS[name]), shows=client.shows))

    size = visible_bytes(client, result(outcome.raw))
    assert client.budget_bytes * 0.3 < size <= client.budget_bytes < (client.limit_bytes or 1e9)


def test_a_text_beside_the_same_text_keeps_its_numbers_for_a_client_that_compares_copies() -> None:
    text = '{"price":1.10,"gone":1}'
    value = tool_result(text, structuredContent={"result": text})
    outcome = shaped("response: [{drop: gone}]", value, shows="once_in_javascript")
    assert texts(outcome.raw) == ['{"price":1.10}']
    assert structured(outcome) == {"result": '{"price":1.10}'}


def test_a_text_beside_an_object_around_the_same_array_keeps_its_numbers_too() -> None:
    value = document({"all": [52.0]}, structured=True)
    outcome = shaped("response: [{jmespath: all}]", value, shows="once_in_javascript")
    assert texts(outcome.raw) == ["[52.0]"]
    assert structured(outcome) == {"items": [52.0]}


@pytest.mark.parametrize("shows", ["text", "blocks"])
def test_a_model_that_reads_texts_alone_asks_for_all_of_one_that_differs_from_the_structure(
    shows: Shows,
) -> None:
    text = "".join(f"item {n} is word{n}\n" for n in range(3_000))
    value = tool_result(text, structuredContent={"items": ["x" * 20] * 2_000})
    budget = Selection((), "auto", pytest.fail)(None, "opencode").otherwise
    assert budget is not None

    outcome = shape(job(budget, answer(value), shows=shows, keep=True))
    assert "call again with view='text[" in texts(outcome.raw)[1]

    view = ShapeJob(
        rule=budget, tool="t", id=b"2", snapshot=outcome.snapshot, view="lines(7, 7)", shows=shows
    )
    assert texts(shape(view).raw)[0] == "item 6 is word6\n"
