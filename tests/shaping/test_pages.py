"""Pages and views, cut from a snapshot that was kept."""

import json
from typing import Any

import pytest
from mcp_abridge.ruleset.selection import Selection
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.shaping.pipeline import shape

from tests.builders import answer, document, result, rule, texts, tool_result
from tests.jobs import Raises, job, page, shaped, snapshot_of, with_step

PAGES = "response: [{drop: b}, {paginate: {at: items, limit: 2}}]"


def test_a_later_page_is_cut_from_the_snapshot_under_its_own_id() -> None:
    value = {**document({"items": [1, 2, 3], "b": 1}, structured=True), "_meta": {"a": 1.50}}

    outcome = page(PAGES, snapshot_of(PAGES, value), offset=2)

    assert outcome.outcome == "page"
    assert json.loads(outcome.raw)["id"] == "x"
    page_result = result(outcome.raw)
    assert page_result["structuredContent"]["items"] == [3]
    assert json.loads(texts(outcome.raw)[0]) == page_result["structuredContent"]
    assert page_result["_meta"] == {"a": 1.50}


@pytest.mark.fault(34, "inside")
def test_a_step_that_fails_on_a_snapshot_is_answered_with_an_error() -> None:
    snapshot = snapshot_of(PAGES, document({"items": [1, 2, 3]}))
    failing = with_step(rule(f"name: r\n{PAGES}"), Raises(TypeError("no")), 2)

    outcome = shape(
        ShapeJob(rule=failing, tool="t", id=b"2", snapshot=snapshot, arguments={"offset": 2})
    )

    assert result(outcome.raw)["isError"] is True
    assert json.loads(outcome.raw)["id"] == 2


BOUND = "max_bytes: 1000"
LONG = document({"items": [{"id": n, "body": "x" * 20} for n in range(100)]}, structured=True)
FOURS = "".join(f"{n:04}" for n in range(1000))
SECRET = document({"items": ["x" * 20] * 100, "secret": "s"})


def viewed(view: str, value: dict[str, Any] = LONG, text: str = BOUND) -> ShapeResult:
    """Return the answer to a view of the snapshot of a result."""
    snapshot = snapshot_of(text, value)
    return shape(ShapeJob(rule=rule(text), tool="t", id=b"2", snapshot=snapshot, view=view))


def test_a_view_looks_into_the_snapshot() -> None:
    outcome = viewed("items[98:].id")

    assert outcome.outcome == "view"
    assert result(outcome.raw) == document({"view": [98, 99]}, structured=True)


def test_a_view_of_a_text_is_a_text_also_by_the_name_of_the_member_that_holds_it() -> None:
    assert texts(viewed("text[3992:4000]", tool_result(FOURS)).raw) == ["09980999"]
    for view in ("content[3992:4000]", "text[3992:4000]"):
        value = tool_result(FOURS, structuredContent={"content": FOURS})
        assert result(viewed(view, value).raw) == tool_result(
            "09980999", structuredContent={"content": "09980999"}
        )


ISSUES = [
    {"node": f"{n:040x}", "state": ("open", "done")[n % 3 == 0], "title": f"title {n}"}
    for n in range(90)
]
OF_CSV = "node,state,title\n" + "".join(f"{','.join(issue.values())}\n" for issue in ISSUES)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (document(ISSUES), ""),
        (document({"total": 90, "issues": ISSUES}), "issues"),
        (tool_result(OF_CSV), ""),
    ],
    ids=["array", "member", "CSV"],
)
def test_help_shows_the_examples_of_the_first_answer(value: dict[str, Any], place: str) -> None:
    budget = Selection((), 2_000, print)(None, None).otherwise
    assert budget is not None
    first = shape(job(budget, answer(value), keep=True))

    def ask(view: str) -> str:
        return texts(shape(job(budget, answer({}), snapshot=first.snapshot, view=view)).raw)[0]

    condition, count = ask("help").rpartition(": ")[2].split(" or ")
    assert condition in texts(first.raw)[0]
    assert condition.startswith(f"{place}[?state=='")
    assert "title" in condition
    assert len(json.loads(ask(f"{condition} | [0:5]"))["view"]) == 5
    assert count == f"count_by({place or '@'}, &state)"
    assert json.loads(ask(count)) == {"view": {"open": 60, "done": 30}}


