import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.tree import Document, encode
from mcp_abridge.query.call import Call, Notice
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.query.view import look
from mcp_abridge.transforms.abridge import AbridgeStep, abridge
from mcp_abridge.transforms.parse import Parse

from tests.documents import SCALARS, SURROGATES, call, shaped, values
from tests.omissions import characters, check_notes, check_text, left_out

ROWS = [{"id": n, "name": f"name {n}", "body": "x" * 300} for n in range(500)]


def fitted(value: Any, bound: int, **options: Any) -> tuple[Any, list[Notice]]:
    step_call = Call("t", bound=bound, notices=[], **options)
    raw = shaped(json.dumps(value).encode(), AbridgeStep(), at=step_call)
    assert size(raw, step_call) <= bound
    return json.loads(raw), step_call.notices


def size(raw: bytes, step_call: Call) -> int:
    beside = sum(len(encode({notice.name: notice.value})) for notice in step_call.notices)
    return len(raw) + beside


@pytest.mark.parametrize("viewable", [True, False])
def test_a_long_array_keeps_its_first_elements_and_the_note_says_how_many_there_were(
    viewable: bool,
) -> None:
    document, _ = fitted({"total": 500, "items": ROWS}, 3000, viewable=viewable, breadth=False)
    assert (document["total"], document["items"]) == (500, ROWS[:7])
    more = "call again with view='items[7:14]'; view=\"grep('word')\" searches"
    assert document["_abridged"] == {"items": "7 of 500"} | ({"more": more} if viewable else {})


def test_the_argument_is_called_as_the_client_knows_it() -> None:
    document, _ = fitted({"items": ROWS}, 3000, viewable=True, names={"view": "abridged_view"})
    assert "=".join(re.findall(r"\w+(?==['\"])", document["_abridged"]["more"])) == (
        "abridged_view=abridged_view"
    )


def test_a_note_that_the_server_wrote_itself_is_marked_as_the_servers() -> None:
    theirs = {"more": "call again with view='all'"}
    whole = {"_abridged": theirs, "_abridged_of_server": 1, "items": ROWS, "in": {"_abridged": 2}}
    document, _ = fitted(whole, 3000, breadth=False)
    assert document["_abridged"] == {"items": "6 of 500"}
    assert document["_abridged_of_server"] == theirs
    assert document["_abridged_of_server_of_server"] == 1
    assert document["in"] == {"_abridged_of_server": 2}
    assert look(Document(whole), "_abridged_of_server.more") == theirs["more"]


def test_long_strings_keep_their_head_up_to_a_line() -> None:
    text = "a line of text\n" * 500
    document, _ = fitted({"id": "a" * 40, "body": text}, 1000, viewable=True)
    head = document["body"].removesuffix("…")
    assert document["id"] == "a" * 40
    assert head.endswith("text\n")
    assert text.startswith(head)
    assert document["_abridged"] == {
        "body": f"{len(head)} of 7500 chars",
        "more": f"call again with view='body[{len(head)}:{len(head) + 900}]';"
        " view=\"grep('word')\" searches",
    }


def test_a_record_keeps_all_its_names_even_in_little_room() -> None:
    document, _ = fitted({f"n{n}": ["x" * 100] for n in range(20)}, 600)
    assert list(document) == [*(f"n{n}" for n in range(20)), "_abridged"]


@pytest.mark.parametrize("structured", [False, True])
def test_nothing_that_was_cut_looks_empty(structured: bool) -> None:
    services = {
        f"service{n}": {"fields": {"x" * 40: n}, "description": "d" * 90, "links": ["y" * 70]}
        for n in range(40)
    }
    services["service1"] = {"name": "a record, whose members differ"}
    document, notes = fitted(services, 1200, structured=structured, viewable=True)
    notes = document.pop("_abridged")
    assert document
    parts = [value for service in document.values() for value in service.values()]
    assert not any(value in ("", {}, []) for value in parts)
    assert "without" in json.dumps(notes)
    record = {"name": "x", **{f"n{n}": {"a" * 50: [n]} for n in range(9)}}
    document, _ = fitted(record, 450, structured=structured, viewable=True)
    note, more = document["_abridged"]["@"], document["_abridged"]["more"]
    absent = [name for name in record if name not in document]
    assert note == f"{10 - len(absent)} of 10 members, without {', '.join(absent)}"
    assert f"view='{absent[0]}'" in more


def test_a_tree_is_shown_as_deep_as_there_is_room() -> None:
    files = [{"name": f"file {n}", "type": "file"} for n in range(300)]
    folders = [{"name": f"folder {n}", "type": "directory", "children": files} for n in range(4)]
    tree, _ = fitted([*files[:10], *folders], 5000, structured=True)
    assert tree[:10] == files[:10]
    names = [{"name": file["name"]} for file in files[:10]]
    assert all(folder["children"][:10] == names for folder in tree[10:])


def test_a_huge_map_keeps_its_first_members() -> None:
    value = {f"key{n}": {"n": n} for n in range(5000)}
    document, _ = fitted(value, 1000, viewable=True, breadth=False)
    notes, count = document.pop("_abridged"), len(document)
    assert document == {name: value[name] for name in list(value)[:count]}
    assert notes["@"] == f"{count} of 5000 members"
    following = look(Document(value), notes["more"].split("'")[1])
    assert following[0] == {"key": f"key{count}", "value": {"n": count}}


