"""Results, read and written again in few words."""

import json
from typing import Any

from msgspec import Raw

from proxy.document.tree import encode, plain
from proxy.shaping.result.frame import Copy
from proxy.shaping.result.read import Kind, LocatedDocument, locate
from proxy.shaping.result.write import write
from proxy.transforms.base import Notice

STRUCTURED, TEXT = Copy("structured"), Copy("text", blocks=(0,))


def members(value: dict[str, Any]) -> dict[str, Raw]:
    return {name: Raw(encode(member)) for name, member in value.items()}


def reading(value: dict[str, Any], kind: Kind = "auto") -> LocatedDocument:
    found = locate(members(value), kind)
    assert found is not None
    return found


def places(value: dict[str, Any], kind: Kind = "auto") -> tuple[Any, tuple[Copy, ...]]:
    found = reading(value, kind)
    return plain(found.document.cell[0]), found.frame.copies


def written(
    value: dict[str, Any], new: Any, notices: list[Notice] | None = None, **options: Any
) -> dict[str, Any]:
    """Read a result, put `new` in place of its document and write it."""
    found = reading(value)
    found.document.root.set(new)
    raw, _ = write(found.frame, found.document, notices or [], **options)
    decoded: dict[str, Any] = json.loads(encode(raw))
    return decoded