ROWS = json.dumps([{"id": n, "name": f"name {n}"} for n in range(100)])


@pytest.mark.parametrize("wrapped", [ROWS, [{"type": "text", "text": ROWS}]])
def test_the_answer_to_a_view_is_an_object_also_if_a_member_holds_the_document_as_text(
    wrapped: Any,
) -> None:
    value = tool_result(ROWS, structuredContent={"result": wrapped})
    for view, part in (
        ("[99]", {"id": 99, "name": "name 99"}),
        ("length(@)", 100),
        ("[98:].id", [98, 99]),
    ):
        assert result(viewed(view, value).raw) == document({"view": part}, structured=True)


@pytest.mark.parametrize("value", [FOURS, ROWS])
def test_the_answer_to_a_view_of_a_text_that_is_a_json_string_is_no_string(value: str) -> None:
    [answer] = texts(viewed("length(@)", tool_result(json.dumps(value))).raw)
    assert json.loads(answer) == {"view": 4000 if value == FOURS else 100}


@pytest.mark.parametrize(
    ("view", "part", "more"),
    [
        ("text[2000:2008]", "05000501", "text[2008:2016]' is next, 1992 of 4000 chars are left"),
        ("text[-8:-4]", "0998", "text[3996:4000]' is next, 4 of 4000 chars are left"),
        ("text[3992:]", "09980999", ""),
    ],
)
def test_a_window_of_a_text_that_ends_early_says_what_is_next(
    view: str, part: str, more: str
) -> None:
    notices = [json.dumps({"_abridged": {"more": f"view='{more}"}}, separators=(",", ":"))]
    assert texts(viewed(view, tool_result(FOURS)).raw) == [part, *notices[: len(more)]]


@pytest.mark.parametrize(
    ("view", "value", "whole"),
    [
        ("text[5000:6000]", tool_result(FOURS), "the text has 4000 characters, 1 lines"),
        (
            "lines(201, 210)",
            tool_result("a line\n" * 200),
            "the text has 1400 characters, 200 lines",
        ),
        ("items[200:220]", LONG, "the array has 100 elements"),
    ],
)
def test_a_window_beyond_the_end_says_how_much_there_is(
    view: str, value: dict[str, Any], whole: str
) -> None:
    answer = json.loads(texts(viewed(view, value).raw)[0])
    assert not answer["view"]
    assert answer["more"] == whole


@pytest.mark.parametrize("size", [1, 900])
def test_a_remark_stands_beside_the_answer_to_a_view_that_is_a_text_too(size: int) -> None:
    rows = [{"name": f"n{price}" * size, "price": f"${price}"} for price in range(9, 99)]
    answers = texts(viewed("max_by(@, &price).name", document(rows)).raw)
    remark = json.loads(answers[1])["_abridged"]["more"]
    assert answers[0].startswith("n9")
    assert remark.partition("; ")[0] == "price: compared as texts, not as numbers"
    assert ("call again with view=" in remark) == (size > 1)


def test_a_window_of_an_array_that_ends_early_says_what_is_next() -> None:
    answer = json.loads(texts(viewed("items[10:14]").raw)[0])
    assert answer["view"] == LONG["structuredContent"]["items"][10:14]
    assert answer["more"] == "view='items[14:18]' is next, 86 of 100 elements are left"
    assert "more" not in json.loads(texts(viewed("items[96:100]").raw)[0])
    cut = json.loads(texts(viewed("items[0:90]").raw)[0])
    assert "more" not in cut
    assert cut["_abridged"]["more"].startswith(f"call again with view='items[{len(cut['view'])}:")


