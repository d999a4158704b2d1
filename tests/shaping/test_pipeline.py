"""One response through its rule: the line for the client, the counts, and failures."""

import json
from asyncio import CancelledError
from typing import Any

import pytest
from mcp_abridge.errors import Refusal
from mcp_abridge.shaping.pipeline import shape

from tests.builders import answer, document, line, result, rule, texts, tool_result
from tests.jobs import CONTRACT, Raises, job, shaped, structured, with_step, withheld


def test_the_envelope_stays_as_it_came() -> None:
    result = rb'"result" : {"content": [{"type":"text","text":"{\"a\":1,\"b\":2}"}]}'
    raw = rb'{ "id" : 5.0, "x": 1e400, ' + result + rb', "jsonrpc": "2.0" }'

    outcome = shape(job(rule("response: [{keep: [a]}]"), raw))

    assert outcome.raw == (
        rb'{"id":5.0,"x":1e400,"result":{"content":[{"type":"text","text":"{\"a\":1}"}]},'
        rb'"jsonrpc":"2.0"}'
    )


@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize("prose", ["Found 2 items.", r"a\/b \u00e9"])
def test_prose_beside_structured_content_stays_as_it_came(prose: str) -> None:
    block = f'{{"type":"text","text":"{prose}"}}'.encode()
    raw = b'{"jsonrpc":"2.0","id":1,"result":{"content":[' + block + b'],"structuredContent":%s}}'

    outcome = shape(job(rule("response: [{drop: c}]"), raw % b'{"a":1,"c":2}'))

    assert outcome.raw == raw % b'{"a":1}'


IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
DROPS = "response: [{drop: a}]"
CLOSED = "on_failure: refuse\nresponse: [{keep: [id]}]"
SPACED = b'{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "{}"}]}}'


@pytest.mark.fault(34, "inside")
@pytest.mark.fault(35, "inside")
@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize(
    ("text", "response", "outcome"),
    [
        ("response: [{drop: gone}]", SPACED, "untouched"),
        # Without a document, or not final.
        (DROPS, {"resultType": "input_required", "inputRequests": {}}, "untouched"),
        (DROPS, {"task": {"taskId": "a"}}, "untouched"),
        (DROPS, {"resultType": "task", **document({"a": 1})}, "untouched"),
        (DROPS, {"content": [IMAGE]}, "untouched"),
        (DROPS, tool_result("prose", "prose"), "untouched"),
        ("blocks: {drop: [image]}", {"content": [IMAGE, IMAGE]}, "untouched"),
        ("max_bytes: 1000", document({"items": [1, 2]}), "untouched"),
        # Errors.
        (DROPS, line(id=1, error={"code": -32603, "message": "no"}), "untouched"),
        (DROPS, {**document({"a": 1}), "isError": True}, "error"),
        (f"error_if: 'status >= `400`'\n{DROPS}", document({"status": 404, "a": 1}), "error"),
        (
            f"error_if: {{match: '^Database error'}}\n{DROPS}",
            tool_result("Database error: 1"),
            "error",
        ),
        # Expressions that do not fit.
        ("response: [{jmespath: 'abs(a)'}]", document({"a": "text"}), "failed"),
        ("error_if: 'abs(a)'", document({"a": "text"}), "failed"),
        ("response: [{filter: {where: 'abs(a)'}}]", document([{"a": "text"}]), "failed"),
        # What a rule that withholds lets pass.
        (CLOSED, {"resultType": "input_required", "inputRequests": {}}, "untouched"),
        (CLOSED, {"task": {"taskId": "a"}}, "untouched"),
        (CLOSED, tool_result("no", isError=True), "error"),
        (f"mode: shadow\n{CLOSED}", document({"other": 1}), "untouched"),
        ("on_failure: refuse\nmax_bytes: 1000", {"content": [IMAGE]}, "untouched"),
        (CONTRACT, {"resultType": "input_required", "content": []}, "untouched"),
        (CONTRACT, tool_result("prose", structuredContent={"n": 1}), "untouched"),
        (CONTRACT, tool_result("no", isError=True), "error"),
        (f"{CONTRACT}validate: warn\nmode: shadow", document({"n": 11}), "untouched"),
        (f"{CONTRACT}validate: refuse\nmode: shadow", document({"n": 11}), "shadow"),
    ],
)
def test_a_response_that_its_rule_has_nothing_to_do_for_is_the_same_bytes(
    text: str, response: Any, outcome: str
) -> None:
    raw = response if isinstance(response, bytes) else answer(response)
    shaping = shape(job(rule(text), raw))
    assert shaping.raw is raw
    assert shaping.outcome == outcome


