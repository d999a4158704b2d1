"""One response through its rule: what goes out, what is counted, what a failure leaves alone."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from proxy.clients import Shows
from proxy.document import Document, Slot
from proxy.errors import Mismatch, Refusal, TransformError
from proxy.fuel import LITTLE
from proxy.pipeline import Job, Outcome, run, shape
from proxy.rule import Rule
from proxy.snapshots import Snapshot
from proxy.transforms.base import Call, Parameter
from tests.given import answer, document, line, result, rule, said, texts


def job(made: Rule, raw: bytes, **members: Any) -> Job:
    return Job(rule=made, tool="t", id=b"1", raw=raw, **members)


def shaped(text: str, value: dict[str, Any], **members: Any) -> Outcome:
    return shape(job(rule(text), answer(value), **members))


class Raises:
    """A step that raises whatever it is given."""

    name, window, cuts = "raises", False, False
    parameters: Mapping[str, Parameter] = {}

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, root: object, call: object) -> None:
        raise self.error


def with_step(made: Rule, step: object, at: int) -> Rule:
    steps: list[Any] = [*made.pipeline[:at], step, *made.pipeline[at:]]
    return msgspec.structs.replace(made, pipeline=tuple(steps))


# What goes out


def test_the_steps_run_in_order_and_both_copies_are_rewritten() -> None:
    made = shaped(
        "response: [{keep: [items.id, items.n]}, {drop: items.n}]",
        document({"items": [{"id": 1, "n": 2, "x": 3}], "y": 4}, structured=True),
    )

    assert made.raw == answer(document({"items": [{"id": 1}]}, structured=True))
    assert made.word == "shaped"


def test_the_envelope_stays_as_it_came() -> None:
    result = rb'"result" : {"content": [{"type":"text","text":"{\"a\":1,\"b\":2}"}]}'
    raw = rb'{ "id" : 5.0, "x": 1e400, ' + result + rb', "jsonrpc": "2.0" }'

    made = shape(job(rule("response: [{keep: [a]}]"), raw))

    assert made.raw == (
        rb'{"id":5.0,"x":1e400,"result":{"content":[{"type":"text","text":"{\"a\":1}"}]},'
        rb'"jsonrpc":"2.0"}'
    )


@pytest.mark.parametrize(
    "spelled",
    ["1.0", "1e400", "12345678901234567890123", "-0", '"\\/ \\u00e9"', '"\\ud800"', "1.10"],
)
def test_a_value_that_is_kept_is_spelled_as_it_came(spelled: str) -> None:
    raw = answer(said(f'{{"a": [{spelled}, {{"b": {spelled}}}], "c": 1}}'))

    made = shape(job(rule("response: [{drop: c}]"), raw))

    assert texts(made.raw) == [f'{{"a":[{spelled},{{"b":{spelled}}}]}}']


@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize("prose", ["Found 2 items.", r"a\/b \u00e9"])
def test_prose_beside_structured_content_stays_as_it_came(prose: str) -> None:
    block = f'{{"type":"text","text":"{prose}"}}'.encode()
    raw = b'{"jsonrpc":"2.0","id":1,"result":{"content":[' + block + b'],"structuredContent":%s}}'

    made = shape(job(rule("response: [{drop: c}]"), raw % b'{"a":1,"c":2}'))

    assert made.raw == raw % b'{"a":1}'


def test_a_lone_surrogate_outside_the_document_is_carried_through() -> None:
    block = rb'{"type":"text","text":"{\"a\":1,\"b\":\"\ud800\"}"}'
    raw = rb'{"jsonrpc":"2.0","id":1,"result":{"content":[' + block + rb'],"_meta":{"x":"\uD83D"}}}'

    made = shape(job(rule("response: [{drop: a}]"), raw))

    assert rb'"_meta":{"x":"\uD83D"}' in made.raw
    assert json.loads(texts(made.raw)[0]) == {"b": "\ud800"}


def test_a_rule_that_changes_nothing_leaves_the_same_bytes() -> None:
    raw = b'{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "{}"}]}}'

    made = shape(job(rule("response: [{drop: gone}]"), raw))

    assert (made.raw, made.word) == (raw, "untouched")
    assert made.raw is raw


def test_a_path_that_matches_nothing_is_told_even_where_nothing_changes() -> None:
    assert shaped("response: [{drop: [gone, a.lost]}]", document({"a": 1})).missing == (
        "gone",
        "a.lost",
    )


@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize(
    ("value", "word"),
    [
        ({"resultType": "input_required", "inputRequests": {}}, "untouched"),
        ({"task": {"taskId": "a"}}, "untouched"),
        ({"resultType": "task", **document({"a": 1})}, "untouched"),
        ({**document({"a": 1}), "isError": True}, "error"),
        ({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}, "untouched"),
        ({"content": "no array"}, "untouched"),
        (said("prose", "prose"), "untouched"),
    ],
)
def test_a_result_without_a_document_passes_as_it_came(value: dict[str, Any], word: str) -> None:
    raw = answer(value)

    made = shape(job(rule("response: [{drop: a}]"), raw))

    assert (made.raw, made.word) == (raw, word)


@pytest.mark.fault(38, "inside")
def test_a_document_of_another_shape_passes_as_it_came_and_says_so() -> None:
    raw = answer(document({"other": 1}))

    made = shape(job(rule("name: issues\nresponse: [{keep: [items.id]}]"), raw))

    assert (made.raw, made.word) == (raw, "untouched")
    assert made.said is not None
    assert made.said.startswith("issues: t: left as it came: ")


@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("error_if: 'status >= `400`'", document({"status": 404, "a": 1})),
        ("error_if: {match: '^Database error'}", said("Database error: no such column")),
    ],
)
def test_what_error_if_names_is_an_error_and_stays(condition: str, value: dict[str, Any]) -> None:
    raw = answer(value)

    made = shape(
        job(rule(f"{condition}\nresponse: [{{drop: a}}, {{clip: {{max_chars: 3}}}}]"), raw)
    )

    assert (made.raw, made.word) == (raw, "error")


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


def test_one_copy_is_left_out_where_the_rule_says_so() -> None:
    value = document({"a": 1}, structured=True)

    assert result(shaped("copies: text\nresponse: [{drop: b}]", value).raw) == said('{"a":1}')
    assert result(shaped("copies: structured\nresponse: [{drop: b}]", value).raw) == said(
        structuredContent={"a": 1}
    )


def test_shadow_mode_measures_and_changes_nothing() -> None:
    value = document({"a": 1, "b": "x" * 100})
    raw = answer(value)

    made = shape(job(rule("mode: shadow\nresponse: [{drop: b}]"), raw, keep=True))

    assert (made.raw, made.word, made.snapshot) == (raw, "shadow", None)
    assert (made.visible_before, made.visible_after) == (len(texts(raw)[0]), len('{"a":1}'))


@pytest.mark.parametrize(
    ("shows", "before", "after"), [("structured", 17, 7), ("text", 17, 7), ("both", 34, 14)]
)
def test_visible_bytes_are_those_of_the_client_at_hand(shows: Any, before: int, after: int) -> None:
    made = shaped(
        "response: [{drop: b}]", document({"a": 1, "b": 22222}, structured=True), shows=shows
    )

    assert (made.visible_before, made.visible_after) == (before, after)


# Failure


ERRORS = [
    TypeError("no"),
    RecursionError("deep"),
    MemoryError(),
    ZeroDivisionError("x"),
    KeyError(1),
]
STEPS = (
    "response: [{keep: [a, items]}, {sort: {at: items, by: id}}, {paginate: {at: items, limit: 2}}]"
)
VALUE = document({"a": 1, "items": [{"id": n} for n in (3, 1, 2)], "b": 2}, structured=True)


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("at", range(4))
def test_a_step_that_raises_anywhere_costs_nothing(error: Exception, at: int) -> None:
    raw = answer(VALUE)

    made = shape(job(with_step(rule(f"name: r\n{STEPS}"), Raises(error), at), raw, keep=True))

    assert (made.raw, made.word, made.snapshot) == (raw, "failed", None)
    assert made.said is not None
    assert made.said.startswith(f"r: t: failed at raises: {type(error).__name__}")


@pytest.mark.fault(34, "inside")
def test_a_rule_that_refuses_withholds_what_it_failed_on() -> None:
    made = shape(
        job(
            with_step(rule("name: r\non_failure: refuse"), Raises(TypeError("secret")), 0),
            answer(VALUE),
        )
    )

    assert result(made.raw) == {
        "content": [{"type": "text", "text": "the response was withheld: rule 'r' failed on it"}],
        "isError": True,
    }
    assert made.word == "failed"
    assert made.said == "r: t: failed at raises: TypeError: secret"


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), asyncio.CancelledError()])
def test_what_is_no_exception_of_the_usual_kind_costs_nothing_either(error: BaseException) -> None:
    raw = answer(VALUE)
    made = shape(job(with_step(rule("name: r"), Raises(error), 0), raw))
    assert (made.raw, made.word) == (raw, "failed")
    assert type(error).__name__ in str(made.said)


class Unsayable(Exception):
    def __str__(self) -> str:
        raise MemoryError


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize("refuses", [False, True])
def test_an_error_that_cannot_be_told_costs_nothing_either(refuses: bool) -> None:
    raw = answer(VALUE)
    text = "on_failure: refuse" if refuses else "on_failure: pass"
    made = shape(job(with_step(rule(text), Raises(Unsayable()), 0), raw))
    assert made.word == "failed"
    assert (made.raw == raw) is not refuses
    assert result(made.raw).get("isError", False) is refuses


@pytest.mark.fault(34, "inside")
def test_a_rule_that_refuses_withholds_what_it_cannot_read() -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"result":{"content":[5,"secret",{"type":"text","text":'

    made = shape(job(rule("name: r\non_failure: refuse\nresponse: [{drop: a}]"), raw))

    assert (made.word, b"secret" in made.raw) == ("failed", False)


def test_a_step_that_refuses_is_answered_with_its_words() -> None:
    made = shape(
        job(with_step(rule(""" name: r """), Raises(Refusal("ask for less")), 0), answer(VALUE))
    )

    assert (made.word, texts(made.raw), result(made.raw)["isError"]) == (
        "refused",
        ["ask for less"],
        True,
    )


def test_a_modern_refusal_names_its_type() -> None:
    failing = with_step(rule("on_failure: refuse"), Raises(TypeError()), 0)

    made = shape(job(failing, answer(VALUE), modern=True))

    assert result(made.raw)["resultType"] == "complete"


@pytest.mark.fault(38, "inside")
def test_a_document_of_another_shape_is_bounded_all_the_same() -> None:
    made = shaped(
        "response: [{keep: [items.id]}]\nmax_bytes: 1000",
        document({"other": ["x" * 50] * 100, "n": 1}),
        keep=True,
    )

    assert made.word == "shaped"
    assert len(texts(made.raw)[0]) <= 1000
    assert "_abridged" in texts(made.raw)[0]
    assert made.said is not None
    assert made.said.startswith("*: t: left as it came:")


def test_run_says_which_step_raised() -> None:
    made = with_step(rule("response: [{drop: a}]"), Raises(TypeError("no")), 1)
    call = Call("t", notices=[], missing=[])

    with pytest.raises(TransformError, match="raises: TypeError: no") as caught:
        run(made, Document({"a": 1}), call, slice(None))
    assert caught.value.step == "raises"


def test_run_lets_a_mismatch_pass() -> None:
    made = with_step(rule("response: [{drop: a}]"), Raises(Mismatch("other")), 0)

    with pytest.raises(Mismatch):
        run(made, Document({"a": 1}), Call("t", notices=[], missing=[]), slice(None))


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize(
    "text",
    [
        "response: [{jmespath: 'abs(a)'}]",
        "response: [{project: [{b: {jmespath: abs(a)}}]}]",
        "error_if: 'abs(a)'",
        "response: [{filter: {where: 'abs(a)'}}]",
    ],
)
def test_an_expression_of_the_rule_that_does_not_fit_never_costs_the_answer(text: str) -> None:
    raw = answer(document([{"a": "text"}] if "filter" in text else {"a": "text"}))

    assert shape(job(rule(text), raw)).raw == raw


def test_every_step_is_observed() -> None:
    seen: list[tuple[str, bytes]] = []

    def observe(step: str, document: Document, call: Call) -> None:
        seen.append((step, document.encode()))

    shape(
        job(rule("response: [{drop: a}, {drop: b}]"), answer(document({"a": 1, "b": 2}))), observe
    )

    assert seen == [("drop", b'{"b":2}'), ("drop", b"{}")]


# Snapshots

PAGES = "response: [{drop: b}, {paginate: {at: items, limit: 2}}]"


def kept(text: str, value: dict[str, Any]) -> Snapshot:
    made = shaped(text, value, keep=True)
    assert made.snapshot is not None
    return made.snapshot


def page(text: str, snapshot: Snapshot, **arguments: Any) -> Outcome:
    asked = {"limit": 2, "offset": 0, **arguments}
    return shape(Job(rule=rule(text), tool="t", id=b'"x"', snapshot=snapshot, arguments=asked))


def test_a_snapshot_is_the_document_before_the_first_window() -> None:
    snapshot = kept(PAGES, document({"items": [1, 2, 3], "b": 1, "c": 2}))

    assert snapshot.document == b'{"items":[1,2,3],"c":2}'


def test_without_being_asked_for_no_snapshot_is_made() -> None:
    assert shaped(PAGES, document({"items": [1, 2, 3]})).snapshot is None
    assert shaped("response: [{drop: b}]", document({"b": 1}), keep=True).snapshot is None


def test_a_later_page_is_cut_from_the_snapshot_under_its_own_id() -> None:
    value = {**document({"items": [1, 2, 3], "b": 1}, structured=True), "_meta": {"a": 1.50}}

    made = page(PAGES, kept(PAGES, value), offset=2)

    assert made.word == "page"
    assert json.loads(made.raw)["id"] == "x"
    found = result(made.raw)
    assert found["structuredContent"]["items"] == [3]
    assert json.loads(texts(made.raw)[0]) == found["structuredContent"]
    assert found["_meta"] == {"a": 1.50}


def test_pages_of_one_snapshot_rejoin() -> None:
    snapshot = kept(PAGES, document({"items": list(range(7))}))

    pages = [json.loads(texts(page(PAGES, snapshot, offset=at).raw)[0]) for at in (0, 2, 4, 6)]

    assert [item for each in pages for item in each["items"]] == list(range(7))
    assert [each["pagination"]["nextOffset"] for each in pages] == [2, 4, 6, None]


def test_the_snapshot_of_blocks_is_not_changed_by_the_steps_that_follow() -> None:
    text = "response: [{elide: {at: tags, first: 1}}, {paginate: {limit: 2}}]"
    value = said(*(json.dumps({"tags": [n, n, n]}) for n in range(3)))

    snapshot = kept(text, value)

    assert json.loads(snapshot.document) == [{"tags": [n, n, n]} for n in range(3)]


@pytest.mark.parametrize("item", [r"\\ud800", r"\ud800", "plain"])
@pytest.mark.parametrize("meta", [r"\ud800", "plain"])
def test_lone_surrogates_survive_a_snapshot_wherever_they_stand(item: str, meta: str) -> None:
    text = f'{{\\"items\\":[1,\\"{item}\\",3]}}'
    raw = (
        f'{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}],'
        f'"_meta":{{"x":"{meta}"}}}}}}'
    ).encode()
    first = shape(job(rule(PAGES), raw, keep=True, arguments={"limit": 1, "offset": 0}))
    assert first.snapshot is not None

    second = page(PAGES, first.snapshot, limit=1, offset=1)

    for made in (first, second):
        assert f'"_meta":{{"x":"{meta}"}}'.encode() in made.raw
    [found] = json.loads(texts(second.raw)[0])["items"]
    assert found == ("plain" if item == "plain" else "\ud800")


@pytest.mark.fault(34, "inside")
def test_a_step_that_fails_on_a_snapshot_is_answered_with_an_error() -> None:
    snapshot = kept(PAGES, document({"items": [1, 2, 3]}))
    failing = with_step(rule(f"name: r\n{PAGES}"), Raises(TypeError("no")), 2)

    made = shape(Job(rule=failing, tool="t", id=b"2", snapshot=snapshot, arguments={"offset": 2}))

    assert result(made.raw)["isError"] is True
    assert json.loads(made.raw)["id"] == 2


# Bounds and views

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


def test_what_stands_beside_the_document_counts_too() -> None:
    value = said("p" * 500, json.dumps({"items": ["x" * 20] * 100}))

    made = shaped(BOUND, value)

    assert sum(map(len, texts(made.raw))) <= 1000


PROSE = "A line of prose.\n" * 500


def test_prose_that_crowds_a_json_text_out_is_abridged_with_it() -> None:
    text = "max_bytes: 4000"
    made = shaped(text, said(PROSE, json.dumps({"items": [1]})), keep=True)

    prose, small, told = texts(made.raw)
    assert json.loads(small) == {"items": [1]}
    assert len(prose + small + told) <= 4000
    view = json.loads(told)["_abridged"]["more"].split("'")[1]
    more = shape(Job(rule=rule(text), tool="t", id=b"2", snapshot=made.snapshot, view=view))
    [answered, *_] = texts(more.raw)
    assert PROSE.startswith(prose.removesuffix("…") + answered)


@pytest.mark.parametrize("text", [BOUND, f"response: [{{drop: y}}]\n{BOUND}"])
@pytest.mark.parametrize("value", [{"items": [1]}, {"items": ["x" * 20] * 100}])
def test_prose_that_crowds_structured_content_out_is_shortened(
    text: str, value: dict[str, Any]
) -> None:
    made = shaped(text, {**said(PROSE), "structuredContent": value})

    prose, told = texts(made.raw)
    assert PROSE.startswith(prose)
    assert json.loads(told) == {"_abridged": {"text": f"{len(prose)} of {len(PROSE)} chars"}}
    assert len(prose + told) <= 1000
    found = result(made.raw)["structuredContent"]
    assert len(json.dumps(found)) <= 1000
    assert (found == value) == (value == {"items": [1]})


def test_several_texts_that_crowd_a_document_out_are_shortened_together() -> None:
    made = shaped(
        "max_bytes: 16000",
        {**said(PROSE, "short", "x" * 9000), "structuredContent": {"items": [1]}},
    )

    first, second, third, told = texts(made.raw)
    assert PROSE.startswith(first.removesuffix("…"))
    assert second == "short"
    assert third.startswith("xxx")
    assert json.loads(told) == {
        "_abridged": {"[]": f"{len(first) - 1} of {len(PROSE)} chars (the first of 2 cut)"}
    }
    assert result(made.raw)["structuredContent"] == {"items": [1]}
    assert len(first + second + third + told) <= 16000


def test_prose_beside_a_document_that_a_rule_shapes_is_bounded_too() -> None:
    made = shaped(
        f"response: [{{drop: y}}]\n{BOUND}", said(PROSE, json.dumps({"items": [1], "y": 2}))
    )

    prose, told, shaped_text = texts(made.raw)
    assert len(prose + told + shaped_text) <= 1000
    assert json.loads(shaped_text) == {"items": [1]}


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


@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize("shows", ["structured", "text", "either", "both"])
@pytest.mark.parametrize("step", ["", "response: [{truncate: {max_length: 300}}]"])
def test_a_text_that_was_cut_stands_in_promised_structured_content_with_what_was_cut(
    step: str, shows: Shows
) -> None:
    contract = f"{step}\n{BOUND}\noutput_schema: {{type: object}}"
    made = shaped(contract, said('say "\n" ' * 400), shows=shows)

    text, told = texts(made.raw)
    found = result(made.raw)["structuredContent"]
    assert list(found) == ["text", "truncation" if step else "_abridged"]
    assert found["text"] == text
    assert found["truncation" if step else "_abridged"] == (
        json.loads(told) if step else json.loads(told)["_abridged"]
    )
    assert 300 < made.visible_after <= 1000


def test_texts_beside_a_document_that_is_no_object_stand_in_promised_structured_content() -> None:
    contract = "response: [{elide: {at: '[].a', first: 1}}]\noutput_schema: {type: object}"
    made = shaped(contract, said("Found:", '[{"a":[1,2]}]'))

    expected = {"text": 'Found:\n[{"a":[1],"_elided":{"a":"1 of 2"}}]'}
    assert result(made.raw)["structuredContent"] == expected


def test_several_texts_that_are_no_json_are_abridged_as_blocks() -> None:
    made = shaped(BOUND, said("a" * 2000, "b" * 2000))

    assert sum(map(len, texts(made.raw))) <= 1000


def test_a_view_looks_into_the_snapshot() -> None:
    snapshot = kept(BOUND, LONG)

    made = shape(Job(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view="items[98:].id"))

    assert made.word == "view"
    assert result(made.raw)["structuredContent"] == {"view": [98, 99]}
    assert json.loads(texts(made.raw)[0]) == {"view": [98, 99]}


def test_a_view_of_a_text_is_a_text() -> None:
    snapshot = kept(BOUND, said("".join(f"{n:04}" for n in range(1000))))

    made = shape(
        Job(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view="text[2000:2008]")
    )

    assert texts(made.raw) == ["05000501"]


def test_a_view_that_is_too_long_is_abridged_in_turn() -> None:
    snapshot = kept(BOUND, LONG)

    made = shape(Job(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view="items"))

    assert len(texts(made.raw)[0]) <= 1000


def test_a_wrong_view_is_refused_with_an_advice() -> None:
    snapshot = kept(BOUND, LONG)

    made = shape(Job(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view="items[["))

    assert made.word == "refused"
    assert result(made.raw)["isError"] is True
    assert texts(made.raw)[0].endswith("write a JMESPath such as items[0:20]")


def test_a_view_sees_the_document_after_what_the_rule_drops() -> None:
    text = f"response: [{{drop: secret}}]\n{BOUND}"
    snapshot = kept(text, document({"items": ["x" * 20] * 100, "secret": "s"}))

    made = shape(Job(rule=rule(text), tool="t", id=b"2", snapshot=snapshot, view="secret"))

    assert json.loads(texts(made.raw)[0]) == {
        "view": None,
        "more": "null, or nothing there; write a JMESPath such as items[0:20]",
    }


def test_a_text_can_be_viewed_by_the_name_of_the_member_that_holds_it() -> None:
    long = "0123456789" * 200
    snapshot = kept(BOUND, said(long, structuredContent={"content": long}))

    for view in ("content[1002:1005]", "text[1002:1005]"):
        made = shape(Job(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view=view))

        assert result(made.raw)["structuredContent"] == {"content": "234"}
        assert texts(made.raw) == ["234"]


def test_a_view_can_be_answered_from_a_fresh_response() -> None:
    made = shaped(BOUND, LONG, view="items[1].id", keep=True)

    assert made.word == "view"
    assert json.loads(texts(made.raw)[0]) == {"view": 1}
    assert made.snapshot is not None


def test_an_error_response_is_nothing_to_shape() -> None:
    raw = line(id=1, error={"code": -32603, "message": "no"})

    assert shape(job(rule("response: [{drop: a}]"), raw)).raw == raw


@pytest.mark.parametrize("copies", ["structured", "text"])
def test_what_is_no_copy_of_the_document_is_not_left_out_as_one(copies: str) -> None:
    rule = f"document: text\ncopies: {copies}\nresponse: [{{replace: {{pattern: x, with: y}}}}]"
    assert result(shaped(rule, said("x", structuredContent={"z": 1})).raw) == said(
        "y", structuredContent={"z": 1}
    )


# What a contract promises

CONTRACT = """
name: jobs
output_schema: {type: object, properties: {n: {type: integer, maximum: 10}}, required: [n]}
"""


def structured(outcome: Outcome) -> Any:
    return result(outcome.raw).get("structuredContent")


@pytest.mark.parametrize("more", ["", "validate: warn", "validate: refuse"])
def test_a_document_that_is_only_text_stands_in_structured_content_too(more: str) -> None:
    value = {**document({"n": 1}), "_meta": {"a": 1.0}}
    made = shaped(CONTRACT + more, value)
    assert made.raw == answer({**value, "structuredContent": {"n": 1}})
    assert made.warnings == ()


def test_a_kept_number_is_spelled_in_both_copies_as_the_server_spelled_it() -> None:
    text = said('{"n":1.0,"m":1e400}')
    made = shaped(CONTRACT + "response: [{keep: [n, m]}]", text)
    assert b'"structuredContent":{"n":1.0,"m":1e400}' in made.raw


@pytest.mark.parametrize(
    ("value", "promised"),
    [
        (said("just words"), {"text": "just words"}),
        (said("two", "blocks"), {"text": "two\nblocks"}),
        (document([1, 2]), {"text": "[1,2]"}),
        ({"content": []}, {"text": ""}),
    ],
)
def test_what_is_no_object_is_a_text_there(value: dict[str, Any], promised: Any) -> None:
    made = shaped(CONTRACT, value)
    assert structured(made) == promised
    assert result(made.raw)["content"] == value["content"]


@pytest.mark.parametrize(
    "value",
    [
        said("no", isError=True),
        {"resultType": "input_required", "content": []},
        document({"n": 1}, structured=True),
        said("prose", structuredContent={"n": 1}),
    ],
)
def test_an_error_a_question_and_what_is_structured_already_stay_as_they_came(
    value: dict[str, Any],
) -> None:
    assert shaped(CONTRACT, value).raw == answer(value)


def test_what_was_checked_as_the_text_of_a_member_is_what_stands_there() -> None:
    value = said('{"n":1.0}', structuredContent={"result": '{"n":1.0}'})
    assert shaped(CONTRACT + "validate: warn", value).raw == answer(value)
    made = shaped(CONTRACT + "validate: refuse", value)
    assert b'"structuredContent":{"n":1.0}' in made.raw
    assert result(made.raw)["content"] == value["content"]


@pytest.mark.fault(34, "inside")
def test_the_original_that_goes_out_for_a_failure_keeps_the_promise_too() -> None:
    made = with_step(rule(CONTRACT), Raises(ValueError("broken")), 0)
    outcome = shape(job(made, answer(document({"n": 1}))))
    assert outcome.word == "failed"
    assert outcome.raw == answer({**document({"n": 1}), "structuredContent": {"n": 1}})


def test_a_violation_is_a_warning_and_the_response_goes_out() -> None:
    made = shaped(CONTRACT + "validate: warn", document({"n": 11}))
    assert structured(made) == {"n": 11}
    [warned] = made.warnings
    assert warned.kind == "contract: n maximum"
    assert warned.said == "n: 11 is greater than the maximum of 10"


def test_a_violation_is_refused_and_counted() -> None:
    made = shaped(CONTRACT + "validate: refuse", document({"n": 11}))
    assert texts(made.raw) == [
        "the response breaks its contract: n: 11 is greater than the maximum of 10"
    ]
    assert result(made.raw)["isError"] is True
    assert structured(made) is None
    assert [warned.kind for warned in made.warnings] == ["contract: n maximum"]
    assert made.word == "refused"


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


@pytest.mark.fault(34, "inside")
def test_where_the_rule_fails_an_unchecked_response_is_withheld() -> None:
    made = with_step(rule(CONTRACT + "validate: refuse"), Raises(ValueError("broken")), 0)
    outcome = shape(job(made, answer(document({"n": 1}))))
    assert texts(outcome.raw) == ["the response was withheld: rule 'jobs' failed on it"]


def test_a_cut_by_max_bytes_is_no_violation() -> None:
    open_schema = CONTRACT.replace("n: {", "items: {type: array}, n: {")
    value = document({"n": 1, "items": ["x" * 50] * 50})
    made = shaped(open_schema + "validate: refuse\nmax_bytes: 600", value)
    assert made.word == "shaped"
    assert made.warnings == ()
    assert structured(made)["n"] == 1


@pytest.mark.parametrize("validate", ["warn", "refuse"])
def test_a_contract_in_shadow_mode_changes_nothing(validate: str) -> None:
    value = document({"n": 11})
    made = shaped(CONTRACT + f"validate: {validate}\nmode: shadow", value)
    assert made.raw == answer(value)


def test_copies_text_gives_no_structured_content() -> None:
    assert structured(shaped(CONTRACT + "copies: text", document({"n": 1}))) is None


# Growth and emptiness


class Repeats:
    """A step of somebody's own, which makes an array of a thousand times the document."""

    name, window, cuts = "repeats", False, False
    parameters: Mapping[str, Parameter] = {}

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, root: Slot, call: object) -> None:
        root.set([root.get()] * self.times)