def test_the_beginnings_of_some_texts_are_no_window_of_their_array() -> None:
    rows = [{"id": n, "body": f"text {n}" if n < 3 else {"of": n}} for n in range(90)]
    answer = json.loads(texts(viewed("items[*].body[0:3]", document({"items": rows})).raw)[0])
    assert answer == {"view": ["tex"] * 3}


def test_a_hit_has_its_text_before_the_lines_that_it_stands_under() -> None:
    words = ("bash", "python -m x", "sh -c x y")
    rows = "".join(f"{n:>7} pts/0    00:00:01 {words[n % 3]}\n" for n in range(700))
    value = tool_result(f"    PID TTY          TIME CMD\n{rows}")
    answer = json.loads(texts(viewed("grep('pts')", value, "max_bytes: 300").raw)[0])
    assert [[*hit] for hit in answer["view"]["lines"]] == [["line", "text"]]


@pytest.mark.parametrize("bound", [*range(2100, 8000, 300)])
def test_a_hit_is_shown_whole_with_the_view_of_its_place_or_not_at_all(bound: int) -> None:
    name = "rich_text_of_the_description_of_the_thing"
    things = [{"id": n, name: {name: f"{n} lorem needle ipsum " * 30}} for n in range(60)]
    outcome = viewed("grep('needle')", document({"things": things}), f"max_bytes: {bound}")
    hits = json.loads(texts(outcome.raw)[0])["view"]["at"]

    for n, hit in enumerate(hits):
        assert hit["path"] == f"things[{n}].{name}.{name}"
        assert hit["more"] == f"{hit['path']}[0:2000]"
        assert "needle" in hit["text"]


@pytest.mark.parametrize("view", ["items[0].n", "items", "items[*].[n, nosuch]"])
def test_of_a_number_that_is_too_long_a_view_shows_the_first_digits(view: str) -> None:
    outcome = viewed(view, document({"items": [{"n": 7**1000}]}), "max_bytes: 400")
    answer = json.loads(texts(outcome.raw)[0])

    assert str(7**1000)[:50] in answer["view"]
    assert answer["more"] == "as a text of JSON"


def test_a_view_beside_a_block_that_takes_the_room_shows_a_few_characters() -> None:
    rows = json.dumps({"items": [{"body": "a " * 19} for _ in range(9)]})
    blocks = [{"type": "text", "text": text} for text in ("w" * 240, rows)]
    paged = "max_bytes: 300\nresponse: [{paginate: {at: items, limit: 2}}]"
    answer = texts(viewed("items[0:2]", {"content": blocks}, paged).raw)[-1]
    assert json.loads(answer) == {"view": '[{"bod…', "more": "as a text of JSON"}


def test_a_view_sees_the_document_after_what_the_rule_drops() -> None:
    outcome = viewed("secret", SECRET, f"response: [{{drop: secret}}]\n{BOUND}")

    assert json.loads(texts(outcome.raw)[0]) == {
        "view": None,
        "more": "null, or nothing there; there is no 'secret'; members: items; "
        "write a JMESPath such as items[0:20], or help",
    }


def test_after_a_clip_the_notes_lead_to_what_is_left_out_too() -> None:
    text = "response: [{clip: {at: items.text, max_chars: 50}}]\nmax_bytes: 1000"
    value = document({"items": [{"id": n, "text": f"{n:02}" * 45} for n in range(60)]})
    first = json.loads(texts(shaped(text, value, keep=True).raw)[0])
    count = len(first["items"]["rows"])
    assert first["_abridged"]["items"] == f"{count} of 60"
    assert first["_abridged"]["more"].startswith(f"call again with view='items[{count}:")
    part = json.loads(texts(viewed("items[0:8]", value, text).raw)[0])
    assert part["view"] == json.loads(value["content"][0]["text"])["items"][:8]


