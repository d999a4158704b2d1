import copy
from collections.abc import Callable
from typing import Any

import pytest

from proxy.document.paths import ROOT, Path
from proxy.schema.derive import (
    advertised,
    at,
    each,
    moved,
    nullable,
    only,
    projected,
    relaxed,
    renamed,
    reordered,
    shortened,
    thinned,
    with_property,
    without,
)
from proxy.schema.references import Schema
from tests.fitting import fits

STRING: Schema = {"type": "string"}
P = Path.parse


def closed(*required: str, **properties: Any) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


def array(items: Any, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


ISSUE = closed("id", "labels", id=STRING, labels=array(closed("name", name=STRING, color=STRING)))
Edit = Callable[[Schema], Schema | None]

# What is done to a schema, and what becomes of it.
EDITS: list[tuple[str, Edit, Schema, Schema | None]] = [
    (
        "a kept property stays required, below arrays too",
        lambda schema: only(schema, ROOT, [P("labels.name"), P("nope")]),
        ISSUE,
        closed("labels", labels=array(closed("name", name=STRING))),
    ),
    (
        "a pattern keeps what it fits, and only what surely stays is required",
        lambda schema: only(schema, ROOT, [P("*.name"), P("i*")]),
        ISSUE,
        closed("id", id=STRING, labels=array(closed("name", name=STRING))),
    ),
    (
        "keeping one element leaves nothing to say of the elements",
        lambda schema: only(schema, ROOT, [P("labels[0].name")]),
        ISSUE,
        closed("labels", labels={"type": "array"}),
    ),
    (
        "keeping elements written out keeps them",
        lambda schema: only(schema, P("labels"), [P("[].name")]),
        ISSUE,
        closed("id", "labels", id=STRING, labels=array(closed("name", name=STRING))),
    ),
    (
        "keeping at any depth takes nothing for granted",
        lambda schema: only(schema, ROOT, [P("**.name")]),
        ISSUE,
        closed(id=STRING, labels=array(closed(name=STRING, color=STRING))),
    ),
    (
        "an inner member of members without names of their own is kept by name",
        lambda schema: only(schema, ROOT, [P("a.x")]),
        {"type": "object", "additionalProperties": closed(x=STRING, y=STRING)},
        {
            "type": "object",
            "additionalProperties": closed(x=STRING, y=STRING),
            "properties": {"a": closed(x=STRING)},
        },
    ),
    (
        "a dropped property is gone and not required",
        lambda schema: without(schema, P("labels.color")),
        ISSUE,
        closed("id", "labels", id=STRING, labels=array(closed("name", name=STRING))),
    ),
    (
        "a dropped element may be any",
        lambda schema: without(schema, P("a[0]")),
        closed(a=array(STRING, minItems=1, prefixItems=[{}])),
        closed(a={"type": "array"}),
    ),
    (
        "dropping at any depth takes nothing for granted",
        lambda schema: without(schema, P("**.color")),
        ISSUE,
        closed(id=STRING, labels=array(closed(name=STRING, color=STRING))),
    ),
    (
        "a renamed property is as it was by its new name",
        lambda schema: renamed(schema, P("labels.name"), "title"),
        ISSUE,
        closed(
            "id",
            "labels",
            id=STRING,
            labels=array(closed("title", title=STRING, color=STRING)),
        ),
    ),
    (
        "where the old name is optional the new name's own holder may stay",
        lambda schema: renamed(schema, P("a"), "b"),
        closed("b", a=STRING, b={"type": "null"}),
        closed("b", b={"anyOf": [STRING, {"type": "null"}]}),
    ),
    (
        "where others may stand by the new name it may be anything",
        lambda schema: renamed(schema, P("a"), "b"),
        {"type": "object", "properties": {"a": STRING}},
        {"type": "object", "properties": {"b": True}},
    ),
    (
        "what is never there is never renamed",
        lambda schema: renamed(schema, P("x"), "b"),
        closed(a=STRING),
        closed(a=STRING),
    ),
    ("a pattern cannot be renamed", lambda schema: renamed(schema, P("a*"), "b"), ISSUE, None),
    ("any depth cannot be renamed", lambda schema: renamed(schema, P("**.a"), "b"), ISSUE, None),
    (
        "a property more is optional",
        lambda schema: with_property(schema, P("labels"), "n", {"const": 1}),
        ISSUE,
        closed(
            "id",
            "labels",
            id=STRING,
            labels=array(closed("name", name=STRING, color=STRING, n={"const": 1})),
        ),
    ),
    (
        "or required, in the place of an old one",
        lambda schema: with_property(schema, ROOT, "a", {"const": 1}, optional=False),
        closed("b", a=STRING, b=STRING),
        closed("b", "a", a={"const": 1}, b=STRING),
    ),
    (
        "an optional one leaves room for the old one",
        lambda schema: with_property(schema, ROOT, "a", {"const": 1}),
        closed(a=STRING),
        closed(a={"anyOf": [STRING, {"const": 1}]}),
    ),
    (
        "a property more in what may be null",
        lambda schema: with_property(schema, P("a"), "n", {}),
        {"properties": {"a": {"anyOf": [{"type": "object"}, {"type": "null"}]}}},
        {
            "properties": {
                "a": {"anyOf": [{"type": "object", "properties": {"n": {}}}, {"type": "null"}]}
            }
        },
    ),
    (
        "a projection has exactly its fields, with the schemas of their sources",
        lambda schema: projected(
            schema,
            ROOT,
            {
                "key": (P("id"), None, False),
                "names": (P("labels.name"), [], False),
                "none": (P("nope"), 0, False),
                "computed": (None, None, False),
            },
        ),
        ISSUE,
        closed(
            "key",
            "names",
            "none",
            "computed",
            key=STRING,
            names=array(STRING),
            none={"const": 0},
            computed=True,
        )
        | {},
    ),
    (
        "a projection of elements leaves null among them",
        lambda schema: projected(schema, P("a"), {"x": (P("x"), None, False)}),
        closed(a=array({"type": ["object", "null"], "properties": {"x": STRING}})),
        closed(
            a=array(
                {
                    "type": ["object", "null"],
                    "properties": {"x": {"anyOf": [STRING, {"type": "null"}]}},
                    "required": ["x"],
                    "additionalProperties": False,
                }
            )
        ),
    ),
    (
        "an array may be shorter",
        lambda schema: at(schema, P("a"), shortened),
        closed(a=array(STRING, minItems=2, maxItems=9, contains={})),
        closed(a=array(STRING, maxItems=9)),
    ),
    (
        "or in another order",
        lambda schema: at(schema, P("a"), reordered),
        closed(a=array(STRING, minItems=2, prefixItems=[{}])),
        closed(a={"type": "array", "minItems": 2}),
    ),
    (
        "every object a path names is changed, in arrays too, and nothing else",
        lambda schema: each(schema, P("a"), lambda part: {**part, "title": "t"}),
        closed(a=array({"anyOf": [closed(), STRING]})),
        closed(a=array({"anyOf": [closed() | {"title": "t"}, STRING]})),
    ),
    (
        "members and elements may be missing anywhere",
        thinned,
        {"$ref": "#/$defs/a", "$defs": {"a": closed("x", x=array(STRING, minItems=1))}},
        {"$ref": "#/$defs/a", "$defs": {"a": closed(x=array(STRING))}},
    ),
    (
        "relaxed is all but the types",
        relaxed,
        closed(
            "a",
            a={"type": "string", "minLength": 3, "pattern": "x", "format": "uri"},
            b={"enum": ["x" * 41]},
            c={"enum": ["x" * 40, 1]},
            d=array({"type": "integer", "minimum": 0}, minItems=1, uniqueItems=True),
        )
        | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "minProperties": 2},
        {
            "type": "object",
            "properties": {
                "a": STRING,
                "b": {},
                "c": {"enum": ["x" * 40, 1]},
                "d": array({"type": "integer", "minimum": 0}),
            },
            "anyOf": [{}, {}],
        },
    ),
    (
        "a note is admitted where others have a schema",
        relaxed,
        {"additionalProperties": STRING, "patternProperties": {"^a": STRING}},
        {
            "additionalProperties": STRING,
            "patternProperties": {"^a": True},
            "properties": {"_abridged": True},
        },
    ),
    (
        "a schema as part of another one takes its definitions along",
        lambda schema: moved(schema, lambda own: {"properties": {"items": own}}),
        {"$ref": "#", "$schema": "s", "$defs": {"a": {}}, "type": "object"},
        {
            "$schema": "s",
            "properties": {"items": {"$ref": "#/$defs/root", "type": "object"}},
            "$defs": {"a": {}, "root": {"$ref": "#/$defs/root", "type": "object"}},
        },
    ),
]


