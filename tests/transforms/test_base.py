"""The parts that transforms share, and properties that all of them have."""

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.paths import Path
from mcp_abridge.document.surrogates import replace_lone
from mcp_abridge.document.tree import Document, compact
from mcp_abridge.errors import ShapeMismatch
from mcp_abridge.query.call import Call, Notice
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.transforms.base import Transform
from mcp_abridge.transforms.clip import Clip
from mcp_abridge.transforms.keep import Keep
from mcp_abridge.transforms.replace import Replace

from tests.builders import rule
from tests.documents import SCALARS, SURROGATES, call, open_all, shaped, shaped_text, values


@cache
def steps(text: str) -> tuple[Transform, ...]:
    return rule(f"response: [{{{text}}}]").pipeline


def run(text: str, document: Document, step_call: Call) -> None:
    for step in steps(text):
        step(document.root, step_call)


VALUES = values(SCALARS | st.sampled_from(SURROGATES), leaves=5)

# A step, the document before with three values (1, 2 and 3), and after it.
SPELLED: list[tuple[str, str, str]] = [
    ("drop: [a.y, y]", '{"a": [{"x": 1, "\\u0079": 3}], "b": 2, "y": 3}',
     '{"a": [{"x": 1}], "b": 2}'),
    ("keep: [b, a.x]", '{"a": [{"x": 1, "y": 3}], "b": 2, "c": 3}', '{"b": 2, "a": [{"x": 1}]}'),
    ("keep: [b, '**.x']", '{"a": [{"x": 1, "y": 3}], "b": 2, "c": 3}', '{"b": 2, "a": [{"x": 1}]}'),
    ("keep: [b, a.x, a.y]}, {drop: a.y", '{"a": [{"x": 1, "y": 3}, null], "b": 2, "c": 3}',
     '{"b": 2, "a": [{"x": 1}, null]}'),
    ("elide: {at: a, first: 1, last: 1}", '{"a": [1, 3, 2], "b": 2}',
     '{"a": [1, 2], "b": 2, "_elided": {"a": "first @ and last @ of #"}}'),
    ("filter: {at: i, where: id == 'x'}",
     '{"i": [{"id": "x", "v": 1}, {"id": "y", "v": 3}], "v": 2}',
     '{"i": [{"id": "x", "v": 1}], "v": 2}'),
    ("project: {at: r, fields: [{c: b.c}, a]}", '{"r": [{"a": 1, "y": 3, "b": {"c": 2}}], "z": 3}',
     '{"r": [{"c": 2, "a": 1}], "z": 3}'),
    ("rename: {b: n}", '[{"a": 1, "b": 2}]', '[{"a": 1, "n": 2}]'),
    ("sort: {at: i, by: n}", '{"i": [{"n": "b", "v": 1}, {"n": "a", "v": 2}], "v": 1}',
     '{"i": [{"n": "a", "v": 2}, {"n": "b", "v": 1}], "v": 1}'),
    ("table: i", '{"i": [{"x": 1, "y": 2}, {"y": 3, "x": 2}], "v": 1}',
     '{"i": {"columns": ["x", "y"], "rows": [[1, 2], [2, 3]]}, "v": 1}'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "before", "after"), SPELLED)
@given(VALUES, VALUES, VALUES)
def test_values_that_stay_keep_their_spelling(
    text: str, before: str, after: str, one: bytes, other: bytes, third: bytes
) -> None:
    def filled(template: str) -> bytes:
        parts = {"1": one, "2": other, "3": third, "@": b"1", "#": b"3"}
        return b"".join(parts.get(sign, sign.encode()) for sign in template)

    assert shaped(filled(before), *steps(text)) == compact(replace_lone(filled(after)))


NO_TABLE = ['[{"a": 1}, {"b": 1}]', '[{"a": 1}, {"a": 1, "b": 2}]', '[{"a": 1, "b": 2}, {"a": 1}]']
NO_TABLE += ['[{"a": 1}, null]', '[null, {"a": 1}]', '[{"a": 1}, [1]]', "[1, 2]", "[{}, {}]"]
ARRAYS = ["elide: items", "filter: {at: items, prefix: a}", "sort: {at: items}", "table: items"]

