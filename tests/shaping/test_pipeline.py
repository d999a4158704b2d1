"""One response through its rule: what goes out, what is counted, what a failure leaves alone."""

import asyncio
import json
from typing import Any

import pytest

from proxy.errors import Refusal
from proxy.shaping.pipeline import shape
from tests.given import answer, document, line, result, rule, said, texts
from tests.jobs import CONTRACT, Raises, job, shaped, structured, with_step, withheld


def test_the_envelope_stays_as_it_came() -> None:
    result = rb'"result" : {"content": [{"type":"text","text":"{\"a\":1,\"b\":2}"}]}'
    raw = rb'{ "id" : 5.0, "x": 1e400, ' + result + rb', "jsonrpc": "2.0" }'

    made = shape(job(rule("response: [{keep: [a]}]"), raw))

    assert made.raw == (
        rb'{"id":5.0,"x":1e400,"result":{"content":[{"type":"text","text":"{\"a\":1}"}]},'
        rb'"jsonrpc":"2.0"}'
    )


@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize("prose", ["Found 2 items.", r"a\/b \u00e9"])
def test_prose_beside_structured_content_stays_as_it_came(prose: str) -> None:
    block = f'{{"type":"text","text":"{prose}"}}'.encode()
    raw = b'{"jsonrpc":"2.0","id":1,"result":{"content":[' + block + b'],"structuredContent":%s}}'

    made = shape(job(rule("response: [{drop: c}]"), raw % b'{"a":1,"c":2}'))

    assert made.raw == raw % b'{"a":1}'


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
        (DROPS, {"content": "no array"}, "untouched"),
        (DROPS, said("prose", "prose"), "untouched"),
        ("blocks: {drop: [image]}", {"content": [IMAGE, IMAGE]}, "untouched"),
        ("blocks: {drop: [image]}\ndocument: blocks", {"content": [IMAGE]}, "untouched"),
        ("blocks: {drop: [image]}\nmax_bytes: 1000", {"content": [IMAGE]}, "untouched"),
        # Errors.
        (DROPS, line(id=1, error={"code": -32603, "message": "no"}), "untouched"),
        (DROPS, {**document({"a": 1}), "isError": True}, "error"),
        (f"error_if: 'status >= `400`'\n{DROPS}", document({"status": 404, "a": 1}), "error"),
        (f"error_if: {{match: '^Database error'}}\n{DROPS}", said("Database error: 1"), "error"),
        # Expressions that do not fit.
        ("response: [{jmespath: 'abs(a)'}]", document({"a": "text"}), "failed"),
        ("response: [{project: [{b: {jmespath: abs(a)}}]}]", document({"a": "text"}), "failed"),
        ("error_if: 'abs(a)'", document({"a": "text"}), "failed"),
        ("response: [{filter: {where: 'abs(a)'}}]", document([{"a": "text"}]), "failed"),
        # What a rule that withholds lets pass.
        (CLOSED, {"resultType": "input_required", "inputRequests": {}}, "untouched"),
        (CLOSED, {"task": {"taskId": "a"}}, "untouched"),
        (CLOSED, said("no", isError=True), "error"),
        (f"mode: shadow\n{CLOSED}", document({"other": 1}), "untouched"),
        ("on_failure: refuse", {"content": [IMAGE]}, "untouched"),
        ("on_failure: refuse\nmax_bytes: 1000", {"content": [IMAGE]}, "untouched"),
        ("on_failure: refuse\nblocks: {drop: [audio]}", {"content": [IMAGE]}, "untouched"),
        (f"{CONTRACT}validate: warn\nmode: shadow", document({"n": 11}), "untouched"),
        (f"{CONTRACT}validate: refuse\nmode: shadow", document({"n": 11}), "shadow"),
    ],
)
def test_a_response_that_its_rule_has_nothing_to_do_for_is_the_same_bytes(
    text: str, response: Any, outcome: str
) -> None:
    raw = response if isinstance(response, bytes) else answer(response)
    made = shape(job(rule(text), raw))
    assert (made.raw, made.outcome) == (raw, outcome)
    assert made.raw is raw


def test_a_path_that_matches_nothing_is_told_even_where_nothing_changes() -> None:
    assert shaped("response: [{drop: [gone, a.lost]}]", document({"a": 1})).missing == (
        "gone",
        "a.lost",
    )


@pytest.mark.fault(38, "inside")
def test_a_document_of_another_shape_passes_as_it_came_and_says_so() -> None:
    raw = answer(document({"other": 1}))

    made = shape(job(rule("name: issues\nresponse: [{keep: [items.id]}]"), raw))

    assert (made.raw, made.outcome) == (raw, "untouched")
    assert made.log_line is not None
    assert made.log_line.startswith("issues: t: left as it came: ")


