"""Names of the members that hold notes on cut values, and the schemas of values with notes."""

from proxy.document.paths import Path
from proxy.schema.derive import each, with_property
from proxy.schema.references import Schema

DROPPED = "_dropped"  # the note on how many blocks of each type a rule dropped


def free(members: object, wanted: str) -> str:
    """Return `wanted`, with as many `_` appended as make it differ from all `members`.

    >>> free({"pagination": 1}, "pagination"), free([], "pagination")
    ('pagination_', 'pagination')
    """
    while isinstance(members, dict) and wanted in members:
        wanted += "_"
    return wanted


def admitting(schema: Schema, holder: Path, wanted: str, says: str) -> Schema | None:
    """Return `schema` with an optional note, under a free name, in the objects at `holder`.

    The content of the note is described, not prescribed: if the schema admits other members, the
    upstream may have a member of that name.
    """
    declared: set[str] = set()

    def look(part: Schema) -> Schema:
        declared.update(part.get("properties", ()))
        return part

    changed = each(schema, holder, look)
    while changed is not None:
        changed = with_property(changed, holder, wanted, {"description": says})
        if wanted not in declared:
            break
        wanted += "_"
    return changed


def or_wrapped(part: Schema, name: str, says: str) -> Schema:
    """Return a plain schema that also admits its array as `items` of an object, beside a note.

    >>> or_wrapped({"type": "array"}, "n", "")["anyOf"][1]["required"]
    ['items', 'n']
    """
    if "array" not in kinds(part):
        return part
    properties: Schema = {"items": {**part, "type": "array"}, name: {"description": says}}
    wrapped = {"type": "object", "properties": properties, "required": ["items", name]}
    return {"anyOf": [part, wrapped]}


def any_text(part: Schema) -> Schema:
    """Return a plain schema for values whose texts, or texts in an array, may be any texts.

    >>> any_text({"type": "string", "minLength": 3}), any_text({"type": "object", "required": []})
    ({'type': 'string'}, {'type': 'object', 'required': []})
    """
    if not {"string", "array"} & kinds(part):
        return part
    return {word: part[word] for word in ("type", "title", "description") if word in part}


def kinds(part: Schema) -> set[str]:
    """Return the JSON types that a plain schema admits.

    >>> sorted(kinds({"type": ["string", "null"]})), len(kinds({}))
    (['null', 'string'], 7)
    """
    said = part.get("type")
    if isinstance(said, str):
        return {said}
    every = ["array", "boolean", "integer", "null", "number", "object", "string"]
    return set(said if isinstance(said, list) else every)
