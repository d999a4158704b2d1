"""Pages and views, cut from a snapshot that was kept."""

import json

import pytest

from proxy.shaping.job import ShapeJob
from proxy.shaping.pipeline import shape
from tests.given import document, result, rule, said, texts
from tests.jobs import Raises, kept, page, shaped, with_step

# Pages


PAGES = "response: [{drop: b}, {paginate: {at: items, limit: 2}}]"


def test_a_snapshot_is_the_document_before_the_first_window() -> None:
    snapshot = kept(PAGES, document({"items": [1, 2, 3], "b": 1, "c": 2}))

    assert snapshot.document == b'{"items":[1,2,3],"c":2}'


def test_without_being_asked_for_no_snapshot_is_made() -> None:
    assert shaped(PAGES, document({"items": [1, 2, 3]})).snapshot is None
    assert shaped("response: [{drop: b}]", document({"b": 1}), keep=True).snapshot is None


def test_a_later_page_is_cut_from_the_snapshot_under_its_own_id() -> None:
    value = {**document({"items": [1, 2, 3], "b": 1}, structured=True), "_meta": {"a": 1.50}}

    made = page(PAGES, kept(PAGES, value), offset=2)

    assert made.outcome == "page"
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


@pytest.mark.fault(34, "inside")
def test_a_step_that_fails_on_a_snapshot_is_answered_with_an_error() -> None:
    snapshot = kept(PAGES, document({"items": [1, 2, 3]}))
    failing = with_step(rule(f"name: r\n{PAGES}"), Raises(TypeError("no")), 2)

    made = shape(
        ShapeJob(rule=failing, tool="t", id=b"2", snapshot=snapshot, arguments={"offset": 2})
    )

    assert result(made.raw)["isError"] is True
    assert json.loads(made.raw)["id"] == 2


# Views


BOUND = "max_bytes: 1000"


LONG = document({"items": [{"id": n, "body": "x" * 20} for n in range(100)]}, structured=True)


def test_a_view_looks_into_the_snapshot() -> None:
    snapshot = kept(BOUND, LONG)

    made = shape(
        ShapeJob(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view="items[98:].id")
    )

    assert made.outcome == "view"
    assert result(made.raw)["structuredContent"] == {"view": [98, 99]}
    assert json.loads(texts(made.raw)[0]) == {"view": [98, 99]}


def test_a_view_of_a_text_is_a_text() -> None:
    snapshot = kept(BOUND, said("".join(f"{n:04}" for n in range(1000))))

    made = shape(
        ShapeJob(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view="text[2000:2008]")
    )

    assert texts(made.raw) == ["05000501"]


def test_a_view_that_is_too_long_is_abridged_in_turn() -> None:
    snapshot = kept(BOUND, LONG)

    made = shape(ShapeJob(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view="items"))

    assert len(texts(made.raw)[0]) <= 1000


def test_a_wrong_view_is_refused_with_an_advice() -> None:
    snapshot = kept(BOUND, LONG)

    made = shape(ShapeJob(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view="items[["))

    assert made.outcome == "refused"
    assert result(made.raw)["isError"] is True
    assert texts(made.raw)[0].endswith("write a JMESPath such as items[0:20]")


def test_a_view_of_a_member_that_no_element_has_is_refused_and_named() -> None:
    snapshot = kept(BOUND, LONG)

    made = shape(
        ShapeJob(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view="items[*].ix")
    )

    assert result(made.raw)["isError"] is True
    assert texts(made.raw)[0].startswith("view: no element of items has 'ix'; members: ")


def test_a_view_that_tests_for_a_member_that_is_nowhere_says_so_beside_the_answer() -> None:
    snapshot = kept(BOUND, LONG)

    made = shape(
        ShapeJob(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view="items[?ix].id")
    )

    answer = json.loads(texts(made.raw)[0])
    assert answer["view"] == []
    assert answer["more"].startswith("no element of items has 'ix'; members: ")


def test_a_view_sees_the_document_after_what_the_rule_drops() -> None:
    text = f"response: [{{drop: secret}}]\n{BOUND}"
    snapshot = kept(text, document({"items": ["x" * 20] * 100, "secret": "s"}))

    made = shape(ShapeJob(rule=rule(text), tool="t", id=b"2", snapshot=snapshot, view="secret"))

    assert json.loads(texts(made.raw)[0]) == {
        "view": None,
        "more": "null, or nothing there; the document has no 'secret'; members: items; "
        "write a JMESPath such as items[0:20]",
    }


def test_a_text_can_be_viewed_by_the_name_of_the_member_that_holds_it() -> None:
    long = "0123456789" * 200
    snapshot = kept(BOUND, said(long, structuredContent={"content": long}))

    for view in ("content[1002:1005]", "text[1002:1005]"):
        made = shape(ShapeJob(rule=rule(BOUND), tool="t", id=b"2", snapshot=snapshot, view=view))

        assert result(made.raw)["structuredContent"] == {"content": "234"}
        assert texts(made.raw) == ["234"]


def test_a_view_can_be_answered_from_a_fresh_response() -> None:
    made = shaped(BOUND, LONG, view="items[1].id", keep=True)

    assert made.outcome == "view"
    assert json.loads(texts(made.raw)[0]) == {"view": 1}
    assert made.snapshot is not None
