import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.paths import Path
from mcp_abridge.document.tree import Document
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.transforms.base import Transform
from mcp_abridge.transforms.clip import Clip
from mcp_abridge.transforms.paginate import Paginate
from mcp_abridge.transforms.parse import Parse

from tests.documents import call, shaped, values

FILES = Path.parse("files")
NAMES = [f"{n}.md" for n in range(7)]
VAULT = json.dumps({"vault": "v", "files": NAMES}).encode()


def answered(raw: bytes, step: Transform, **arguments: Any) -> Any:
    return json.loads(shaped(raw, step, at=call(**arguments)))


@pytest.mark.fault(39, "inside")
@pytest.mark.parametrize(("offset", "returned"), [(0, 7), (6, 1), (7, 0), (5000, 0), (10**30, 0)])
def test_the_last_page_says_that_nothing_follows_even_past_the_end(
    offset: int, returned: int
) -> None:
    document = answered(VAULT, Paginate(at=FILES), offset=offset)
    assert document["files"] == NAMES[offset:]
    assert document["pagination"] == {
        "total": 7,
        "offset": offset,
        "limit": 100,
        "returned": returned,
        "hasMore": False,
        "nextOffset": None,
    }


@pytest.mark.parametrize(("raw", "page", "total"), [(b'["a", "b"]', ["a"], 2), (b"[]", [], 0)])
def test_a_root_array_can_stay_one_with_the_metadata_beside_it(
    raw: bytes, page: list[str], total: int
) -> None:
    step, step_call = Paginate(as_=None, limit=1), call()
    assert json.loads(shaped(raw, step, at=step_call)) == page
    [notice] = step_call.notices
    assert (notice.bare, notice.value["total"]) == (True, total)
    assert notice.value["hasMore"] == (total > 1)


def test_a_member_that_is_called_pagination_already_is_marked_as_the_servers() -> None:
    document = answered(b'{"files": ["a"], "pagination": "theirs"}', Paginate(at=FILES))
    assert (document["pagination_of_server"], document["pagination"]["total"]) == ("theirs", 1)


def test_an_array_that_is_called_pagination_is_paged_as_any_other() -> None:
    raw = b'{"files": ["a", "b"], "pagination": ["c", "d"]}'
    paths = (FILES, Path.parse("pagination"))
    document = answered(raw, Paginate(at=paths, limit=1))
    assert (document["files"], document["pagination_of_server"]) == (["a"], ["c"])
    assert {each["returned"] for each in document["pagination"].values()} == {1}


def test_lines_that_are_all_on_one_page_are_left_alone() -> None:
    step_call = call()
    steps = Parse(as_="lines"), Paginate(limit=2)
    assert shaped(b'"one\\ntwo"', *steps, at=step_call) == b'"one\\ntwo"'
    assert step_call.notices == []


def test_the_arguments_are_bounded_as_the_rule_says() -> None:
    step = Paginate(at=FILES, limit=50, max_limit=100, max_offset=10000)
    assert [list(each.schema.values()) for each in step.parameters.values()] == [
        ["integer", 1, 100, 50, "How many of `files` to return"],
        ["integer", 0, 10000, 0, "How many of `files` to skip"],
    ]


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (
            Paginate(at=Path.parse("data.files")),
            "Returns `data.files` in pages of 100 (`limit`, at most 1000); while "
            "`data.pagination.hasMore` is true, call again with `page_offset` = "
            "`data.pagination.nextOffset`.",
        ),
        (
            Paginate(at=FILES, page_info={"truncated": "hasMore"}),
            "Returns `files` in pages of 100 (`limit`, at most 1000); while `truncated` is true, "
            "call again with `page_offset` moved on by as many as came.",
        ),
    ],
)
def test_the_description_gains_a_sentence_on_how_to_go_on(step: Paginate, sentence: str) -> None:
    client_names = {"offset": "page_offset"}
    assert step.sentence(lambda name: client_names.get(name, name)) == sentence


def test_max_bytes_ends_a_page_earlier_but_never_before_its_first_element() -> None:
    raw = json.dumps({"files": ["x" * 1000] * 5, "other": "y" * 5000}).encode()
    counts = [
        answered(raw, Paginate(at=FILES, max_bytes=most))["pagination"]["returned"]
        for most in (100, 2500, 4000, 1_000_000)
    ]
    assert counts == [1, 2, 3, 5]


def test_a_bound_counts_structure_in_a_text_as_the_text_escapes_it() -> None:
    rows = [{"name": "n" * 10, "n": n} for n in range(200)]
    text = json.dumps("Rows:\n" + json.dumps(rows)).encode()
    step_call = call(bound=2000)
    output = shaped(text, Parse(as_="json", after=Pattern("Rows:")), Paginate(), at=step_call)
    assert 1900 < len(output) <= 2000
    assert json.loads(output).startswith('Rows:\n{"items":[{')


def elements(raw: bytes) -> list[bytes]:
    """The elements of an array as they are spelled, without white space."""
    array = Document.read(raw).root
    return [Document(child.get()).encode() for child in array.children()]


def pages(raw: bytes, step: Transform, limit: int, bound: int | None) -> list[bytes]:
    all_rows: list[bytes] = []
    offset = 0
    while True:
        step_call = call(bound=bound, limit=limit, offset=offset)
        output = shaped(raw, step, at=step_call)
        page = Document.read(output).root
        assert isinstance(page.open(), dict)
        rows = elements(Document(page.child("items").get()).encode())
        page_info = json.loads(Document(page.child("pagination").get()).encode())
        assert page_info["returned"] == len(rows) <= limit
        assert bound is None or len(output) <= bound or len(rows) == 1 or not all_rows
        all_rows += rows
        if not page_info["hasMore"]:
            assert page_info["nextOffset"] is None
            return all_rows
        offset = page_info["nextOffset"]


@pytest.mark.fault(40, "inside")
@given(
    st.lists(values(leaves=10), max_size=30),
    st.integers(1, 12),
    st.none() | st.integers(200, 3000),
    st.booleans(),
)
def test_pages_rejoin_to_the_array_as_upstream_spelled_it(
    rows: list[bytes], limit: int, bound: int | None, wrapped: bool
) -> None:
    array = b"[ " + b" , ".join(rows) + b"]"
    raw = array if not wrapped else b'{"x": 1e400, "items": ' + array + b"}"
    step = Paginate(at=Path.parse("items") if wrapped else Path(), max_limit=1000)
    assert pages(raw, step, limit, bound) == elements(array)


@given(st.text("ab\n\r", max_size=60), st.integers(1, 5), st.none() | st.integers(150, 400))
def test_pages_of_lines_rejoin_to_the_text(text: str, limit: int, bound: int | None) -> None:
    raw, rejoined, offset = json.dumps(text).encode(), "", 0
    while True:
        step_call = call(limit=limit, offset=offset, bound=bound)
        rejoined += json.loads(shaped(raw, Parse(as_="lines"), Paginate(), at=step_call))
        if not step_call.notices or not step_call.notices[0].value["hasMore"]:
            break
        offset = step_call.notices[0].value["nextOffset"]
    assert rejoined == text


def test_a_step_that_clips_a_page_keeps_its_end() -> None:
    raw = b'"one 1\\ntwo 2\\nthree 3"'
    steps = Parse(as_="lines"), Paginate(limit=2), Clip(max_chars=3)
    assert json.loads(shaped(raw, *steps)) == "one… (+2 chars)\ntwo… (+2 chars)\n"