# A step, a document, and the paths of the step that name nothing in it, if it stays as it came.
ABSENT: list[tuple[str, str, list[str]]] = [
    *((text, '{"items": {"a": 1}}', ["items"]) for text in ARRAYS),
    *((text, '{"rows": []}', ["items"]) for text in ARRAYS),
    *((text, '{"items": null}', []) for text in ARRAYS),
    ("sort: {at: items}", "[]", []),
    ("sort: {}", '{"a": 1}', ["[]"]),
    ("drop: '**.b'", '"null and void"', ["**.b"]),
    ("rename: {a.b: x}", "17", ["a.b"]),
    ("prune: {empty: true}", "[1, 2.0, [2]]", []),
    *(("table: items", f'{{"items": {items}}}', ["items"]) for items in NO_TABLE),
    ("sort: {at: items, by: n}", '{"items": [{"x": 1}, {"x": 0}]}', ["items.n"]),
    ("sort: {at: items, by: n}", '{"items": [{"n": null}]}', []),
    ("paginate: {at: files}", '{"vault": 1.0}', ["files"]),
    ("paginate: {at: files}", '{"files": "none"}', ["files"]),
    ("truncate: {at: content, max_length: 2}", '{"other": 1}', ["content"]),
    ("truncate: {at: content, max_length: 2}", '{"content": [1]}', ["content"]),
    ("clip: {at: body, max_chars: 3}", '{"a": 1}', ["body"]),
    ("replace: {at: x.y, pattern: a, with: b}", "{}", ["x.y"]),
    ("jmespath: {at: b, expression: a}", '{"a": 1}', ["b"]),
    ("prune: {at: gone}", '{"a": null}', ["gone"]),
    ("drop: [b, c.d]", '{"a": 1, "c": {}}', ["b", "c.d"]),
    ("drop: [a.b, c.d]", '{"a": null, "c": []}', []),
    ("drop: {at: a, paths: [b]}", '{"a": {"x": 1}}', ["a.b"]),
    ("drop: {at: a, paths: [b]}", '{"x": 1}', ["a"]),
    ("drop: {at: a.c.d, paths: [b]}", '{"a": [[]]}', []),
    ("drop: {at: a.c.d, paths: [b]}", '{"a": [{"c": 1}]}', ["a.c.d"]),
    ("drop: {at: '**.c', paths: [b]}", '{"x": []}', ["**.c"]),
    ("keep: [id, nope, user.nope]", '{"id": 1, "user": {}}', ["nope", "user.nope"]),
    ("keep: [id, nope]", '[{"id": 1}, {"nope": 2}]', []),
    ("keep: [id, a.x, b.x]", '{"id": 1, "a": [], "b": null}', []),
    ("keep: {at: items, paths: [id, nope]}", '{"items": [{"id": 1}]}', ["items.nope"]),
    *((f"{step}: {{at: items.user, {options}}}", before, [])
      for step, options in (("keep", "paths: [id]"), ("project", "fields: [n]"))
      for before in ("{}", '{"items": []}', '{"items": [{"user": null}]}')),
    ("project: [a, {b: {path: b, default: 0}}]", '{"a": 1, "b": 0}', []),
    ("project: {at: p, fields: [a, {b: x.y}, {c: a.n}]}", '{"p": [{"a": 1, "b": null, "c": null}]}',
     ["p.x.y", "p.a.n"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "before", "missing"), ABSENT)
@pytest.mark.parametrize("opened", [False, True], ids=["unopened", "opened"])
def test_paths_that_name_nothing_are_reported(
    text: str, before: str, missing: list[str], opened: bool
) -> None:
    document, step_call = Document.read(before.encode()), call()
    if opened:
        open_all(document.root)
    run(text, document, step_call)
    assert document.encode() == compact(before.encode())
    assert not document.changed or text.startswith(("keep", "project"))
    assert step_call.missing == missing


# A step, a document that it does not fit, and why.
MISMATCHES: list[tuple[str, str, str]] = [
    ("keep: [id, user.login]", '{"message": "Not Found"}', "no id, user.login in the document"),
    ("keep: items.id", '{"items": [{"x": 1}]}', "no items.id in the document"),
    ("keep: id", '"a text"', "no id in the document"),
    ("keep: {at: items, paths: [id]}", '{"rows": []}', "no id in items"),
    ("keep: '**.id'", '{"a": [{"x": 1}]}', "no **.id in the document"),
    *(
        (f"project: {fields}", before, f"none of the fields to project is in {place}")
        for fields, before, place in [
            ("[id, {n: user.name}]", '{"message": "no"}', "the document"),
            ("[id]", '"text"', "the document"),
            ("{at: items, fields: [id]}", '{"items": [{"x": 1}]}', "items"),
            ("[{n: {jmespath: a}}]", '{"b": 1}', "the document"),
        ]
    ),
    ("paginate: {at: groups.files}", '{"groups": [{"files": []}]}',
     "groups.files steps through an array at groups"),
    ("paginate: {at: files, page_info: {meta.count: returned}}", '{"files": [], "meta": "text"}',
     "page_info names meta.count, but meta is no object"),
    ("truncate: {at: items.content}", '{"items": [{"content": "x"}]}',
     "items.content steps through an array at items"),
    ("filter: {glob: {argument: n}}", '["a"]', "n: 5 is not a string"),
    ("parse: {as: records, split: '(?m)^(?=Commit: )'}", '"fatal: not a repository"',
     r"no record begins by '(?m)^(?=Commit: )' in the text"),
    *(("parse: {as: lines, fence: yaml}", text,
       "no block of 'yaml' between lines of three backticks in the text")
      for text in ('"no fence"', r'"```yaml\nnot closed\n"')),
    ("parse: {as: json, after: 'Rows:'}", '"[1]"', "no 'Rows:' in the text"),
    ("parse: {as: json, at: content}", '[{"content": {}}, {"content": "{}"}]',
     "at content, some values are texts and some are not"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "before", "message"), MISMATCHES)
def test_a_document_of_another_shape_is_a_mismatch(text: str, before: str, message: str) -> None:
    with pytest.raises(ShapeMismatch) as mismatch:
        shaped(before.encode(), *steps(text), at=call(n=5))
    assert str(mismatch.value) == message


@pytest.mark.parametrize(
    ("text", "before", "after", "note"),
    [
        ("elide: {first: 2}", b"[1, 2.0, 3]", b"[1,2.0]", {"items": "2 of 3"}),
        ("parse: {as: lines}}, {elide: {last: 1}", rb'"a\nb"', b'"b"', "last 1 of 2"),
    ],
)
def test_the_note_of_elide_stands_beside_a_document_that_is_no_object(
    text: str, before: bytes, after: bytes, note: object
) -> None:
    step_call = call()
    assert shaped(before, *steps(text), at=step_call) == after
    assert step_call.notices == [Notice("_elided", note)]


def spelled(data: bytes) -> Any:
    return json.loads(data, parse_float=str, parse_int=str, object_pairs_hook=list)


NAMES = st.sampled_from(["id", "body", "items", "more", "text", '"a.b"', '""'])


@given(values(), st.lists(st.lists(NAMES, min_size=1, max_size=3).map(".".join), min_size=1))
def test_rows_and_the_tree_keep_the_same(data: bytes, paths: list[str]) -> None:
    outcomes: list[Any] = []
    for opening in (False, True):
        document, step_call = Document.read(data), call()
        if opening:
            open_all(document.root)
        try:
            Keep(tuple(map(Path.parse, paths)))(document.root, step_call)
        except ShapeMismatch as mismatch:
            outcomes.append(str(mismatch))
        else:
            outcomes.append((spelled(document.encode()), step_call.missing))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("step", "text", "clipped"),
    [
        (Clip(max_chars=4), "abcd", "abcd"),
        (Clip(max_chars=1), "😀é", "😀… (+1 chars)"),
        (Clip(max_lines=2), "a\nb\nc\nd", "a\nb\n… (+2 lines)"),
        (Clip(max_lines=2), "a\nb\nc\nd\n", "a\nb\n… (+2 lines)"),
        (Clip(max_lines=2), "a\nb\n", "a\nb\n"),
        (Clip(max_lines=0), "a\nb", "… (+2 lines)"),
        (Clip(max_lines=1, max_chars=2), "abc\nd", "ab… (+3 chars)"),
        (Clip(max_lines=1, max_chars=9), "abc\nd\ne", "abc\n… (+2 lines)"),
    ],
)
def test_a_text_is_shortened_and_what_is_left_out_is_counted(
    step: Clip, text: str, clipped: str
) -> None:
    assert shaped_text(text, step) == clipped


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "changed"),
    [
        (r"(\w+)@(\w+)", r"\2 at \1", "me@home", "home at me"),
        (r"(?P<k>key)=\S+", r"\g<k>=…é", "key=1 key=2", "key=…é key=…é"),
        ("é", r"\\n is not \n", "é", "\\n is not \n"),
        ("^", "> ", "a\nb", "> a\nb"),
        ("(?m)^", "> ", "a\nb", "> a\n> b"),
    ],
)
def test_every_match_is_replaced(pattern: str, replacement: str, text: str, changed: str) -> None:
    assert shaped_text(text, Replace(pattern=Pattern(pattern), with_=replacement)) == changed
