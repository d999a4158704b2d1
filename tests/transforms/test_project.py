from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.fuel import LITTLE, Fuel
from proxy.document.paths import ROOT, Path
from proxy.document.patterns import Expression
from proxy.document.tree import Document, Pieces, compact, encode
from proxy.errors import AbridgeError, OutOfFuel, ShapeMismatch
from proxy.ruleset.loading.rulefile import read
from proxy.transforms.base import Transform
from proxy.transforms.drop import Drop
from proxy.transforms.filter import Filter
from proxy.transforms.project import FromExpression, FromPath, Project
from proxy.transforms.sort import Sort
from tests.documents import call, shaped
from tests.explosive import EXPLOSIVE
from tests.fitting import assert_reshaped, fitting, there


def project(options: str) -> Project:
    """Read a projection as a rule file has it."""
    rule = f"version: 1\nrules: [{{tools: t, response: [{{project: {options}}}]}}]"
    reading = read("r.yaml", rule.encode())
    assert reading.problems == ()
    assert reading.rules is not None
    [step] = reading.rules.rules[0].pipeline
    assert isinstance(step, Project)
    return step


# What is made, of what, and what comes of it.
CASES: dict[str, tuple[str, str, str]] = {
    "exactly these keys in this order, null where nothing is": (
        "[b, a, c]",
        '{"a": 1.0, "b": 2, "x": 3}',
        '{"b":2,"a":1.0,"c":null}',
    ),
    "a path gives a key its value": (
        "[{login: user.login}, {first: 'tags[0]'}, {last: 'tags[-1]'}, {none: 'tags[9]'}]",
        '{"user": {"login": "x", "id": 1}, "tags": [1, 2]}',
        '{"login":"x","first":1,"last":2,"none":null}',
    ),
    "through arrays and patterns it gives an array": (
        "[{names: labels.name}, {ids: '*Id'}, {deep: '**.n'}, {each: 'labels[].name'}]",
        '{"labels": [{"name": "x"}, {}, {"name": "y"}], "fooId": 1, "barId": {"n": 2}}',
        '{"names":["x","y"],"ids":[1,{"n":2}],"deep":[2],"each":["x","y"]}',
    ),
    "a default stands where nothing does, the nearest one": (
        "{fields: [a, {b: {path: b, default: []}}, {from: in, default: 0, fields: "
        "[c, {d: {path: d, default: x}}]}, e], default: 9}",
        '{"e": null}',
        '{"a":9,"b":[],"c":0,"d":"x","e":null}',
    ),
    "a null is a value and stays": (
        "[{a: {path: a, default: 1}}, {b: {path: b.c, default: 1}}]",
        '{"a": null, "b": {"c": null}}',
        '{"a":null,"b":null}',
    ),
    "unless the default is to stand over it": (
        "[{a: {path: a, default: 1, over_null: true}}, {b: {path: b.c, default: [], "
        "over_null: true}}, {c: {path: c, default: 0, over_null: true}}, "
        "{d: {path: 'd.n', default: x, over_null: true}}]",
        '{"a": null, "b": {"c": null}, "c": false, "d": [{"n": null}]}',
        '{"a":1,"b":[],"c":false,"d":[null]}',
    ),
    "in each element of an array too": (
        "{at: items, fields: [id, {t: {path: t, default: '', over_null: true}}]}",
        '{"items": [{"id": 1, "t": null}, null, {"id": 2, "t": " null"}, {"id": null}]}',
        '{"items":[{"id":1,"t":""},null,{"id":2,"t":" null"},{"id":null,"t":""}]}',
    ),
    "a group is flattened in": (
        "{at: progress, to: summary, fields: [status, {from: counters, default: 0, "
        "fields: [done, failed, {n: inner.n}, {from: inner, fields: [m]}]}]}",
        '{"progress": {"counters": {"done": 7, "inner": {"n": 1, "m": 2}}, "status": "x"}, "z": 1}',
        '{"summary":{"status":"x","done":7,"failed":0,"n":1,"m":2},"z":1}',
    ),
    "what is null stays null by its new name": (
        "{at: progress, to: summary, fields: [status]}",
        '{"a": 1, "progress": null, "z": 1}',
        '{"a":1,"summary":null,"z":1}',
    ),
    "an expression computes over the object, or over its part in a group": (
        "[{n: {jmespath: 'length(items)'}}, {o: {jmespath: open}}, "
        "{p: {jmespath: 'x.y', default: 0}}, "
        "{from: user, fields: [{q: {jmespath: 'join(`-`, [a, b])'}}]}]",
        '{"items": [1, 2], "open": 1.50, "user": {"a": "1", "b": "2"}}',
        '{"n":2,"o":1.50,"p":0,"q":"1-2"}',
    ),
    "of an array each element, and null stays": (
        "{at: items, fields: [id, {n: user.name}, {m: user.name}]}",
        '{"items": [{"id": 1, "x": 2, "user": {"name": "a"}}, null, {"user": null}], "t": 1}',
        '{"items":[{"id":1,"n":"a","m":"a"},null,{"id":null,"n":null,"m":null}],"t":1}',
    ),
    "also where elements are no objects": (
        "[id, {u: user.id}]",
        '[{"id": 1, "user": {"id": 2}}, 3.0, [{"id": 4}], "\\/"]',
        '[{"id":1,"u":2},3.0,[{"id":4,"u":null}],"\\/"]',
    ),
    "a part that leads nowhere is no mismatch": (
        "[{n: user.name}]",
        '[{"user": {"x": 1}}]',
        '[{"n":null}]',
    ),
    "an empty object has all the defaults": ("[a]", "{}", '{"a":null}'),
    "an empty array stays empty": ("[a]", "[]", "[]"),
    "a text stays where an object was expected, by its new name": (
        "{at: '*', fields: [x]}",
        '{"a": "text", "b": {"x": 1}}',
        '{"a":"text","b":{"x":1}}',
    ),
}