@pytest.mark.parametrize(
    ("change", "schema", "expected"),
    [case[1:] for case in EDITS],
    ids=[case[0] for case in EDITS],
)
def test_a_change_of_documents_changes_their_schema(
    change: Edit, schema: Schema, expected: Schema | None
) -> None:
    before = copy.deepcopy(schema)
    assert change(schema) == expected
    assert schema == before


REMOTE: list[Schema] = [{"properties": {"a": {"$ref": "https://example.com/x"}}}, {"items": 1}]
CHANGES: dict[str, Edit] = {
    "at": lambda schema: at(schema, ROOT, shortened),
    "each": lambda schema: each(schema, ROOT, shortened),
    "moved": lambda schema: moved(schema, lambda own: own),
    "only": lambda schema: only(schema, ROOT, [P("a")]),
    "without": lambda schema: without(schema, P("a")),
    "renamed": lambda schema: renamed(schema, P("a"), "b"),
    "projected": lambda schema: projected(schema, ROOT, {"a": (P("a"), None, False)}),
    "with_property": lambda schema: with_property(schema, ROOT, "a", {}),
    "relaxed": relaxed,
    "thinned": thinned,
    "the server's own": lambda schema: advertised(schema, [{"type": "object"}]),
    "a derived one": lambda schema: advertised({"type": "object"}, [schema]),
}