GROWS = "response: [{project: [a, some, more, keys]}]"


def test_a_fixed_shape_may_make_a_small_result_larger() -> None:
    assert texts(shaped(GROWS, document({"a": 1})).raw) == [
        '{"a":1,"some":null,"more":null,"keys":null}'
    ]


@pytest.mark.fault(35, "inside")
@pytest.mark.parametrize("structured", [False, True])
def test_without_allow_growth_what_would_be_longer_passes_as_it_came(structured: bool) -> None:
    raw = answer(document({"a": 1}, structured=structured))

    made = shape(job(rule(f"name: r\nallow_growth: false\n{GROWS}"), raw, keep=True))

    assert (made.raw, made.word, made.snapshot) == (raw, "untouched", None)
    assert made.visible_after == made.visible_before
    assert made.said == "r: t: left as it came: the model would see 43 bytes in place of 7"


def test_without_allow_growth_what_is_no_longer_is_shaped() -> None:
    made = shaped(f"allow_growth: false\n{GROWS}", document({"a": 1, "b": "x" * 40}))
    assert made.word == "shaped"


def test_growth_is_counted_as_the_client_at_hand_shows_it() -> None:
    # One copy grows, the other goes.
    text = "allow_growth: false\ncopies: structured\nresponse: [{project: [a, more]}]"
    value = document({"a": 1234567}, structured=True)
    assert shaped(text, value, shows="structured").word == "untouched"
    assert shaped(text, value, shows="both").word == "shaped"


