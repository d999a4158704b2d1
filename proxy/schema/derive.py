"""Derives the JSON Schema of changed documents; it never rejects a valid changed document.

Every function takes the schema of whole documents, does not modify it, and returns the schema of
the changed documents: if a document fits the schema, the changed document fits the result. If an
exact schema is hard to derive, the result is a looser one; it is None if a reference cannot be
followed. Dialects: 2020-12, draft-07.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from proxy.document.paths import DEEP, Name, Path, Paths, fits
from proxy.schema.references import (
    Schema,
    Subschema,
    Unclear,
    joined,
    parted,
    pruned,
    settled,
    whole,
    within,
)
from proxy.schema.walk import (
    OF_NAMES,
    OF_OBJECTS,
    OF_PLACES,
    OF_WHOLENESS,
    Change,
    Walk,
    add_group,
    edit,
    either,
    elements,
    found,
    lacking,
    loosened,
    positional,
    unpatterned,
    without_null,
)


def at(schema: Schema, path: Path, change: Change) -> Schema | None:
    """Return `schema` with `change` applied to the subschema that `path` names.

    `change` gets one plain schema at a time: references are followed, and it is called for each
    alternative of an `anyOf` separately.

    >>> at({"properties": {"a": {"type": "array", "minItems": 1}}}, Path.parse("a"), shortened)
    {'properties': {'a': {'type': 'array'}}}
    """
    return _said(schema, lambda root, body: edit(body, Walk(root, change), path.steps))


def each(schema: Schema, path: Path, change: Change) -> Schema | None:
    """Return `schema` with `change` applied to every object that `path` names; see `at`.

    If `path` names an array, its elements are meant.
    """
    return _said(schema, lambda root, body: edit(body, Walk(root, change, over=True), path.steps))


def moved(schema: Schema, build: Change) -> Schema | None:
    """Return the schema that `build` makes around `schema`; definitions stay at the root.

    >>> moved({"$ref": "#/$defs/a", "$defs": {"a": {}}}, lambda own: {"properties": {"x": own}})
    {'properties': {'x': {'$ref': '#/$defs/a'}}, '$defs': {'a': {}}}
    """
    try:
        return joined([settled(schema)], lambda own: build(own[0]))
    except (Unclear, RecursionError):
        return None


def with_property(
    schema: Schema, path: Path, name: str, subschema: Schema, optional: bool = True
) -> Schema | None:
    """Return `schema` with one more property in the objects that `path` names.

    >>> with_property({"type": "object", "additionalProperties": False}, Path(), "n", {})
    {'type': 'object', 'additionalProperties': False, 'properties': {'n': {}}}
    """

    def add(part: Schema) -> Schema:
        changed = unpatterned(lacking(part, {"maxProperties", "propertyNames"}))
        own = part.get("properties", {})
        held = own.get(name, part.get("additionalProperties"))
        theirs = optional and isinstance(held, dict)
        changed["properties"] = {**own, name: either(held, subschema) if theirs else subschema}
        if not optional:
            changed["required"] = list(dict.fromkeys([*part.get("required", ()), name]))
        return changed

    return each(schema, path, add)


def without(schema: Schema, path: Path) -> Schema | None:
    """Return `schema` for documents from which everything at `path` was removed.

    >>> without({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}, Path.parse("a"))
    {'properties': {'b': {}}, 'required': ['b']}
    """
    *before, last = path.steps or (DEEP,)
    if DEEP in path.steps or not path.steps:
        return thinned(schema)
    if not isinstance(last, Name):
        return at(schema, Path(steps=tuple(before)), shortened)

    def remove(part: Schema) -> Schema:
        changed = lacking(part, OF_NAMES)
        if "properties" in part:
            own = part["properties"]
            changed["properties"] = {name: own[name] for name in own if not fits(last, name)}
        if "required" in part:
            changed["required"] = [name for name in part["required"] if not fits(last, name)]
        return changed

    return each(schema, Path(steps=tuple(before)), remove)


def only(schema: Schema, path: Path, paths: Iterable[Path]) -> Schema | None:
    """Return `schema` for documents in which the value at `path` keeps only `paths`.

    >>> only({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["b"]}, Path(),
    ...      [Path.parse("a")])
    {'properties': {'a': {'type': 'string'}}, 'required': []}
    """
    wanted = list(paths)
    if any(DEEP in each.steps for each in [path, *wanted]):
        return thinned(schema)

    def run(root: Schema, body: Schema) -> Subschema:
        return edit(body, Walk(root, _keeping(root, Paths.of(wanted))), path.steps)

    return _said(schema, run)


def renamed(schema: Schema, path: Path, name: str) -> Schema | None:
    """Return `schema` for documents in which the member at `path` has another name.

    >>> renamed({"properties": {"a": {}, "b": {}}, "required": ["a"]}, Path.parse("a"), "c")
    {'properties': {'c': {}, 'b': {}}, 'required': ['c']}
    """
    *before, last = path.steps or (DEEP,)
    if DEEP in path.steps or not isinstance(last, Name) or last.glob:
        return None
    old = last.text

    def rename(part: Schema) -> Schema:
        own = part.get("properties", {})
        rest = part.get("additionalProperties", True)
        if rest is False and old not in own and "patternProperties" not in part:
            return part
        changed = unpatterned(lacking(part, OF_NAMES))
        required = part.get("required", [])
        source = own.get(old, rest if rest is not False else True)
        if old not in required:
            # If there was no member to rename, the one that had the new name stays.
            source = either(source, own.get(name, True if "patternProperties" in part else rest))
        properties = {(name if key == old else key): own[key] for key in own if key != name}
        changed["properties"] = properties | {name: source}
        if "required" in part:
            taken = [name if key == old else key for key in required]
            changed["required"] = list(dict.fromkeys(taken))
        return changed

    return each(schema, Path(steps=tuple(before)), rename)


def projected(
    schema: Schema, path: Path, fields: Mapping[str, tuple[Path | None, Any, bool]]
) -> Schema | None:
    """Return `schema` for documents whose objects at `path` were rebuilt with these fields.

    Each field has the path of its source (None if it is computed), its default, and a flag: the
    default replaces a null too.

    >>> projected({"type": "object", "properties": {"a": {"type": "string"}}}, Path(),
    ...           {"x": (Path.parse("a"), None, False)})["properties"]
    {'x': {'anyOf': [{'type': 'string'}, {'type': 'null'}]}}
    """

    def project(root: Schema) -> Change:
        def change(part: Schema) -> Schema:
            changed = lacking(part, OF_OBJECTS)
            properties: Schema = {}
            for name, (source, default, over_null) in fields.items():
                value, sure = (True, False) if source is None else found(part, source.steps, root)
                if over_null:
                    value, null = without_null(value)
                    sure = sure and not null
                fallback = {"type": "null"} if default is None else {"const": default}
                properties[name] = value if sure else either(value, fallback)
            return changed | {
                "properties": properties,
                "required": list(fields),
                "additionalProperties": False,
            }

        return change

    def run(root: Schema, body: Schema) -> Subschema:
        return edit(body, Walk(root, project(root), over=True), path.steps)

    return _said(schema, run)


def relaxed(
    schema: Schema, admitting: Iterable[str] = ("_abridged",), longest: int = 40
) -> Schema | None:
    """Return `schema` for documents that may have lost anything but their types, at any depth.

    Arrays may be shorter, texts of more than `longest` characters cut, members missing; any object
    may also have the members `admitting`.

    >>> relaxed({"type": "object", "required": ["a"], "additionalProperties": False})
    {'type': 'object'}
    """
    names = tuple(admitting)

    def relax(node: Schema) -> Schema:
        changed = unpatterned(lacking(loosened(node, longest), OF_WHOLENESS))
        own, rest = changed.get("properties", {}), changed.get("additionalProperties")
        if rest is False:
            del changed["additionalProperties"]
        named = names if isinstance(rest, dict) else [name for name in names if name in own]
        if named:
            changed["properties"] = own | dict.fromkeys(named, True)
        return changed

    return _everywhere(schema, relax)


def thinned(schema: Schema) -> Schema | None:
    """Return `schema` for documents that may lack members and elements, at any depth.

    >>> thinned({"type": "array", "minItems": 1, "items": {"required": ["a"]}})
    {'type': 'array', 'items': {}}
    """
    return _everywhere(schema, lambda node: lacking(shortened(node), {"required"} | OF_NAMES))


def nullable(schema: Schema) -> Schema:
    """Return `schema` for a value that may also be null.

    >>> nullable({"type": "string"})
    {'anyOf': [{'type': 'string'}, {'type': 'null'}]}
    """
    return {"anyOf": [schema, {"type": "null"}]}


def shortened(part: Schema) -> Schema:
    """Return a plain schema for arrays that may have lost any elements; see `at`."""
    return lacking(reordered(part), {"minItems"})


def reordered(part: Schema) -> Schema:
    """Return a plain schema for arrays with their elements in another order; see `at`."""
    return lacking(loosened(part), OF_PLACES if positional(part) else set())


def advertised(own: Schema | None, derived: list[Schema | None]) -> Schema | None:
    """Return the `outputSchema` to advertise for a tool with rules: any derived one, or its own.

    Clients up to revision 2025-11-25 accept only `type: object` at the root, which the schema of a
    contract has. None if a derived schema is None, or its references cannot be kept.

    >>> advertised({"type": "object", "required": ["a"]}, [{"type": "object"}])
    {'type': 'object', 'anyOf': [{'type': 'object'}, {'type': 'object', 'required': ['a']}]}
    """
    try:
        # The server's schema comes first, so that its definitions keep their names.
        roots = [] if own is None else [settled(own)]
        for schema in derived:
            if schema is None:
                return None
            ours = settled(schema)
            if ours not in roots and (ours := pruned(ours)) not in roots:
                roots.append(ours)
        if len(roots) == 1:
            return derived[0] if own is None else own
        head = {"type": "object"} if own is None or own.get("type") == "object" else {}
        first = 0 if own is None else 1
        return joined(roots, lambda parts: {**head, "anyOf": [*parts[first:], *parts[:first]]})
    except (Unclear, RecursionError):
        return None


def _keeping(root: Schema, paths: Paths) -> Change:
    """Return the change that keeps in a plain schema only the parts that `paths` name."""

    def only(inner: Subschema, after: Paths) -> Subschema:
        return inner if after.ends else edit(inner, Walk(root, _keeping(root, after)), ())

    def members(part: Schema) -> Schema:
        changed = dict(part)
        declared = part.get("properties", {})
        rest = part.get("additionalProperties", True)
        kept = {name: after for name in declared if (after := paths.member(name)) is not None}
        for name, after in paths.names.items():
            if name not in declared and isinstance(rest, dict) and not after.ends:
                declared, kept = {**declared, name: rest}, {**kept, name: after}
        if kept or "properties" in part:
            changed["properties"] = {
                name: only(declared[name], after) for name, after in kept.items()
            }
        if "required" in part:
            changed["required"] = [
                name
                for name in part["required"]
                if name in paths.spelled or ((after := paths.member(name)) and after.ends)
            ]
        if not paths.plain and isinstance(rest, dict):
            changed["additionalProperties"] = True
        return unpatterned(changed)

    def keep(part: Schema) -> Schema:
        if paths.ends:
            return part
        changed = members(lacking(loosened(part), OF_NAMES))
        after = paths.element(0, 1)
        if paths.indexed or after is None:
            return lacking(changed, OF_PLACES | {"minItems"})
        return elements(changed, lambda inner: only(inner, after))

    return keep


def _everywhere(schema: Schema, change: Change) -> Schema | None:
    """Return `schema` with `change` applied to every schema in it, the inner ones first."""

    def edit(node: Subschema) -> Subschema:
        if isinstance(node, bool):
            return node
        changed = change(within(loosened(node), edit))
        if "oneOf" in changed:
            branches = changed.pop("oneOf")
            add_group(changed, "anyOf", branches)
        return changed

    try:
        edited = edit(settled(schema))
    except (Unclear, RecursionError):
        return None
    assert isinstance(edited, dict)
    return edited


def _said(schema: Schema, edit: Callable[[Schema, Schema], Subschema]) -> Schema | None:
    """Run `edit` over the root and its body; definitions and dialect stay unchanged."""
    try:
        root = settled(schema)
        head, body = parted(root)
        edited = edit(root, body)
    except (Unclear, RecursionError):
        return None
    if isinstance(edited, bool):
        edited = {} if edited else {"not": {}}
    return whole(head, edited)