@pytest.mark.parametrize("schema", REMOTE, ids=["remote", "wrong"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_schema_that_cannot_be_followed_is_left_unsaid(change: Edit, schema: Schema) -> None:
    assert change(schema) is None


def test_a_schema_that_holds_itself_is_followed_as_far_as_a_path_goes() -> None:
    tree = closed("name", name=STRING, secret=STRING, inner=array({"$ref": "#"}))
    changed = without(tree, P("inner.secret"))
    assert changed is not None
    deep = {"name": "c", "secret": "s"}
    assert fits({"name": "a", "secret": "s", "inner": [{"name": "b", "inner": [deep]}]}, changed)
    assert not fits({"name": "a", "inner": [{"name": "b", "secret": "s"}]}, changed)


def test_null_is_admitted() -> None:
    assert nullable({"enum": ["a"]}) == {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}


OWN = closed("a", a={"$ref": "#/$defs/A"}) | {"$defs": {"A": STRING}}


def test_what_is_advertised_takes_what_a_rule_yields_and_what_passes_untouched() -> None:
    derived = closed("b", b={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"type": "integer"}}}
    schema = advertised(OWN, [derived])
    assert schema is not None
    assert schema["type"] == "object"
    assert len(schema["anyOf"]) == 2
    assert schema["$defs"] == {"A": STRING, "A_2": {"type": "integer"}}
    for document, valid in [({"a": "x"}, True), ({"b": 1}, True), ({"b": "x"}, False), ({}, False)]:
        assert fits(document, schema) is valid


def test_equal_schemas_are_advertised_once_and_unused_definitions_not_at_all() -> None:
    derived = closed(b=STRING) | {"$defs": {"B": STRING}}
    assert advertised(OWN, [derived, derived, OWN]) == {
        "type": "object",
        "anyOf": [closed(b=STRING), closed("a", a={"$ref": "#/$defs/A"})],
        "$defs": {"A": STRING},
    }


def test_a_rule_that_changes_no_schema_leaves_the_servers_own() -> None:
    assert advertised(OWN, [OWN]) is OWN


def test_nothing_is_advertised_where_one_rule_cannot_say() -> None:
    assert advertised(OWN, [OWN, None]) is None


def test_the_dialect_of_the_server_is_kept_at_the_root() -> None:
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", **closed(a=STRING)}
    schema = advertised(draft, [without(draft, P("a"))])
    assert schema == {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "anyOf": [closed(), closed(a=STRING)],
    }


def test_where_the_server_sends_arrays_the_root_is_no_object() -> None:
    assert advertised(array(STRING), [closed(items=array(STRING))]) == {
        "anyOf": [closed(items=array(STRING)), array(STRING)]
    }