@pytest.mark.fault(35, "inside")
def test_a_rule_that_withholds_does_not_let_the_original_go_where_it_would_grow() -> None:
    made = shaped(f"name: r\nallow_growth: false\non_failure: refuse\n{GROWS}", document({"a": 1}))
    assert withheld(made) == "the response was withheld: rule 'r' does not fit it"


@pytest.mark.fault(35, "inside")
@pytest.mark.parametrize("times", [3_000, 1_000_000])
def test_a_result_out_of_all_proportion_is_a_failure(times: int) -> None:
    raw = answer(document({"a": "x" * 1000}))
    made = rule("name: r\nresponse: [{jmespath: a}]")
    foreign = msgspec.structs.replace(with_step(made, Repeats(times), 1), foreign=True)

    outcome = shape(job(foreign, raw))

    assert (outcome.raw, outcome.word) == (raw, "failed")
    assert outcome.said == "r: t: failed at repeats: it gives more than 1052608 bytes"


@pytest.mark.fault(35, "inside")
def test_a_computed_field_that_repeats_the_document_is_stopped_before_it_is_written() -> None:
    doubled = "@" + " | [@, @]" * 40
    raw = answer(document({"a": "x" * 1000}))

    outcome = shape(
        job(rule(f"name: r\nresponse: [{{project: [{{b: {{jmespath: '{doubled}'}}}}]}}]"), raw)
    )

    assert (outcome.raw, outcome.word) == (raw, "failed")


