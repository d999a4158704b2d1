"""Schemas with documents that fit them: strategies for tests of `reshape`."""

import json
from typing import Any

import jsonschema
from hypothesis import assume
from hypothesis import strategies as st
from mcp_abridge.document.paths import ROOT, Path
from mcp_abridge.errors import ShapeMismatch
from mcp_abridge.transforms.base import Schema, Transform

from tests.documents import shaped

NAMES = ["a", "b", "c", "items"]
OTHERS = ["x1", "y", "d"]
Shape = tuple[Schema, st.SearchStrategy[Any]]

_DIALECT = jsonschema.Draft202012Validator
_SCALARS: list[Shape] = [
    ({"type": "integer", "minimum": 0}, st.integers(0, 9)),
    ({"type": "number", "exclusiveMaximum": 9, "multipleOf": 0.5}, st.sampled_from([0.5, 7.5])),
    ({"type": "string", "minLength": 1}, st.sampled_from(["k", "long", "z/y"])),
    ({"enum": ["open", "closed", None]}, st.sampled_from(["open", "closed", None])),
    ({"type": "boolean"}, st.booleans()),
    ({"type": "null"}, st.none()),
    ({}, st.sampled_from([1, "any", None, [], {}, [{"a": 1}], {"b": [1]}])),
]


def fits(document: Any, schema: Schema) -> bool:
    """Return True if `document` is valid, by the dialect that the schema names."""
    jsonschema.validators.validator_for(schema, _DIALECT).check_schema(schema)
    return _valid(document, schema)


def _valid(document: Any, schema: Schema) -> bool:
    kind = jsonschema.validators.validator_for(schema, _DIALECT)
    return bool(kind(schema).is_valid(document))


@st.composite
def fitting(draw: st.DrawFn, depth: int = 3) -> tuple[Schema, Any]:
    """Draw the schema of an object and a document that fits it."""
    definitions: dict[str, Schema] = {}

    def flag(one_in: int = 3) -> bool:
        return draw(st.integers(1, one_in)) == 1

    def shape(depth: int) -> Shape:
        if depth == 0 or flag(4):
            return draw(st.sampled_from(_SCALARS))
        inner = obj(depth) if flag(2) else array(depth)
        return wrapped(*inner, depth)

    def obj(depth: int) -> Shape:
        members = {name: shape(depth - 1) for name in draw(st.sets(st.sampled_from(NAMES)))}
        required = [name for name in members if flag(2)]
        schema: Schema = {"type": "object", "properties": {n: s for n, (s, _) in members.items()}}
        if required or flag():
            schema["required"] = required
        if flag():
            schema["minProperties"] = len(required)
        extra: st.SearchStrategy[Any] = st.just(1)
        rest = draw(st.sampled_from(["none", "open", "shape", "pattern", "names"]))
        if rest == "none":
            schema["additionalProperties"] = False
        elif rest == "shape":
            schema["additionalProperties"], extra = shape(depth - 1)
        elif rest == "pattern":
            schema["patternProperties"], extra = {"^[xy]": {"type": "integer"}}, st.just(7)
        elif rest == "names":
            schema["propertyNames"] = {"maxLength": 5}
        others = [] if rest == "none" else OTHERS + NAMES
        optional = {name: values for name, (_, values) in members.items() if name not in required}
        optional |= {name: extra for name in others if name not in members and flag()}
        return schema, st.fixed_dictionaries(
            {name: members[name][1] for name in required}, optional=optional
        )

    def array(depth: int) -> Shape:
        items, values = shape(depth - 1)
        least = draw(st.sampled_from([2, 1, 0]))
        schema: Schema = {"type": "array", "items": items}
        if least:
            schema["minItems"] = least
        if flag(6):
            schema["uniqueItems"] = True
        if flag(6):
            schema["contains"] = items
        if flag(6):
            return schema | {"prefixItems": [items, {}]}, st.lists(values, min_size=2, max_size=4)
        return schema, st.lists(values, min_size=least, max_size=5)

    def wrapped(schema: Schema, values: st.SearchStrategy[Any], depth: int) -> Shape:
        ways = ["", "", "ref", "null", "any", "one", "all", "const", "untyped"]
        way = draw(st.sampled_from(ways))
        if way == "ref":
            name = f"D{len(definitions)}"
            definitions[name] = schema
            return {"$ref": f"#/$defs/{name}", "description": "see there"}, values
        if way == "null":
            return schema | {"type": [schema["type"], "null"]}, values | st.none()
        if way == "any":
            other, others = shape(depth - 1)
            return {"anyOf": [schema, other]}, values | others
        if way == "one":
            return {"oneOf": [schema, {"type": "null"}], "title": "T"}, values | st.none()
        if way == "all":
            return {"type": schema["type"], "allOf": [schema, {}]}, values
        if way == "const":
            value = draw(values)
            return {"const": value}, st.just(value)
        if way == "untyped":
            return {word: schema[word] for word in schema if word != "type"}, values
        return schema, values

    schema, values = obj(depth)
    if flag():
        schema, values = wrapped(schema, values, depth)
    if definitions:
        schema = schema | {"$defs": definitions}
    document = draw(values)
    # What is put together here is a schema; to check each against that of schemas takes long.
    assume(isinstance(document, dict) and _valid(document, schema))
    return schema, document


