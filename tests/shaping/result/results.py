"""Results that are read in few words."""

from typing import Any

from mcp_abridge.document.tree import encode
from mcp_abridge.shaping.result.read import Kind, LocatedDocument, locate
from msgspec import Raw


def members(value: dict[str, Any]) -> dict[str, Raw]:
    return {name: Raw(encode(member)) for name, member in value.items()}


def reading(value: dict[str, Any], kind: Kind = "auto") -> LocatedDocument:
    located = locate(members(value), kind)
    assert located is not None
    return located