@pytest.mark.parametrize("steps", ["lines", "records, split: '(?m)^(?=Commit: )'"])
def test_views_of_the_many_pieces_of_a_text_are_those_of_an_array_of_texts(steps: str) -> None:
    pieces = [f"Commit: {n} by {'AB'[n % 2]}\n" for n in range(300)]
    text = f"tools: t\nresponse: [{{parse: {{as: {steps}}}}}, {{paginate: {{limit: 50}}}}]"

    def view(expression: str) -> Any:
        outcome = shape(job(rule(text), answer(tool_result("".join(pieces))), view=expression))
        return json.loads(texts(outcome.raw)[0])["view"]

    assert view("grep('by B')")["matched_values"] == 150
    assert view("[?contains(@, 'by B')] | length(@)") == 150
    assert view("length(@)") == 300
    assert [each.rstrip() for each in view("[298:]")] == [each.rstrip() for each in pieces[298:]]
    assert view("count_by(@, &contains(@, 'by B'))") == {"false": 150, "true": 150}


@pytest.mark.parametrize(
    ("beside", "sign"),
    [
        ({"truncated": True}, "truncated"),
        ({"meta": {"next_cursor": "b"}}, "meta.next_cursor"),
        ({"truncated": False, "nextCursor": None}, ""),
        ({"paging": {"next": {"after": "100"}}}, "paging.next"),
        ({"links": {"next": "https://api.example.org/logs?after=x"}}, "links.next"),
        ({"@odata.nextLink": "https://graph.example.org/me?$skip=10"}, '"@odata.nextLink"'),
        ({"meta": {"page": {"after": "eyJ"}}}, "meta.page.after"),
        ({"metadata": {"continue": "eyJ"}}, "metadata.continue"),
        ({"startAt": 0, "maxResults": 300, "total": 317}, "total"),
        ({"totalRows": "4120"}, "totalRows"),
        ({"offset": "itrA/recB"}, "offset"),
        ({"offset": "20", "next": "Chapter 2", "total": 300, "limit": 300, "after": None}, ""),
    ],
)
def test_a_count_of_what_a_server_calls_a_part_says_so(beside: Any, sign: str) -> None:
    document = {"rows": [{"id": n, "name": f"a{n}"} for n in range(300)], **beside}
    part = ("rows[0]", "length(rows[0].name)", "rows[0:9] | [?id > `3`]")
    for view in ("length(rows)", "grep('zzz')", "sum(rows[*].id)", "rows[?id > `7`].name", *part):
        outcome = shape(
            job(
                rule("tools: t\nmax_bytes: 2000"),
                answer(tool_result(json.dumps(document))),
                view=view,
            )
        )
        more = json.loads(texts(outcome.raw)[0]).get("more", "")
        says = f"{sign} says that the server has more" in more
        assert says == bool(sign and view not in part)


def test_a_count_in_an_object_says_that_the_server_has_more_of_it() -> None:
    edges = [{"node": {"title": f"a{n}", "stock": n}} for n in range(90)]
    document = {"data": {"products": {"edges": edges, "pageInfo": {"hasNextPage": True}}}}
    for view, says in {
        "sum(data.products.edges[].node.stock)": True,
        "keys(data) | length(@)": False,
    }.items():
        response = answer(tool_result(json.dumps(document)))
        outcome = shape(job(rule("tools: t\nmax_bytes: 2000"), response, view=view))
        assert ("products.pageInfo.hasNextPage says" in texts(outcome.raw)[0]) == says


def test_a_search_in_a_text_that_a_server_cut_says_so() -> None:
    text = "Lorem ipsum.\n" * 900
    for end in ("Content truncated. Call again with a start_index of 5000.", "The end."):
        outcome = shape(
            job(
                rule("tools: t\nmax_bytes: 2000"),
                answer(tool_result(text + end)),
                view="grep('zzz')",
            )
        )
        assert ("the server has more" in texts(outcome.raw)[0]) == end.startswith("Content")
