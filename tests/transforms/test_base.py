"""The parts that transforms share, and what all of them keep to."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.surrogates import replace_lone
from proxy.document.tree import Document, Pieces, compact
from proxy.errors import ShapeMismatch
from proxy.transforms.base import Transform
from tests.documents import SCALARS, SURROGATES, call, open_all, shaped, values
from tests.given import rule


@cache
def made(text: str) -> Transform:
    [step] = rule(f"response: [{{{text}}}]").pipeline
    return step


VALUES = values(SCALARS | st.sampled_from(SURROGATES), leaves=5)

# A step, the document before with three values (1, 2 and 3), and after it.
SPELLED: list[tuple[str, str, str]] = [
    ("drop: [a.y, y]", '{"a": [{"x": 1, "\\u0079": 3}], "b": 2, "y": 3}',
     '{"a": [{"x": 1}], "b": 2}'),
    ("drop: ['a[].y', y]", '{"a": [{"x": 1, "y": 3}], "b": 2, "y": 3}',
     '{"a": [{"x": 1}], "b": 2}'),
    ("keep: [b, a.x]", '{"a": [{"x": 1, "y": 3}], "b": 2, "c": 3}', '{"b": 2, "a": [{"x": 1}]}'),
    ("keep: [b, '**.x']", '{"a": [{"x": 1, "y": 3}], "b": 2, "c": 3}', '{"b": 2, "a": [{"x": 1}]}'),
    ("elide: {at: a, first: 1, last: 1}", '{"a": [1, 3, 2], "b": 2}',
     '{"a": [1, 2], "b": 2, "_elided": {"a": "first @ and last @ of #"}}'),
    ("filter: {at: i, where: id == 'x'}",
     '{"i": [{"id": "x", "v": 1}, {"id": "y", "v": 3}], "v": 2}',
     '{"i": [{"id": "x", "v": 1}], "v": 2}'),
    ("filter: {at: i, field: id, prefix: x}",
     '{"i": [{"id": "x", "v": 1}, {"id": "y", "v": 3}], "v": 2}',
     '{"i": [{"id": "x", "v": 1}], "v": 2}'),
    ("filter: {at: i, field: id, glob: y, invert: true}",
     '{"i": [{"id": "x", "v": 1}, {"id": "y", "v": 3}], "v": 2}',
     '{"i": [{"id": "x", "v": 1}], "v": 2}'),
    ("project: {at: r, fields: [{c: b.c}, a]}", '{"r": [{"a": 1, "y": 3, "b": {"c": 2}}], "z": 3}',
     '{"r": [{"c": 2, "a": 1}], "z": 3}'),
    ("project: {at: 'r[]', fields: [{c: b.c}, a]}",
     '{"r": [{"a": 1, "y": 3, "b": {"c": 2}}], "z": 3}', '{"r": [{"c": 2, "a": 1}], "z": 3}'),
    ("rename: {b: n}", '[{"a": 1, "b": 2}]', '[{"a": 1, "n": 2}]'),
    ("sort: {at: i, by: n}", '{"i": [{"n": "b", "v": 1}, {"n": "a", "v": 2}], "v": 1}',
     '{"i": [{"n": "a", "v": 2}, {"n": "b", "v": 1}], "v": 1}'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "before", "after"), SPELLED)
@given(VALUES, VALUES, VALUES)
def test_values_that_stay_keep_their_spelling(
    text: str, before: str, after: str, one: bytes, other: bytes, gone: bytes
) -> None:
    def filled(template: str) -> bytes:
        parts = {"1": one, "2": other, "3": gone, "@": b"1", "#": b"3"}
        return b"".join(parts.get(sign, sign.encode()) for sign in template)

    assert shaped(filled(before), made(text)) == compact(replace_lone(filled(after)))


NO_TABLE = ['[{"a": 1}, {"b": 1}]', '[{"a": 1}, {"a": 1, "b": 2}]', '[{"a": 1, "b": 2}, {"a": 1}]']
NO_TABLE += ['[{"a": 1}, null]', '[null, {"a": 1}]', '[{"a": 1}, [1]]', "[1, 2]", "[{}, {}]"]
ARRAYS = ["elide: items", "filter: {at: items, prefix: a}", "sort: {at: items}", "table: items"]

# A step, a document, and the paths of the step that name nothing in it, if it stays as it came.
ABSENT: list[tuple[str, str, list[str]]] = [
    *((text, '{"items": {"a": 1}}', ["items"]) for text in ARRAYS),
    *((text, '{"rows": []}', ["items"]) for text in ARRAYS),
    *((text, '{"items": null}', []) for text in ARRAYS),
    *((text, "{}", []) for text in ARRAYS),
    *((text, "[]", []) for text in ARRAYS),
    ("elide: {}", '{"a": 1}', ["[]"]),
    ("filter: {prefix: a}", '{"a": 1}', ["[]"]),
    ("sort: {}", '{"a": 1}', ["[]"]),
    ("table: {}", '{"a": 1}', ["[]"]),
    *(("table: items", f'{{"items": {items}}}', ["items"]) for items in NO_TABLE),
    ("sort: {at: items, by: n}", '{"items": [{"x": 1}, {"x": 0}]}', ["items.n"]),
    ("sort: {at: items, by: n}", '{"items": [{"n": null}]}', []),
    ("paginate: {at: files}", '{"vault": 1.0}', ["files"]),
    ("paginate: {at: files}", '{"files": null}', ["files"]),
    ("paginate: {at: files}", '{"files": "none"}', ["files"]),
    ("truncate: {at: content, max_length: 2}", '{"other": 1}', ["content"]),
    ("truncate: {at: content, max_length: 2}", '{"content": null}', ["content"]),
    ("truncate: {at: content, max_length: 2}", '{"content": [1]}', ["content"]),
    ("clip: {at: body, max_chars: 3}", '{"a": 1}', ["body"]),
    ("replace: {at: x.y, pattern: a, with: b}", "{}", ["x.y"]),
    ("jmespath: {at: b, expression: a}", '{"a": 1}', ["b"]),
    ("prune: {at: gone}", '{"a": null}', ["gone"]),
    ("drop: [b, c.d]", '{"a": 1, "c": {}}', ["b", "c.d"]),
    ("drop: [a.b, c.d]", '{"a": null, "c": []}', []),
    ("drop: a.b", "[]", []),
    ("drop: {at: a, paths: [b]}", '{"a": {"x": 1}}', ["a.b"]),
    ("drop: {at: a, paths: [b]}", '{"x": 1}', ["a"]),
    ("drop: {at: a.c, paths: [b]}", '{"a": []}', []),
    ("keep: [id, nope, user.nope]", '{"id": 1, "user": {}}', ["nope", "user.nope"]),
    ("keep: [id, nope]", '[{"id": 1}, {"nope": 2}]', []),
    ("keep: [id, a.x, b.x]", '{"id": 1, "a": [], "b": null}', []),
    ("keep: [id, a.x]", '[{"id": 1}, {"a": [{}]}]', ["a.x"]),
    ("keep: [a, a.x]", '{"a": 1}', []),
    ("keep: {at: items, paths: [id, nope]}", '{"items": [{"id": 1}]}', ["items.nope"]),
    ("project: [a, {b: {path: b, default: 0}}]", '{"a": 1, "b": 0}', []),
    ("project: {at: p, fields: [a, {b: x.y}, {c: a.n}]}", '{"p": [{"a": 1, "b": null, "c": null}]}',
     ["p.x.y", "p.a.n"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "before", "missing"), ABSENT)
@pytest.mark.parametrize("opened", [False, True], ids=["unopened", "opened"])
def test_paths_that_name_nothing_are_noted(
    text: str, before: str, missing: list[str], opened: bool
) -> None:
    document, told = Document.read(before.encode()), call()
    if opened:
        open_all(document.root)
    made(text)(document.root, told)
    assert document.encode() == compact(before.encode())
    assert told.missing == missing


# A step, a document that it does not fit, and why.
MISMATCHES: list[tuple[str, str, str]] = [
    ("keep: [id, user.login]", '{"message": "Not Found"}', "no id, user.login in the document"),
    ("keep: items.id", '{"items": [{"x": 1}]}', "no items.id in the document"),
    ("keep: id", '"a text"', "no id in the document"),
    ("keep: id", "[1, 2]", "no id in the document"),
    ("keep: user.login", '{"user": "a"}', "no user.login in the document"),
    ("keep: {at: items, paths: [id]}", '{"rows": []}', "no id in items"),
    ("keep: '**.id'", '{"a": [{"x": 1}]}', "no **.id in the document"),
    *(
        (f"project: {fields}", before, f"none of the fields to project is in {place}")
        for fields, before, place in [
            ("[id, {n: user.name}]", '{"message": "no"}', "the document"),
            ("[id]", "[1, 2]", "the document"),
            ("[id]", '"text"', "the document"),
            ("[id]", '[{"x": 1}]', "the document"),
            ("{at: items, fields: [id]}", '{"rows": [{"id": 1}]}', "items"),
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
      for text in ('"no fence"', r'"```yaml\nnot closed\n"', r'"```yamlish\n```\n"')),
    ("parse: {as: json, after: 'Rows:'}", '"[1]"', "no 'Rows:' in the text"),
    ("parse: {as: json, at: content}", '[{"content": {}}, {"content": "{}"}]',
     "at content, some values are texts and some are not"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "before", "message"), MISMATCHES)
def test_a_document_of_another_shape_is_a_mismatch(text: str, before: str, message: str) -> None:
    with pytest.raises(ShapeMismatch) as mismatch:
        shaped(before.encode(), made(text), at=call(n=5))
    assert str(mismatch.value) == message


@pytest.mark.parametrize(
    ("text", "lines"),
    [("filter: {match: ^a}", ["a 3", "a 1"]), ("sort: {}", ["a 1", "a 3", "b 2"])],
)
def test_lines_stay_lines(text: str, lines: list[str]) -> None:
    document = Document(Pieces(["a 3", "b 2", "a 1"]))
    made(text)(document.root, call())
    assert isinstance(document.cell[0], Pieces)
    assert document.cell[0] == lines
