import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.paths import Path
from mcp_abridge.document.tree import Document, Pieces
from mcp_abridge.errors import OutOfFuel, ShapeMismatch
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.transforms.parse import Parse

from tests.documents import call, shaped_text, values

CONTENT = Path.parse("content")


def opened(text: str, step: Parse) -> Any:
    document = Document(text)
    step(document.root, call())
    return json.loads(Document(document.cell[0]).encode())


def test_lines_are_without_their_ends_and_joined_with_them() -> None:
    assert opened("a\r\nb\n", Parse(as_="lines")) == ["a\r", "b"]
    assert opened("a\r\nb\r\n", Parse(as_="lines")) == ["a", "b"]


@pytest.mark.parametrize(
    ("split", "text", "records"),
    [
        (None, "a\nb\n\nc\n\n\nd", ["a\nb\n\n", "c\n\n\n", "d"]),
        ("\n---\n", "a\n---\nb\n---\n", ["a\n---\n", "b\n---\n"]),
        ("(?=#)", "x#a#b", ["#a", "#b"]),
        ("(?m)^(?=[)(\\]]|x)", "x1\n)2\n", ["x1\n", ")2\n"]),
        ("(?m)^---$", "a\n---\nb", ["a\n---", "\nb"]),
        # One at the head counts though nothing separates it.
        ("\n\n(?=commit )", "commit 1\na\n", ["commit 1\na\n"]),
        (r"(?i)---\n(?=id|key)", "ID 1\n---\nkey 2\n", ["ID 1\n---\n", "key 2\n"]),
        ("\n(?=commit )", "log\ncommit 1\n\ncommit 2\n", ["commit 1\n\n", "commit 2\n"]),
    ],
)
def test_records_end_or_begin_where_the_pattern_says(
    split: str | None, text: str, records: list[str]
) -> None:
    parse = Parse(as_="records", split=split)
    assert opened(text, parse) == records
    assert shaped_text(text, parse) == text


def test_the_last_record_gets_an_end_where_others_follow_it_now() -> None:
    document = Document("b\n\na")
    Parse(as_="records")(document.root, call())
    document.cell[0].sort()
    document.close()
    assert document.cell[0] == "a\n\nb\n\n"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", "prose"),
        ("json", '"a string"'),
        ("json", "[" * 100_000),
        ("yaml", "just words"),
        ("python", "'text'"),
        ("csv", "no table"),
        ("csv", "a,b\n1\n"),
        ("csv", 'a,b\n1,"2\n'),
    ],
)
def test_a_text_that_cannot_be_read_is_a_mismatch(form: Any, text: str) -> None:
    with pytest.raises(ShapeMismatch, match=r"^the text "):
        shaped_text(text, Parse(as_=form))


def test_the_strings_at_a_path_are_read_each_with_what_stands_around_it() -> None:
    raw = b'{"items":[{"content":"one\\r\\ntwo\\r\\n"},{"content":"x\\ny"}]}'
    path = Path.parse("items.content")
    document = Document.read(raw)
    Parse(as_="lines", at=path)(document.root, call())
    first, second = (child.child("content") for child in document.root.child("items").children())
    assert (first.get(), second.get()) == (["one", "two"], ["x", "y"])
    first.get().pop()
    document.close()
    assert document.encode() == b'{"items":[{"content":"one\\r\\n"},{"content":"x\\ny"}]}'


def test_texts_that_become_ambiguous_are_a_mismatch() -> None:
    document = Document.read(b'[{"content":"a\\n"},{"content":"b"}]')
    Parse(as_="lines", at=CONTENT)(document.root, call())
    del document.cell[0][0]
    with pytest.raises(
        ShapeMismatch, match=r"^content: some of the texts read as structure were moved"
    ):
        document.close()


@given(values(leaves=30))
def test_json_in_a_text_keeps_its_spelling(raw: bytes) -> None:
    inner = b'{"v": ' + raw + b"}"
    assert shaped_text(inner.decode(), Parse(as_="json")) == Document.read(inner).encode().decode()


@given(st.text("a#\n\r", max_size=40), st.sampled_from([None, "#", "(?=#)", "\n", "\n(?=a)"]))
def test_records_rejoin_to_the_text(text: str, split: str | None) -> None:
    document = Document(text)
    try:
        Parse(as_="records", split=split)(document.root, call())
    except ShapeMismatch:
        assert split is not None
        assert split.endswith(")")
        assert split[-2] not in text[:1] + text.partition(split[:-4])[2]
        return
    assert type(document.cell[0]) is Pieces
    document.close()
    assert document.encode() == Document(text).encode()


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Parse(as_="yaml"), "a: 1\n" * 1000),
        (Parse(as_="python"), repr([{"a": 1}] * 10_000)),
        (Parse(as_="records"), "a\n\n" * 20_000),
        (Parse(as_="json", after=Pattern("^(?:a|b)*a(?:a|b){1000}c")), "ab" * 200_000),
    ],
)
def test_parse_ends_with_its_fuel(step: Parse, text: str) -> None:
    step_call = call()
    step_call.fuel = Fuel(100)  # a search is paid for by the time it takes
    with pytest.raises(OutOfFuel):
        shaped_text(text, step, at=step_call)


@pytest.mark.parametrize(
    ("form", "groups", "reason"),
    [
        ("json", "(?P<a>.)", "'groups' is for as: lines or records, not as: json"),
        ("lines", "(a)", "groups: no group has a name"),
    ],
)
def test_groups_that_make_no_rows_are_refused(form: Any, groups: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Parse(as_=form, groups=Pattern(groups))


def test_a_text_of_which_no_line_has_the_groups_passes_unchanged() -> None:
    step = Parse(as_="lines", groups=Pattern(r"(?P<level>[A-Z]+):"))
    with pytest.raises(ShapeMismatch, match="matches no line or record of the text"):
        step(Document("a\nb\n").root, call())