def test_an_expression_that_is_no_error_lets_the_steps_run() -> None:
    made = shaped(
        "error_if: 'status >= `400`'\nresponse: [{drop: a}]", document({"status": 200, "a": 1})
    )

    assert texts(made.raw) == ['{"status":200}']


def test_blocks_are_dropped_and_the_model_is_told() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    value = {"content": [{"type": "text", "text": "a picture"}, image, image]}

    made = shaped("blocks: {drop: [image]}", value)

    assert result(made.raw)["content"] == said("a picture", '{"_dropped":{"image":2}}')["content"]


def test_the_layout_is_kept_where_the_rule_says_so() -> None:
    pretty = json.dumps({"a": 1, "b": {"c": 2}}, indent=4)

    made = shaped("layout: as_sent\nresponse: [{drop: a}]", said(pretty))

    assert texts(made.raw) == [json.dumps({"b": {"c": 2}}, indent=4)]


def test_shadow_mode_measures_and_changes_nothing() -> None:
    value = document({"a": 1, "b": "x" * 100})
    raw = answer(value)

    made = shape(job(rule("mode: shadow\nresponse: [{drop: b}]"), raw, keep=True))

    assert (made.raw, made.outcome, made.snapshot) == (raw, "shadow", None)
    assert (made.visible_before, made.visible_after) == (len(texts(raw)[0]), len('{"a":1}'))


ERRORS = [
    TypeError("no"),
    RecursionError("deep"),
    MemoryError(),
    ZeroDivisionError("x"),
    KeyError(1),
    SystemExit(3),
    GeneratorExit(),
    asyncio.CancelledError(),
]


STEPS = (
    "response: [{keep: [a, items]}, {sort: {at: items, by: id}}, {paginate: {at: items, limit: 2}}]"
)


VALUE = document({"a": 1, "items": [{"id": n} for n in (3, 1, 2)], "b": 2}, structured=True)


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("at", range(4))
def test_a_step_that_raises_anywhere_costs_nothing(error: BaseException, at: int) -> None:
    raw = answer(VALUE)

    made = shape(job(with_step(rule(f"name: r\n{STEPS}"), Raises(error), at), raw, keep=True))

    assert (made.raw, made.outcome, made.snapshot) == (raw, "failed", None)
    assert str(made.log_line).startswith("r: t: failed at ")
    assert type(error).__name__ in str(made.log_line)


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
    made = shape(
        job(with_step(rule(text), Raises(TypeError("secret")), 0), answer(VALUE), **options)
    )
    expected = said("the response was withheld: rule 'r' failed on it", isError=True)
    assert result(made.raw) == ({"resultType": "complete"} if options else {}) | expected
    assert (made.outcome, made.log_line) == ("failed", "r: t: failed at raises: TypeError: secret")


def test_a_step_that_refuses_is_answered_with_its_words() -> None:
    made = shape(
        job(with_step(rule(""" name: r """), Raises(Refusal("ask for less")), 0), answer(VALUE))
    )

    assert (made.outcome, texts(made.raw), result(made.raw)["isError"]) == (
        "refused",
        ["ask for less"],
        True,
    )


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize("fails", [{"bypass": True}, {}], ids=["out of service", "broken"])
def test_the_original_that_goes_out_for_a_rule_keeps_its_promise(fails: dict[str, Any]) -> None:
    broken = with_step(rule(CONTRACT), Raises(ValueError("broken")), 0)
    made = shape(job(broken, answer(document({"n": 1})), **fails))
    assert made.outcome == "failed"
    assert made.raw == answer({**document({"n": 1}), "structuredContent": {"n": 1}})


@pytest.mark.parametrize("refuses", [False, True])
def test_a_violation_is_a_warning_or_a_refusal(refuses: bool) -> None:
    made = shaped(f"{CONTRACT}validate: {'refuse' if refuses else 'warn'}", document({"n": 11}))
    [warned] = made.warnings
    reason = "n: 11 is greater than the maximum of 10"
    assert (warned.kind, warned.text) == ("contract: n maximum", reason)
    if not refuses:
        assert structured(made) == {"n": 11}
        return
    assert texts(made.raw) == [f"the response breaks its contract: {reason}"]
    assert result(made.raw)["isError"] is True
    assert (structured(made), made.outcome) == (None, "refused")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (said("words"), "the response breaks its contract: 'words' is not of type 'object'"),
        ({"content": []}, "the response breaks its contract: it has no document"),
        (document({"other": 1}), "the response breaks its contract: 'n' is missing"),
    ],
)
def test_what_has_another_shape_breaks_the_contract(value: dict[str, Any], why: str) -> None:
    made = shaped(CONTRACT + "validate: refuse\nresponse: [{keep: [n]}]", value)
    assert result(made.raw)["isError"] is True
    assert texts(made.raw)[0].startswith(why.partition("'")[0])