@st.composite
def paths(draw: st.DrawFn, *, patterns: bool = True) -> Path:
    """Draw a path of one to three steps among the names of `fitting`."""
    steps = [*NAMES, "d", "x1"] + (["*", "a*", "**"] if patterns else [])
    names = draw(st.lists(st.sampled_from(steps), min_size=1, max_size=3))
    assume(names.count("**") < 3)  # a path has it at most twice
    if patterns and draw(st.integers(1, 5)) == 1:
        names[-1] += draw(st.sampled_from(["[]", "[0]", "[-1]"]))
    return Path.parse(".".join(names).replace("**[", "b["))


def names(document: Any, before: tuple[str, ...] = ()) -> set[str]:
    """Return the paths of everything in `document`, and of absent members beside it."""
    if isinstance(document, list):
        return set().union(*(names(element, before) for element in document))
    if not isinstance(document, dict):
        return set()
    here = {".".join((*before, name)) for name in (*document, NAMES[0])}
    return here.union(*(names(inner, (*before, name)) for name, inner in document.items()))


def arrays(document: Any, before: tuple[str, ...] = ()) -> set[str]:
    """Return the paths of the arrays in `document`."""
    here = {".".join(before)} if isinstance(document, list) and before else set()
    if isinstance(document, list):
        return here.union(*(arrays(element, before) for element in document))
    if not isinstance(document, dict):
        return set()
    return here.union(*(arrays(inner, (*before, name)) for name, inner in document.items()))


def there(document: Any) -> st.SearchStrategy[Path]:
    """Draw paths of which most name something in `document`."""
    real = st.sampled_from(sorted(names(document) or {"a"})).map(Path.parse)
    return st.one_of(real, real, real, paths())


def where(document: Any) -> st.SearchStrategy[Path]:
    """Draw a place to work at: most often an array of `document`, if it has one."""
    places = sorted(arrays(document)) or ["a"]
    real = st.sampled_from(places).map(Path.parse)
    return st.one_of(real, real, real, real, paths(), st.just(ROOT))


def assert_reshaped(step: Transform, schema: Schema, document: Any) -> None:
    """Assert that the document fits the schema that `step` reshapes, before and after."""
    try:
        after = json.loads(shaped(json.dumps(document).encode(), step))
    except ShapeMismatch:
        return
    reshaped = step.reshape(schema)
    assert reshaped is not None
    assert fits(after, reshaped), (after, reshaped)
    assert fits(document, reshaped), (document, reshaped)