def test_a_path_that_matches_nothing_is_reported_even_if_nothing_changes() -> None:
    assert shaped("response: [{drop: [gone, a.lost]}]", document({"a": 1})).missing == (
        "gone",
        "a.lost",
    )


PRETTY, PRETTIER = (json.dumps(value, indent=4) for value in ({"a": 1, "b": [2]}, {"b": [2]}))
ELIDES = "response: [{elide: {at: '[].a', first: 1}}]\noutput_schema: {type: object}"


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        (
            "error_if: 'b >= `400`'\nresponse: [{drop: a}]",
            document({"a": 1, "b": 2}),
            tool_result('{"b":2}'),
        ),
        (
            "blocks: {drop: [image]}",
            {"content": [IMAGE, *tool_result("a picture")["content"], IMAGE]},
            tool_result("a picture", '{"_dropped":{"image":2}}'),
        ),
        ("layout: as_sent\nresponse: [{drop: a}]", tool_result(PRETTY), tool_result(PRETTIER)),
        (CONTRACT + "copies: text", document({"n": 1}), document({"n": 1})),
        (
            "on_failure: refuse\nresponse: [{parse: {as: lines}}, {filter: {glob: 'a*'}}]",
            tool_result("ab\nsecret\nac"),
            tool_result("ab\nac"),
        ),
        # What is no object stands in structuredContent with the texts beside it.
        (
            ELIDES,
            tool_result("Found:", '[{"a":[1,2]}]'),
            tool_result(
                "Found:",
                '[{"a":[1],"_elided":{"a":"1 of 2"}}]',
                structuredContent={"text": 'Found:\n[{"a":[1],"_elided":{"a":"1 of 2"}}]'},
            ),
        ),
    ],
)
def test_a_result_becomes_what_its_rule_says(
    text: str, value: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert result(shaped(text, value).raw) == expected


def test_shadow_mode_measures_and_changes_nothing() -> None:
    value = document({"a": 1, "b": "x" * 100})
    raw = answer(value)

    outcome = shape(job(rule("mode: shadow\nresponse: [{drop: b}]"), raw, keep=True))

    assert (outcome.raw, outcome.outcome, outcome.snapshot) == (raw, "shadow", None)
    assert (outcome.visible_before, outcome.visible_after) == (len(texts(raw)[0]), len('{"a":1}'))


ERRORS = [TypeError("no"), RecursionError("deep"), MemoryError(), SystemExit(3), CancelledError()]
STEPS = (
    "response: [{keep: [a, items]}, {sort: {at: items, by: id}}, {paginate: {at: items, limit: 2}}]"
)
VALUE = document({"a": 1, "items": [{"id": n} for n in (3, 1, 2)], "b": 2}, structured=True)


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("at", range(4))
def test_a_step_that_raises_anywhere_costs_nothing(error: BaseException, at: int) -> None:
    raw = answer(VALUE)

    outcome = shape(job(with_step(rule(f"name: r\n{STEPS}"), Raises(error), at), raw, keep=True))

    assert (outcome.raw, outcome.outcome, outcome.snapshot) == (raw, "failed", None)
    assert str(outcome.log_line).startswith("r: t: failed at ")
    assert type(error).__name__ in str(outcome.log_line)


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("name: r\non_failure: refuse", {}),
        ("name: r\non_failure: refuse", {"modern": True}),
        (f"{CONTRACT.replace('name: jobs', 'name: r')}validate: refuse", {}),
    ],
)
def test_a_rule_that_refuses_withholds_what_it_failed_on(
    text: str, options: dict[str, Any]
) -> None:
    outcome = shape(
        job(with_step(rule(text), Raises(TypeError("secret")), 0), answer(VALUE), **options)
    )
    expected = tool_result("the response was withheld: rule 'r' failed on it", isError=True)
    assert result(outcome.raw) == ({"resultType": "complete"} if options else {}) | expected
    assert (outcome.outcome, outcome.log_line) == (
        "failed",
        "r: t: failed at raises: TypeError: secret",
    )


