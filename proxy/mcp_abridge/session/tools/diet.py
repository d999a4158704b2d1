"""The prose of a tool's definition, shortened to a number of bytes (`definition.max_bytes`).

Prose are the description of the tool, and `description`, `title` and `examples` in its schemas.
Names, types, enums and what is required never change: a call that was right stays right.
"""

import re
from collections.abc import Callable
from typing import Any

from mcp_abridge.document.tree import encode
from mcp_abridge.transforms.base import Schema

NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose members are schemas by name."""
VALUES = ("const", "enum", "default", "examples")
"""Keywords whose values are no schemas."""

_PROSE = ("description", "title", "examples")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(*-])|\n\n")

SchemaEdit = Callable[[Schema, int], Schema]


def fitted(
    description: str, schemas: dict[str, Schema], limit: int
) -> tuple[str, dict[str, Schema]]:
    """Return the description and the schemas of a tool with at most `limit` bytes of prose.

    First titles and examples go, then all but the first sentence of each property, then the
    descriptions of properties, the deepest first.
    """
    if _size(description) + _prose(schemas) <= limit:
        return description, schemas
    first = _size(shortened(description, 0))
    deepest = max((depth for _, depth in _nodes(schemas)), default=0)
    for edit in (_without_titles, _with_first_sentence, *map(_undescribed, range(deepest, -1, -1))):
        schemas = {key: edited(schema, edit) for key, schema in schemas.items()}
        if first + _prose(schemas) <= limit:
            break
    return shortened(description, limit - _prose(schemas), limit), schemas


def shortened(text: str, room: int, most: int | None = None) -> str:
    """Return the sentences of `text` that fit `room` bytes; the first in any case, up to `most`.

    >>> shortened("One. Two, e.g. three. Four.", 21), shortened("One. Two.", 0)
    ('One. Two, e.g. three.', 'One.')
    """
    if _size(text) <= room:
        return text
    ends = [match.start() for match in _END.finditer(text)]
    fitting = [end for end in ends if _size(text[:end]) <= room]
    text = text[: (fitting or [*ends[:1], len(text)][:1])[-1]]
    if most is None or _size(text) <= most:
        return text
    part = text.encode()[: max(most - 3, 0)].decode(errors="ignore")
    return f"{part.rpartition(' ')[0] or part}…"


def edited(schema: Any, edit: SchemaEdit, depth: int = 0) -> Any:
    """Return a schema with `edit` applied to each of its schemas, with its depth in properties."""
    if isinstance(schema, list):
        return [edited(item, edit, depth) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rest: Schema = {}
    for keyword, value in edit(schema, depth).items():
        if keyword in NAMED and isinstance(value, dict):
            value = {name: edited(inner, edit, depth + 1) for name, inner in value.items()}
        elif keyword not in NAMED + VALUES:
            value = edited(value, edit, depth)
        rest[keyword] = value
    return rest


def _without_titles(node: Schema, _: int) -> Schema:
    return {key: value for key, value in node.items() if key not in ("title", "examples")}


def _with_first_sentence(node: Schema, _: int) -> Schema:
    text = node.get("description")
    return {**node, "description": shortened(text, 0)} if isinstance(text, str) else node


def _undescribed(level: int) -> SchemaEdit:
    def edit(node: Schema, depth: int) -> Schema:
        omits = depth == level
        return {key: each for key, each in node.items() if not (omits and key == "description")}

    return edit


def _nodes(schemas: dict[str, Schema]) -> list[tuple[Schema, int]]:
    nodes: list[tuple[Schema, int]] = []

    def note(node: Schema, depth: int) -> Schema:
        nodes.append((node, depth))
        return node

    for schema in schemas.values():
        edited(schema, note)
    return nodes


def _prose(schemas: dict[str, Schema]) -> int:
    texts = (node[word] for node, _ in _nodes(schemas) for word in _PROSE if word in node)
    return sum(_size(text) if isinstance(text, str) else len(encode(text)) for text in texts)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