@pytest.mark.fault(35, "inside")
def test_many_keys_for_many_small_rows_are_a_failure_beyond_the_bound() -> None:
    keys = ", ".join(f"key_{n}_{'x' * 30}" for n in range(20))
    raw = answer(document([{"a": 1}] * 5_000))

    outcome = shape(job(rule(f"name: r\nresponse: [{{project: [a, {keys}]}}]"), raw))

    assert (outcome.raw, outcome.word) == (raw, "failed")
    assert outcome.said is not None
    assert outcome.said.startswith("r: t: failed at the end: a result of ")


@pytest.mark.fault(35, "inside")
def test_an_error_that_grows_out_of_all_proportion_goes_out_as_it_came() -> None:
    shape_of = ", ".join(["'{text}'"] * 100)
    text = f"name: r\nerrors: [{{recast: {{cases: [{{match: '.', to: {{a: [{shape_of}]}}}}]}}}}]"
    raw = answer(said("x" * 20_000, isError=True))
    made = shape(job(rule(text), raw))
    assert (made.raw, made.word) == (raw, "error")
    assert made.said is not None
    assert made.said.startswith("r: t: errors: a result of ")


REMOVES = [
    ("response: [{drop: [a, b]}]", document({"a": 1, "b": {"c": 2}})),
    ("response: [{drop: 'items.*'}]", document({"items": [{"a": 1}, {"b": 2}]})),
    ("response: [{drop: a}]", document([{"a": 1}, {"a": 2}], structured=True)),
    ("response: [{drop: a}]", said('{"a":1}', '{"a":2}')),
    ("response: [{drop: a}]", said('"{\\"a\\":1}"')),
    ("response: [{keep: [a]}, {drop: a}]", document({"a": 1, "b": 2})),
    ("response: [{project: [{login: user.login}]}]", document({"user": {"handle": "x"}})),
]