def test_the_reason_of_a_step_that_refuses_is_the_answer() -> None:
    outcome = shape(
        job(with_step(rule("name: r"), Raises(Refusal("ask for less")), 0), answer(VALUE))
    )

    assert (outcome.outcome, texts(outcome.raw), result(outcome.raw)["isError"]) == (
        "refused",
        ["ask for less"],
        True,
    )


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize("fails", [{"bypass": True}, {}], ids=["out of service", "broken"])
def test_the_original_that_goes_out_for_a_rule_keeps_its_promise(fails: dict[str, Any]) -> None:
    broken = with_step(rule(CONTRACT), Raises(ValueError("broken")), 0)
    outcome = shape(job(broken, answer(document({"n": 1})), **fails))
    assert outcome.outcome == "failed"
    assert outcome.raw == answer({**document({"n": 1}), "structuredContent": {"n": 1}})


@pytest.mark.parametrize("kind", ["auto", "structured"])
def test_a_result_without_a_document_is_bounded_and_skips_the_steps(kind: str) -> None:
    text = f"document: {kind}\nresponse: [{{filter: {{prefix: a}}}}]\nmax_bytes: 3000"
    short = {"content": [*tool_result("b\nc")["content"], *tool_result("d")["content"]]}
    outcome = shaped(text, short)
    assert outcome.outcome == "untouched"
    assert outcome.raw == answer(short)
    long = {"content": [*tool_result("b" * 9000)["content"], *tool_result("d")["content"]]}
    outcome = shaped(text, long)
    assert outcome.outcome == "shaped"
    first, *others = texts(outcome.raw)
    assert first.startswith("bbb")
    assert len(first) < 3000
    assert "d" in others


GROWS = "response: [{project: [a, some, more, keys]}]"


@pytest.mark.fault(35, "inside")
@pytest.mark.parametrize("structured", [False, True])
def test_without_allow_growth_a_result_that_would_grow_passes_unchanged(structured: bool) -> None:
    raw = answer(document({"a": 1}, structured=structured))

    outcome = shape(job(rule(f"name: r\nallow_growth: false\n{GROWS}"), raw, keep=True))

    assert (outcome.raw, outcome.outcome, outcome.snapshot) == (raw, "untouched", None)
    assert outcome.visible_after == outcome.visible_before
    assert outcome.log_line == "r: t: left as it came: the model would see 43 bytes in place of 7"


def test_growth_is_counted_as_the_client_at_hand_shows_it() -> None:
    # One copy grows, the other goes.
    text = "allow_growth: false\ncopies: structured\nresponse: [{project: [a, more]}]"
    value = document({"a": 1234567}, structured=True)
    assert shaped(text, value, shows="structured").outcome == "untouched"
    assert shaped(text, value, shows="both").outcome == "shaped"


CHECKED = f"{CONTRACT.replace('name: jobs', 'name: r')}validate: refuse\n"
KEEPS = "name: r\non_failure: refuse\nresponse: [{keep: [id]}]\n"
MISFIT = "the response was withheld: rule 'r' does not fit it"
BROKEN = "the response breaks its contract: "


