"""Rows made of what has another shape: a tree, or arrays side by side.

Without it, a tree is cut to its first branch, and a forecast to some of its temperatures and none
of their times. The view that makes the same rows is their place.
"""

from typing import Any

from msgspec import Raw

from mcp_abridge.document.names import spelled
from mcp_abridge.document.tree import encode
from mcp_abridge.query.shapes import nodes, rows_of, side_by_side, tree_member
from mcp_abridge.summary.place import Place


def in_rows(value: Any, at: Place) -> tuple[list[Raw], Place]:
    """Return the rows of an opened array or object, and their place; none of any other shape."""
    path, place = at
    if isinstance(value, list):
        name = tree_member(value)
        if name is not None:
            of = f"&{spelled(name)}"
            at = f"nodes({path or '@'}, {of})", f"nodes({place or '@'}, {of})"
            return [Raw(encode(node)) for node in nodes(value, name)], at
    elif (arrays := side_by_side(value)) is not None:
        at = f"{path}.rows".lstrip("."), f"{place}.rows".lstrip(".")
        return [Raw(encode(row)) for row in rows_of(arrays)], at
    return [], at