@pytest.mark.fault(35, "inside")
@pytest.mark.parametrize(("text", "value"), REMOVES)
def test_a_rule_that_would_remove_everything_lets_the_original_go(
    text: str, value: dict[str, Any]
) -> None:
    raw = answer(value)

    made = shape(job(rule(f"name: r\n{text}"), raw, keep=True))

    assert (made.raw, made.word, made.snapshot) == (raw, "untouched", None)
    assert made.said == "r: t: left as it came: everything was removed by rule 'r'"


@pytest.mark.fault(35, "inside")
@pytest.mark.parametrize(("text", "value"), REMOVES)
def test_a_rule_that_withholds_says_that_everything_was_removed(
    text: str, value: dict[str, Any]
) -> None:
    made = shaped(f"name: r\non_failure: refuse\n{text}", value)
    assert withheld(made) == "everything was removed by rule 'r'"
    assert made.said == "r: t: withheld: everything was removed by rule 'r'"


def test_what_is_emptied_is_bounded_all_the_same() -> None:
    text = "response: [{drop: '*'}]\nblocks: {drop: [image]}\nmax_bytes: 1000"
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    value = document({"a": ["x" * 50] * 100})
    made = shaped(text, {"content": [*value["content"], image]})
    assert made.word == "shaped"
    assert "_abridged" in texts(made.raw)[0]
    assert len(texts(made.raw)[0]) <= 1000
    assert result(made.raw)["content"][1:] == [image]


