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
    located = locate(members(value), kind)
    assert located is not None
    return located


def places(value: dict[str, Any], kind: Kind = "auto") -> tuple[Any, tuple[Copy, ...]]:
    located = reading(value, kind)
    return plain(located.document.cell[0]), located.frame.copies


def rewritten(
    value: dict[str, Any], new: Any, notices: list[Notice] | None = None, **options: Any
) -> dict[str, Any]:
    """Read a result, put `new` in place of its document and write it."""
    located = reading(value)
    located.document.root.set(new)
    raw, _ = write(located.frame, located.document, notices or [], **options)
    decoded: dict[str, Any] = json.loads(encode(raw))
    return decoded
