"""What fits within `max_bytes`: the document, and what stands beside it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.document.tree import Document
from proxy.ruleset.clients import CLIENTS, Client, Shows
from proxy.ruleset.selection import Selection
from proxy.shaping.job import ShapeJob
from proxy.shaping.pipeline import shape
from tests.documents import values
from tests.given import answer, document, result, rule, texts, tool_result
from tests.jobs import CONTRACT, job, shaped, structured
from tests.omissions import check_notes, check_text, left_out

BOUND = "max_bytes: 1000"


LONG = document({"items": [{"id": n, "body": "x" * 20} for n in range(100)]}, structured=True)


def test_a_response_that_fits_its_bound_passes_as_it_came() -> None:
    raw = answer(document({"items": [1, 2]}))

    assert shape(job(rule(BOUND), raw)).raw is raw


def test_a_response_that_is_too_long_is_abridged_in_both_copies() -> None:
    made = shaped(BOUND, LONG)

    found = result(made.raw)
    assert json.loads(texts(made.raw)[0]) == found["structuredContent"]
    assert len(texts(made.raw)[0]) <= 1000
    assert "_abridged" in found["structuredContent"]


PROSE = "A line of prose.\n" * 500


def test_prose_that_crowds_a_json_text_out_is_abridged_with_it() -> None:
    text = "max_bytes: 4000"
    made = shaped(text, tool_result(PROSE, json.dumps({"items": [1]})), keep=True)

    prose, small, told = texts(made.raw)
    assert json.loads(small) == {"items": [1]}
    assert len(prose + small + told) <= 4000
    view = json.loads(told)["_abridged"]["more"].split("'")[1]
    more = shape(ShapeJob(rule=rule(text), tool="t", id=b"2", snapshot=made.snapshot, view=view))
    [answered, *_] = texts(more.raw)
    assert PROSE.startswith(prose.partition("…")[0] + answered)


@pytest.mark.parametrize("text", [BOUND, f"response: [{{drop: y}}]\n{BOUND}"])
@pytest.mark.parametrize("value", [{"items": [1]}, {"items": ["x" * 20] * 100}])
def test_prose_that_crowds_structured_content_out_is_shortened(
    text: str, value: dict[str, Any]
) -> None:
    made = shaped(text, {**tool_result(PROSE), "structuredContent": value})

    prose, told = texts(made.raw)
    check_text(PROSE, prose, json.loads(told)["_abridged"])
    assert len(prose + told) <= 1000
    found = result(made.raw)["structuredContent"]
    assert len(json.dumps(found)) <= 1000
    assert (found == value) == (value == {"items": [1]})


def test_several_texts_that_crowd_a_document_out_are_shortened_together() -> None:
    made = shaped(
        "max_bytes: 16000",
        {**tool_result(PROSE, "short", "x" * 9000), "structuredContent": {"items": [1]}},
    )

    first, second, third, told = texts(made.raw)
    assert first.endswith("\nA line of prose.\n")
    assert second == "short"
    notes = json.loads(told)["_abridged"]
    check_text(PROSE, first, {"text": notes["[0]"]})
    check_text("x" * 9000, third, {"text": notes["[2]"]})
    assert result(made.raw)["structuredContent"] == {"items": [1]}
    assert len(first + second + third + told) <= 16000


@pytest.mark.parametrize("kind", ["text", "blocks"])
@pytest.mark.parametrize("shows", ["structured", "both"])
def test_structured_content_beside_a_document_that_is_elsewhere_is_bounded_too(
    kind: str, shows: Shows
) -> None:
    value = {"items": ["x" * 20] * 100}
    made = shaped(f"document: {kind}\n{BOUND}", document(value, structured=True), shows=shows)

    found = result(made.raw)["structuredContent"]
    assert found["items"] == value["items"][: len(found["items"])]
    assert "items" in found["_abridged"]
    assert made.visible_after <= 1000
    assert made.visible_after > 500


def test_structured_content_that_is_promised_counts_where_both_copies_are_shown() -> None:
    contract = "output_schema: {type: object}"
    made = shaped(f"{BOUND}\n{contract}", document({"items": ["x" * 20] * 100}), shows="both")

    assert result(made.raw)["structuredContent"] == json.loads(texts(made.raw)[0])
    assert 500 < made.visible_after <= 1000


@pytest.mark.parametrize("shows", ["structured", "text", "either", "both"])
@pytest.mark.parametrize("step", ["", "response: [{truncate: {max_length: 300}}]"])
def test_a_text_that_was_cut_stands_in_promised_structured_content_with_what_was_cut(
    step: str, shows: Shows
) -> None:
    contract = f"{step}\n{BOUND}\noutput_schema: {{type: object}}"
    made = shaped(contract, tool_result('say "\n" ' * 400), shows=shows)

    text, told = texts(made.raw)
    found = result(made.raw)["structuredContent"]
    assert list(found) == ["text", "truncation" if step else "_abridged"]
    assert found["text"] == text
    assert found["truncation" if step else "_abridged"] == (
        json.loads(told) if step else json.loads(told)["_abridged"]
    )
    assert 300 < made.visible_after <= 1000


def test_text_beside_unrelated_structured_content_costs_nothing_if_it_is_not_shown() -> None:
    value = {"items": [{"id": n, "body": "x" * 20} for n in range(100)]}
    prose = "A line of prose.\n" * 40
    small = {**tool_result(prose), "structuredContent": {"items": [1]}}

    made = shaped(BOUND, {**tool_result(prose), "structuredContent": value}, shows="structured")

    assert texts(made.raw) == [prose]
    assert 800 < made.visible_after <= 1000
    assert shaped("max_bytes: 400", small, shows="structured").outcome == "untouched"


STRINGS = [f"{n}: " + "x" * 90 for n in range(200)]


def test_what_is_shown_of_several_blocks_and_what_the_notes_count_is_the_whole() -> None:
    blocks = ["short", json.dumps({"lines": STRINGS}), *STRINGS[:3], "z" * 9000]

    *after, told = texts(shaped("max_bytes: 4000", tool_result(*blocks)).raw)

    before = [json.loads(text) if text[0] == "{" else text for text in blocks]
    shown = [json.loads(text) if text[0] == "{" else text for text in after]
    check_notes(left_out(before, shown, blocks=True), json.loads(told)["_abridged"])


def test_rows_in_a_block_each_are_shown_in_brief_as_one_table() -> None:
    rows = [{"id": n, "title": f"row {n}", "body": "x" * 300} for n in range(200)]

    made = shaped("max_bytes: 8000", tool_result("Found 200", *map(json.dumps, rows)), keep=True)

    prose, text = texts(made.raw)
    assert prose == "Found 200"
    after = json.loads(text)
    notes = after.pop("_abridged")
    assert len(after["rows"]) == 200
    check_notes(left_out(rows, after), notes)
    view = ShapeJob(rule=rule("max_bytes: 8000"), tool="t", id=b"2", snapshot=made.snapshot)
    assert texts(shape(replace(view, view="[7].body")).raw)[-1] == rows[7]["body"]


@given(values(leaves=60), st.integers(300, 3000))
def test_for_any_document_the_notes_count_all_that_is_left_out(raw: bytes, bound: int) -> None:
    before = json.loads(raw)
    made = shaped(f"max_bytes: {bound}", tool_result(Document.read(raw).encode().decode()))
    if made.outcome != "shaped" or not isinstance(before, dict | list):
        return
    after = json.loads(texts(made.raw)[0])
    name = max(name for name in after if name.rstrip("_") == "_abridged")
    notes = after.pop(name)
    check_notes(left_out({"items": before} if isinstance(before, list) else before, after), notes)


@pytest.mark.fault(38, "inside")
def test_a_document_of_another_shape_is_bounded_all_the_same() -> None:
    made = shaped(
        "response: [{keep: [items.id]}]\nmax_bytes: 1000",
        document({"other": ["x" * 50] * 100, "n": 1}),
        keep=True,
    )

    assert made.outcome == "shaped"
    assert len(texts(made.raw)[0]) <= 1000
    assert "_abridged" in texts(made.raw)[0]
    assert made.log_line is not None
    assert made.log_line.startswith("*: t: left as it came:")


def test_a_cut_by_max_bytes_is_no_violation() -> None:
    open_schema = CONTRACT.replace("n: {", "items: {type: array}, n: {")
    value = document({"n": 1, "items": ["x" * 50] * 50})
    made = shaped(open_schema + "validate: refuse\nmax_bytes: 600", value)
    assert made.outcome == "shaped"
    assert made.warnings == ()
    assert structured(made)["n"] == 1


LONG_RESULTS = {
    "rows": document([{"id": n, "score": n * 1.0, "name": f"row {n}"} for n in range(999)]),
    "both": document(
        {"items": [{"id": n, "title": f"a {n}"} for n in range(999)]}, structured=True
    ),
    "quotes": tool_result('say "\\"\n' * 1_700),
    "member": tool_result("ä\n" * 4_500, structuredContent={"result": "ä\n" * 4_500}),
    "blocks": tool_result(*['{"a": "b"}'] * 999),
    "error": tool_result('at "x"\n' * 2_000, isError=True),
    "differs": tool_result("p" * 30_000, structuredContent={"items": ["x" * 20] * 2_000}),
}


def shown(client: Client, value: dict[str, Any]) -> int:
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
        case _:
            shows = own + "".join(texts)
    return len(shows.encode())


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("name", LONG_RESULTS)
@pytest.mark.parametrize("client", [each for each in CLIENTS if each.measured])
def test_a_client_shows_whole_what_its_budget_made(client: Client, name: str) -> None:
    budget = Selection((), "auto", pytest.fail)(None, client.name).otherwise
    assert budget is not None

    made = shape(job(budget, answer(LONG_RESULTS[name]), shows=client.shows))

    size = shown(client, result(made.raw))
    assert client.budget_bytes * 0.3 < size <= client.budget_bytes < (client.limit_bytes or 1e9)