@pytest.mark.parametrize("kind", ["auto", "structured"])
def test_what_has_no_document_is_bounded_and_no_step_works_on_it(kind: str) -> None:
    text = f"document: {kind}\nresponse: [{{filter: {{prefix: a}}}}]\nmax_bytes: 3000"
    short = {"content": [*said("b\nc")["content"], *said("d")["content"]]}
    made = shaped(text, short)
    assert made.outcome == "untouched"
    assert made.raw == answer(short)
    long = {"content": [*said("b" * 9000)["content"], *said("d")["content"]]}
    made = shaped(text, long)
    assert made.outcome == "shaped"
    first, last, *_ = texts(made.raw)
    assert first.startswith("bbb")
    assert len(first) < 3000
    assert last == "d"


@pytest.mark.parametrize("validate", ["warn", "refuse"])
def test_what_has_no_document_breaks_its_contract_whatever_its_bound(validate: str) -> None:
    two = {"content": [*said("b")["content"], *said("d")["content"]]}
    made = shaped(CONTRACT + f"validate: {validate}\nmax_bytes: 3000", two)
    if validate == "refuse":
        assert texts(made.raw) == ["the response breaks its contract: it has no document"]
    else:
        assert texts(made.raw) == ["b", "d"]
        assert [warned.kind for warned in made.warnings] == ["contract: no document"]


GROWS = "response: [{project: [a, some, more, keys]}]"


@pytest.mark.fault(35, "inside")
@pytest.mark.parametrize("structured", [False, True])
def test_without_allow_growth_what_would_be_longer_passes_as_it_came(structured: bool) -> None:
    raw = answer(document({"a": 1}, structured=structured))

    made = shape(job(rule(f"name: r\nallow_growth: false\n{GROWS}"), raw, keep=True))

    assert (made.raw, made.outcome, made.snapshot) == (raw, "untouched", None)
    assert made.visible_after == made.visible_before
    assert made.log_line == "r: t: left as it came: the model would see 43 bytes in place of 7"


def test_growth_is_counted_as_the_client_at_hand_shows_it() -> None:
    # One copy grows, the other goes.
    text = "allow_growth: false\ncopies: structured\nresponse: [{project: [a, more]}]"
    value = document({"a": 1234567}, structured=True)
    assert shaped(text, value, shows="structured").outcome == "untouched"
    assert shaped(text, value, shows="both").outcome == "shaped"


@pytest.mark.fault(35, "inside")
def test_a_rule_that_withholds_does_not_let_the_original_go_where_it_would_grow() -> None:
    made = shaped(f"name: r\nallow_growth: false\non_failure: refuse\n{GROWS}", document({"a": 1}))
    assert withheld(made) == "the response was withheld: rule 'r' does not fit it"


@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize(
    "value",
    [
        document({"other": "secret"}),
        said("secret"),
        said("secret", "words"),
        {"content": [{"type": "image", "data": "secret", "mimeType": "image/png"}]},
        document({"other": ["secret" * 50] * 100}),
    ],
)
@pytest.mark.parametrize("more", ["", "max_bytes: 1000"])
def test_a_rule_that_withholds_lets_nothing_go_that_it_does_not_fit(
    value: dict[str, Any], more: str
) -> None:
    made = shaped(f"name: r\non_failure: refuse\nresponse: [{{keep: [id]}}]\n{more}", value)
    assert withheld(made) == "the response was withheld: rule 'r' does not fit it"
    assert made.outcome == "refused"
    assert made.log_line is not None
    assert made.log_line.startswith("r: t: withheld: ")
    assert "secret" not in made.raw.decode()


def test_a_document_of_another_shape_may_go_where_it_keeps_the_contract() -> None:
    value = document({"n": 1}, structured=True)
    text = CONTRACT + "validate: refuse\nresponse: [{keep: [other]}]"
    assert shaped(text, value).raw == answer(value)
    assert withheld(shaped(text + "\non_failure: refuse", value)) == (
        "the response was withheld: rule 'jobs' does not fit it"
    )


@pytest.mark.fault(34, "inside")
def test_what_a_rule_out_of_service_is_for_goes_out_as_it_came_at_once() -> None:
    raw = answer(VALUE)
    made = shape(job(with_step(rule(STEPS), Raises(TypeError()), 0), raw, keep=True, bypass=True))
    assert (made.raw, made.outcome, made.log_line, made.snapshot) == (raw, "failed", None, None)