@pytest.mark.parametrize(("options", "before", "after"), CASES.values(), ids=CASES)
def test_an_object_is_made_anew(options: str, before: str, after: str) -> None:
    assert shaped(before.encode(), project(options)).decode() == after


MISMATCHES: list[tuple[str, str, str]] = [
    ("[id, {n: user.name}]", '{"message": "no"}', "the document"),
    ("[id]", "[1, 2]", "the document"),
    ("[id]", '"text"', "the document"),
    ("[id]", '[{"x": 1}]', "the document"),
    ("{at: items, fields: [id]}", '{"rows": [{"id": 1}]}', "items"),
    ("{at: items, fields: [id]}", '{"items": [{"x": 1}]}', "items"),
    ("[{n: {jmespath: a}}]", '{"b": 1}', "the document"),
]


@pytest.mark.parametrize(("options", "before", "place"), MISMATCHES)
def test_a_document_of_another_shape_is_a_mismatch(options: str, before: str, place: str) -> None:
    with pytest.raises(ShapeMismatch) as mismatch:
        shaped(before.encode(), project(options))
    assert str(mismatch.value) == f"none of the fields to project is in {place}"


def test_lines_are_a_mismatch() -> None:
    with pytest.raises(ShapeMismatch):
        project("[a]")(Document(Pieces(["a"])).root, call())


@pytest.mark.parametrize("before", ["{}", '{"items": []}', '{"items": [{"user": null}]}'])
def test_a_document_with_nothing_at_the_place_is_left_alone(before: str) -> None:
    step = project("{at: items.user.names, fields: [n]}")
    assert shaped(before.encode(), step) == compact(before.encode())


def test_sources_that_are_nowhere_are_noted_unless_a_default_was_given() -> None:
    told = call()
    step = project("{at: p, fields: [a, b, {c: {path: c, default: 0}}, {d: x.y}, {e: a.n}]}")
    shaped(b'{"p": [{"a": 1}, {"a": 2}]}', step, at=told)
    assert told.missing == ["p.b", "p.x.y", "p.a.n"]


def test_an_argument_of_the_call_can_be_a_value() -> None:
    step = project("""[a, {asked: {jmespath: "argument('q')"}}]""")
    assert shaped(b'{"a": 1}', step, at=call(q="x")) == b'{"a":1,"asked":"x"}'


def test_a_default_is_made_anew_for_every_object() -> None:
    step = project("{fields: [{tags: {path: tags, default: []}}]}")
    for _ in range(2):
        document = Document.read(b'[{"x": 1}, {"tags": [1]}]')
        step(document.root, call())
        first = document.root.open()[0]["tags"]
        assert document.encode() == b'[{"tags":[]},{"tags":[1]}]'
        assert type(first).__name__ == "Raw"


@given(fitting(), st.data())
def test_what_is_projected_fits_its_schema(pair: tuple[Any, Any], data: st.DataObject) -> None:
    schema, document = pair
    source = there(document) | there(document).map(lambda path: FromPath(path, "none", True))
    outs = data.draw(st.dictionaries(st.sampled_from("abxy"), source, min_size=1))
    default: Any = data.draw(st.sampled_from([None, 0, []]))
    at, to = ROOT, None
    if data.draw(st.booleans()):
        at = data.draw(there(document))
        named = at.text[-1] not in "*]"
        to = data.draw(st.sampled_from([None, "a", "new"])) if named else None
    fields: list[Any] = [outs]
    if data.draw(st.booleans()):
        fields.append({"z": FromExpression(Expression("a || b"))})
    assert_reshaped(Project(tuple(fields), at, to, default), schema, document)