@pytest.mark.parametrize(
    ("text", "value", "left"),
    [
        (
            "response: [{filter: {at: items, where: 'a > `9`'}}]",
            {"items": [{"a": 1}]},
            {"items": []},
        ),
        ("response: [{filter: {where: 'a > `9`'}}]", [{"a": 1}], []),
        ("response: [{jmespath: 'x'}]", {"a": 1}, None),
        ("response: [{jmespath: '`{}`'}, {drop: a}]", {"a": 1}, {}),
        ("response: [{recast: {cases: [{where: a, to: {}}]}}]", {"a": 1}, {}),
        ("response: [{drop: took}]", {"error": None, "took": 5}, {"error": None}),
        ("response: [{keep: error}]", {"error": None, "took": 5}, {"error": None}),
        ("response: [{drop: took}]", {"out": "", "took": 5}, {"out": ""}),
        ("response: [{drop: took}]", {"items": [], "took": 5}, {"items": []}),
        ("response: [{project: [{login: user.login}]}]", {"user": None}, {"login": None}),
        ("response: [{project: [a, b]}]", {}, {"a": None, "b": None}),
        ("response: [{drop: a}]", {"a": None}, {}),
    ],
)
def test_an_answer_that_says_there_is_nothing_is_one(text: str, value: Any, left: Any) -> None:
    made = shaped(f"on_failure: refuse\n{text}", document(value))
    assert made.word == "shaped"
    assert json.loads(texts(made.raw)[0]) == left