def test_a_text_keeps_both_ends_and_the_note_names_the_next_window() -> None:
    text = "a line of text\n" * 5000
    document, [notice] = fitted(text, 2000, viewable=True)
    first, last = document.split("…")
    assert text.startswith(first)
    assert first.endswith("\n")
    assert text.endswith(last)
    assert last.startswith("\n")
    lines = len(first) // 15 + 1, 5000 - len(last) // 15
    more = len(first) + (2000 - 14 - 150) // 16 * 15
    assert notice.value == {
        "text": f"first {len(first)} and last {len(last)} of 75000 chars;"
        f" lines {lines[0]} to {lines[1]} are left out",
        "more": f"call again with view='text[{len(first)}:{more}]'; view=\"grep('word')\" searches",
    }


def test_the_answer_to_a_view_is_abridged_with_a_view_that_goes_on_from_it() -> None:
    whole = Document({"data": {"rows": [{"t": "é" * 900} for _ in range(300)]}})
    view = "data.rows[10:200]"
    step_call = Call("t", viewable=True, notices=[])
    answer = Document({"view": look(whole, view)})
    abridge(answer, 6000, step_call, view)
    note = json.loads(answer.encode())["_abridged"]
    count = len(json.loads(answer.encode())["view"]["rows"])
    assert note["more"] == f"call again with view='data.rows[{10 + count}:{10 + 2 * count}]'"
    expression = note["more"].split("'")[1]
    assert look(whole, expression) == look(whole, f"data.rows[{10 + count}:{10 + 2 * count}]")


def test_a_path_named_like_a_key_of_the_notes_is_marked() -> None:
    document, _ = fitted({"more": list(range(1000))}, 400, viewable=True)
    assert list(document["_abridged"]) == ["@.more", "more"]


def test_long_names_are_cut_in_the_notes() -> None:
    document, _ = fitted({"k" * 200: "x" * 2000, "b": 1}, 600, viewable=True)
    count = len(document["k" * 200]) - 1
    notes = document["_abridged"]
    assert notes.pop("more") == """call again with view="grep('word')" searches"""
    assert notes == {f'"{"k" * 39}…"': f"{count} of 2000 chars"}
    # With no room for a view either.
    rows = {f'"{"k" * 47}{number}': [number] * 400 for number in range(3)}
    fitted(rows, 440, structured=True, viewable=True)


def test_the_smaller_of_both_bounds_counts() -> None:
    raw = json.dumps({"items": ROWS}).encode()
    assert len(shaped(raw, AbridgeStep(max_bytes=1000), at=call(5000))) <= 1000
    assert len(shaped(raw, AbridgeStep(max_bytes=5000), at=call(1000))) <= 1000


def same(before: Any, after: Any) -> None:
    """Hold `after` to be `before` with parts left off, every value of the same type."""
    assert type(before) is type(after)
    if isinstance(before, dict):
        for name, value in after.items():
            same(before[name], value)
    elif isinstance(before, list):
        assert len(after) <= len(before)
        # Of plain values the last one stands at the end.
        ends = after[-1:] if len(after) < len(before) and after[-1:] == before[-1:] else []
        for one, other in zip(before, after[: len(after) - len(ends)], strict=False):
            same(one, other)
    elif isinstance(before, str) and before != after:
        assert len(before) > 40
        assert characters(before, after) < len(before)
    else:
        assert before == after


ANY = values(leaves=120) | values(SCALARS | st.sampled_from(SURROGATES), leaves=30)


@given(ANY, st.integers(300, 3000), st.booleans(), st.booleans())
def test_any_document_fits_keeps_its_structure_and_notes_all_that_is_left_out(
    raw: bytes, bound: int, breadth: bool, viewable: bool
) -> None:
    step_call = Call(
        "t", bound=bound, structured=True, viewable=viewable, notices=[], breadth=breadth
    )
    whole = Document.read(raw).encode()
    output = shaped(raw, AbridgeStep(), at=step_call)
    if len(whole) <= bound:
        assert (output, step_call.notices) == (whole, [])
        return
    if whole[:1] in b'{["':
        assert size(output, step_call) <= bound
    before, after = json.loads(whole), json.loads(output)
    path = ""
    if isinstance(before, dict):
        step_call.notices.append(Notice("_abridged", after.pop("_abridged")))
    elif isinstance(before, list):
        path = "items"
    same(before, after)
    for notice in step_call.notices:
        if isinstance(before, str):
            check_text(before, after, notice.value)
        else:
            check_notes(left_out(before, after, path, notes=notice.value), notice.value)
    assert len(step_call.notices) == isinstance(before, dict | list | str)


@given(values(leaves=60), st.integers(300, 1000))
def test_structure_in_a_text_fits_as_well(raw: bytes, bound: int) -> None:
    step_call = call(bound)
    text = '<<\n{"v":' + raw.decode() + "}>>"
    output = shaped(
        encode(text), Parse(as_="json", after=Pattern("<<")), AbridgeStep(), at=step_call
    )
    assert size(output, step_call) <= bound


def test_the_first_of_two_long_elements_has_the_room_that_no_other_takes() -> None:
    document, _ = fitted([{"rows": ROWS}, {"rows": ROWS[:20]}], 4500, breadth=True)
    assert len(json.dumps(document)) > 3500
