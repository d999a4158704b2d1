"""Compiles JSON Schemas for the validator (jsonschema-rs), which is loaded only if one is checked.

No reference is ever fetched, and patterns run on an engine of linear time.
"""

from functools import lru_cache
from typing import Any

from mcp_abridge.schema.references import Schema, within

DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
}
"""The supported dialects, without the empty fragment that some schemas append."""

DIALECT = next(iter(DIALECTS))

FORMATS = ("date", "date-time", "ipv4", "ipv6", "time", "uuid")
"""The formats that are checked; any other is a note to the reader."""


MASK = "\0"
"""What stands for the value in the library's messages: it may be long, and any text."""


def dialect(schema: Schema) -> str:
    """Return the dialect of `schema`, which must be a supported one."""
    name: str = schema.get("$schema", DIALECT)
    return name.removesuffix("#")


def compiled(schema: Schema) -> Any:
    """Return the library's validator for `schema`. Raises ValueError if it cannot use it."""
    import jsonschema_rs

    kind = getattr(jsonschema_rs, DIALECTS[dialect(schema)])
    return kind(_without_notes(schema), mask=MASK, **_options())


def compiled_parts(schema: Schema) -> Any:
    """Return the validators for all schemas in `schema`, by the reference to each."""
    from jsonschema_rs import validator_map_for

    return validator_map_for({"$schema": DIALECT, **_without_notes(schema)}, **_options())


def _options() -> dict[str, Any]:
    from jsonschema_rs import RegexOptions

    return {"validate_formats": True, "pattern_options": RegexOptions(), "offline": True}


def _without_notes(node: Schema) -> Schema:
    checked = within(node, _without_notes)
    if checked.get("format") not in FORMATS:
        checked.pop("format", None)
    return checked


def of_schemas(dialect: str) -> Any:
    """Return the validator for the schemas of a dialect."""
    import jsonschema_rs

    return getattr(jsonschema_rs, DIALECTS[dialect])({"$ref": dialect}, mask=MASK)


@lru_cache
def words(dialect: str) -> frozenset[str]:
    """Return the keywords of a dialect."""
    from jsonschema_rs import bundle

    parts: Schema = bundle({"$schema": dialect, "$ref": dialect})
    every = (parts.get("$defs") or parts["definitions"]).values()
    return frozenset(word for part in every for word in part.get("properties", ()))