@pytest.mark.fault(35, "inside")
@pytest.mark.parametrize("more", ["", "document: blocks", "max_bytes: 1000"])
def test_blocks_that_are_all_there_is_are_not_dropped(more: str) -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    raw = answer({"content": [image, image]})
    assert shape(job(rule(f"blocks: {{drop: [image]}}\n{more}"), raw)).raw == raw


# What a rule withholds


def withheld(made: Outcome) -> str:
    """Return what an error says that stands for a response."""
    assert result(made.raw)["isError"] is True
    [text] = texts(made.raw)
    return text


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
    assert made.word == "refused"
    assert made.said is not None
    assert made.said.startswith("r: t: withheld: ")
    assert "secret" not in made.raw.decode()


@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize("step", ["drop: secret", "filter: {at: items, where: 'public'}"])
@pytest.mark.parametrize(
    "text", ["secret", '{"secret":1,"items":' + "[" * 5000 + "]" * 5000 + "}", '{"secret": NaN}']
)
def test_a_rule_that_withholds_lets_no_text_go_from_which_it_would_pick(
    step: str, text: str
) -> None:
    keys = f"name: r\nresponse: [{{{step}}}]"
    assert shaped(keys, said(text)).raw == answer(said(text))
    made = shaped(f"on_failure: refuse\n{keys}", said(text))
    assert withheld(made) == "the response was withheld: rule 'r' does not fit it"


def test_a_rule_that_withholds_may_pick_from_a_text_that_it_reads() -> None:
    text = "on_failure: refuse\nresponse: [{parse: {as: lines}}, {filter: {glob: 'a*'}}]"
    assert texts(shaped(text, said("ab\nsecret\nac")).raw) == ["ab\nac"]


