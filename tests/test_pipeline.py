"""One response through its rule: what goes out, what is counted, what a failure leaves alone."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from proxy.document import Document
from proxy.errors import Mismatch, Refusal, TransformError
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


def test_a_document_of_another_shape_passes_as_it_came_and_says_so() -> None:
    raw = answer(document({"other": 1}))

    made = shape(job(rule("name: issues\nresponse: [{keep: [items.id]}]"), raw))

    assert (made.raw, made.word) == (raw, "untouched")
    assert made.said is not None
    assert made.said.startswith("issues: t: left as it came: ")


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


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("at", range(4))
def test_a_step_that_raises_anywhere_costs_nothing(error: Exception, at: int) -> None:
    raw = answer(VALUE)

    made = shape(job(with_step(rule(f"name: r\n{STEPS}"), Raises(error), at), raw, keep=True))

    assert (made.raw, made.word, made.snapshot) == (raw, "failed", None)
    assert made.said is not None
    assert made.said.startswith(f"r: t: failed at raises: {type(error).__name__}")


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


@pytest.mark.parametrize(
    "text",
    [
        "response: [{jmespath: 'abs(a)'}]",
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