@pytest.mark.fault(35, "inside")
@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        (f"name: r\nallow_growth: false\non_failure: refuse\n{GROWS}", document({"a": 1}), MISFIT),
        *(
            (KEEPS + more, value, MISFIT)
            for more in ("", "max_bytes: 1000")
            for value in (
                document({"other": "secret"}),
                tool_result("secret", "words"),
                {"content": [{"type": "image", "data": "secret", "mimeType": "image/png"}]},
                document({"other": ["secret" * 50] * 100}),
            )
        ),
        (CHECKED, document({"n": 11}), BROKEN + "n: 11 is greater than the maximum of 10"),
        (CHECKED, tool_result("secret"), BROKEN),
        (CHECKED, {"content": []}, BROKEN + "it has no document"),
        (f"{CHECKED}max_bytes: 3000", tool_result("secret", "d"), BROKEN + "it has no document"),
        (CHECKED, document({"other": 1}), BROKEN),
        (f"{CHECKED}response: [{{keep: [other]}}]\non_failure: refuse", document({"n": 1}), MISFIT),
    ],
)
def test_a_result_that_does_not_fit_a_rule_that_refuses_is_withheld(
    text: str, value: dict[str, Any], why: str
) -> None:
    outcome = shaped(text, value)
    assert withheld(outcome).startswith(why)
    assert (outcome.outcome, structured(outcome)) == ("refused", None)
    assert why is not MISFIT or str(outcome.log_line).startswith("r: t: withheld: ")
    assert "secret" not in outcome.raw.decode() or why is BROKEN


WARNS = CONTRACT + "validate: warn\n"


@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize(
    ("text", "value", "warning", "logged"),
    [
        (WARNS, document({"n": 11}, structured=True), "contract: n maximum", ""),
        (f"{WARNS}max_bytes: 3000", tool_result("b", "d"), "contract: no document", ""),
        (
            "name: r\nresponse: [{keep: [items.id]}]",
            document({"a": 1}),
            "",
            "r: t: left as it came: ",
        ),
        # What keeps to the contract may pass.
        (
            f"{CONTRACT}validate: refuse\nresponse: [{{keep: [other]}}]",
            document({"n": 1}, structured=True),
            "",
            "jobs: t: left as it came: ",
        ),
    ],
)
def test_a_result_that_does_not_fit_a_rule_passes_with_a_warning_or_a_log_line(
    text: str, value: dict[str, Any], warning: str, logged: str
) -> None:
    outcome = shaped(text, value)
    assert result(outcome.raw)["content"] == value["content"]
    assert [warned.kind for warned in outcome.warnings] == ([warning] if warning else [])
    assert (outcome.log_line or "").startswith(logged)
    assert bool(outcome.log_line) is bool(logged)


AS_TEXT = CONTRACT.replace(", required: [n]", "") + "validate: text\n"
BREAKS = {"n": 11, "more": [1.0]}


@pytest.mark.parametrize("more", ["", "max_bytes: 3000", "response: [{drop: gone}]"])
@pytest.mark.parametrize("own", [False, True])
def test_what_breaks_a_contract_of_texts_is_sent_as_it_came_with_itself_as_a_text(
    more: str, own: bool
) -> None:
    value = document(BREAKS, structured=own)
    outcome = shaped(AS_TEXT + more, value)
    [text] = texts(outcome.raw)
    assert result(outcome.raw)["content"] == value["content"]
    assert structured(outcome) == {"text": text}
    assert [warned.kind for warned in outcome.warnings] == ["contract: n maximum"]
    assert structured(shaped(AS_TEXT + more, document({"n": 1}))) == {"n": 1}


def test_what_breaks_a_contract_of_texts_is_cut_and_a_failing_rule_sends_a_text_too() -> None:
    long = shaped(f"{AS_TEXT}max_bytes: 600", document({"n": 11, "rows": [*range(900)]}))
    cut = json.loads(structured(long)["text"])
    assert long.visible_after <= 700
    assert (cut["n"], "rows" in cut["_abridged"]) == (11, True)
    bare = {"content": [], "structuredContent": {"n": 12}}
    assert structured(shaped(AS_TEXT, bare)) == {"text": '{"n":12}'}
    failing = with_step(rule(AS_TEXT), Raises(KeyError("x")), 0)
    failed = shape(job(failing, answer(document({"n": 1}, structured=True))))
    assert (failed.outcome, structured(failed)) == ("failed", {"text": '{"n":1}'})