@pytest.mark.parametrize(
    "value",
    [
        {"resultType": "input_required", "inputRequests": {}},
        {"task": {"taskId": "a"}},
        said("no", isError=True),
    ],
)
def test_what_is_no_result_yet_and_an_error_are_not_withheld(value: dict[str, Any]) -> None:
    raw = answer(value)
    assert shape(job(rule("on_failure: refuse\nresponse: [{keep: [id]}]"), raw)).raw == raw


@pytest.mark.parametrize("text", ["", "max_bytes: 1000", "blocks: {drop: [audio]}"])
def test_a_rule_without_steps_of_its_own_has_nothing_to_withhold(text: str) -> None:
    raw = answer({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]})
    assert shape(job(rule(f"on_failure: refuse\n{text}"), raw)).raw == raw


def test_a_document_of_another_shape_may_go_where_it_keeps_the_contract() -> None:
    value = document({"n": 1}, structured=True)
    text = CONTRACT + "validate: refuse\nresponse: [{keep: [other]}]"
    assert shaped(text, value).raw == answer(value)
    assert withheld(shaped(text + "\non_failure: refuse", value)) == (
        "the response was withheld: rule 'jobs' does not fit it"
    )


def test_in_shadow_mode_nothing_is_withheld() -> None:
    raw = answer(document({"other": 1}))
    text = "mode: shadow\non_failure: refuse\nresponse: [{keep: [id]}]"
    assert shape(job(rule(text), raw)).raw == raw


# Out of service


@pytest.mark.fault(34, "inside")
def test_what_a_rule_out_of_service_is_for_goes_out_as_it_came_at_once() -> None:
    raw = answer(VALUE)
    made = shape(job(with_step(rule(STEPS), Raises(TypeError()), 0), raw, keep=True, aside=True))
    assert (made.raw, made.word, made.said, made.snapshot) == (raw, "failed", None, None)


def test_out_of_service_the_promised_structured_content_is_there_all_the_same() -> None:
    made = shaped(CONTRACT + "response: [{drop: n}]", document({"n": 1}), aside=True)
    assert made.raw == answer({**document({"n": 1}), "structuredContent": {"n": 1}})


# Fuel

DOUBLED = " | ".join(["[@, @]"] * 30)
COSTLY = {
    "jmespath": f"response: [{{jmespath: '{DOUBLED} | to_string(@)'}}]",
    "filter": f'response: [{{filter: {{at: a, where: "({DOUBLED}) == ({DOUBLED})"}}}}]',
    "project": f"response: [{{project: [{{b: {{jmespath: '{DOUBLED}'}}}}]}}]",
    "recast": f"response: [{{recast: {{cases: [{{to: {{b: {{jmespath: '{DOUBLED}'}}}}}}]}}}}]",
    "replace": "response: [{replace: {at: a, pattern: '(x*)', with: '\\1\\1\\1\\1\\1\\1\\1\\1'}}]",
    "error_if": f'error_if: "length(to_string({DOUBLED})) > `0`"\nresponse: [{{drop: b}}]',
}


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize("step", COSTLY)
def test_a_rule_that_takes_too_much_work_fails_and_the_original_goes_out_once(step: str) -> None:
    value = document({"a": ["x" * 10_000] * 20, "b": 1})
    raw = answer(value)

    made = shape(job(rule(f"name: r\n{COSTLY[step]}"), raw, fuel=LITTLE))

    assert (made.raw, made.word, made.spent) == (raw, "failed", True)
    assert made.said == f"r: t: failed at {step}: it takes more than 20000 units of work"
    withholding = rule(f"name: r\non_failure: refuse\n{COSTLY[step]}")
    refused = shape(job(withholding, raw, fuel=LITTLE))
    assert withheld(refused) == "the response was withheld: rule 'r' failed on it"
    assert (refused.word, refused.spent) == ("failed", True)


@pytest.mark.fault(36, "inside")
def test_a_view_that_takes_too_much_work_is_refused_and_could_be_had_for_more() -> None:
    made = rule("max_bytes: 1000")
    raw = answer(document({"rows": [{"id": n, "name": "x" * 50} for n in range(1000)]}))
    view = "rows[*].to_string(id)"

    refused = shape(job(made, raw, view=view, fuel=1000))
    found = shape(job(made, raw, view=view))

    assert texts(refused.raw) == [f"view: {view!r} takes too much work; narrow it"]
    assert (refused.word, refused.spent) == ("refused", True)
    assert (found.word, found.spent) == ("view", False)


@pytest.mark.fault(36, "inside")
def test_what_is_spent_on_the_response_is_not_spent_on_saying_so() -> None:
    text = "errors: [{replace: {pattern: '^view: .* takes', with: it takes}}]\nmax_bytes: 1000"
    raw = answer(document({"rows": ["x" * 50] * 100}))
    refused = shape(job(rule(text), raw, view=f"{DOUBLED} | to_string(@)", fuel=LITTLE))
    assert texts(refused.raw) == ["it takes too much work; narrow it"]


@pytest.mark.fault(36, "inside")
def test_all_steps_of_a_rule_burn_the_same_fuel() -> None:
    step = "{filter: {at: a, where: '@ > `0`'}}"
    raw = answer(document({"a": list(range(1000)), "b": 1}))
    once = shape(job(rule(f"response: [{step}]"), raw, fuel=LITTLE))
    often = shape(job(rule(f"response: [{', '.join([step] * 9)}]"), raw, fuel=LITTLE))
    assert (once.word, once.spent) == ("shaped", False)
    assert (often.word, often.spent, often.raw) == ("failed", True, raw)