def test_the_schema_has_exactly_the_fields() -> None:
    schema = {
        "type": "object",
        "properties": {
            "run": {
                "type": ["object", "null"],
                "properties": {"id": {"type": "string"}, "log": {"type": "array"}},
            }
        },
        "required": ["run"],
        "additionalProperties": False,
    }
    step = project("{at: run, to: summary, fields: [id, {n: {jmespath: 'length(log)'}}]}")
    assert step.reshape(schema) == {
        "type": "object",
        "properties": {
            "summary": {
                "type": ["object", "null"],
                "properties": {"id": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "n": True},
                "required": ["id", "n"],
                "additionalProperties": False,
            }
        },
        "required": ["summary"],
        "additionalProperties": False,
    }


ROWS = '[{"a": 2, "t": null}, {"a": 1.0, "t": "x", "z": 0}, {"a": 3}]'
OPENED: dict[str, tuple[str, Transform | None, str]] = {
    "unopened": (ROWS, None, '[{"a":2,"t":""},{"a":1.0,"t":"x"},{"a":3,"t":""}]'),
    "in another order": (
        ROWS,
        Sort(Path.parse("a")),
        '[{"a":1.0,"t":"x"},{"a":2,"t":""},{"a":3,"t":""}]',
    ),
    "fewer": (ROWS, Filter(where=Expression("t")), '[{"a":1.0,"t":"x"}]'),
    "with a null": (
        f"[null, {ROWS[1:]}",
        Filter(where=Expression("!t")),
        '[null,{"a":2,"t":""},{"a":3,"t":""}]',
    ),
    "none": (ROWS, Filter(where=Expression("a > `3`")), "[]"),
    "with an array": (
        f"[[], {ROWS[1:]}",
        Filter(where=Expression("!t")),
        '[[],{"a":2,"t":""},{"a":3,"t":""}]',
    ),
    "opened too": (
        ROWS,
        Drop((Path.parse("z"),)),
        '[{"a":2,"t":""},{"a":1.0,"t":"x"},{"a":3,"t":""}]',
    ),
}


@pytest.mark.parametrize(("before", "earlier", "after"), OPENED.values(), ids=OPENED)
def test_what_an_earlier_step_opened_is_made_anew_as_if_it_had_not(
    before: str, earlier: Transform | None, after: str
) -> None:
    document = Document.read(before.encode())
    if earlier is not None:
        earlier(document.root, call())
    project("[a, {t: {path: t, default: '', over_null: true}}]")(document.root, call())
    assert document.encode().decode() == after


REFUSED: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((), {}, "no fields"),
    (("a", {"a": Path.parse("b")}), {}, "'a' stands twice"),
    (("a.b",), {}, "'a.b' is a path: say what it becomes, {b: a.b}"),
    (("a*",), {}, "'a*' is not one name; put odd names in double quotes"),
    (({"a.b": Path.parse("c")},), {}, "'a.b' is not one name; put odd names in double quotes"),
    (("a",), {"to": "b"}, "'to' renames what 'at' names, and 'at' ends in no name"),
    (
        ("a",),
        {"to": "b", "at": Path.parse("x*")},
        "'to' renames what 'at' names, and 'at' ends in no name",
    ),
    (
        ("a",),
        {"to": "b.c", "at": Path.parse("x")},
        "'b.c' is not one name; put odd names in double quotes",
    ),
]


@pytest.mark.parametrize("default", [{}, {"default": None}])
def test_a_default_that_is_null_cannot_stand_over_null(default: dict[str, None]) -> None:
    with pytest.raises(ValueError, match="there is no default here to stand over a null"):
        FromPath(Path.parse("a"), over_null=True, **default)


@pytest.mark.parametrize(("fields", "options", "message"), REFUSED)
def test_a_projection_that_cannot_be_is_refused(
    fields: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, AbridgeError)) as refused:
        Project(fields, **options)
    assert str(refused.value) == message


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize("name", EXPLOSIVE)
def test_an_explosive_field_fails_where_the_fuel_ends(name: str) -> None:
    text, value = EXPLOSIVE[name]
    told = call()
    told.fuel = Fuel(LITTLE)
    step = Project(({"a": FromExpression(Expression(f"v | {text}"))},))
    with pytest.raises(OutOfFuel):
        shaped(b'{"v":%s}' % encode(value), step, at=told)


@pytest.mark.fault(36, "inside")
def test_shared_parts_of_a_field_are_paid_for_before_they_are_written() -> None:
    told = call()
    told.fuel = Fuel(LITTLE)
    step = Project(({"a": FromExpression(Expression(" | ".join(["[@, @]"] * 30)))},))
    with pytest.raises(OutOfFuel):
        shaped(b'{"v":1}', step, at=told)
