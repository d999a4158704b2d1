"""The ends of expressions: without them, a view cannot say what its values are of.

The last member, slice or count of a view is found in the expression, before it is evaluated.
"""

from typing import Any

from mcp_abridge.query.notation import Node, ends_in

PROJECTIONS = ("filter_projection", "projection", "value_projection")
"""Kinds of nodes whose second child is evaluated over each element of the first one."""

_OF_EACH = ("identity", "multi_select_dict", "multi_select_list")  # what a slice may end with


def _is_length(node: Node) -> bool:
    return bool(node["type"] == "function_expression" and node["value"] == "length")


def counted(length: Node) -> Any:
    """Return the expression that a call of length() counts, which may stand before it."""
    return length.get("after", length["children"][0])


def inside_of_each(node: Node) -> bool:
    """Return True if an expression gives a member of each element, or what is inside of it.

    The elements themselves may be arrays, as the rows of a sheet are.
    """
    if node["type"] == "pipe":
        return inside_of_each(node["children"][-1])
    if node["type"] == "subexpression":  # as in `a.*.b.c`
        return node["children"][0]["type"] in PROJECTIONS and _is_inside(node)
    if node["type"] not in PROJECTIONS:
        return False
    base, each = node["children"][:2]
    return inside_of_each(base) if each["type"] == "identity" else _is_inside(each)


def _is_inside(each: Node) -> bool:
    """Return True of a member or a projection, which an element has, and no row made of it."""
    while each["type"] == "subexpression":
        each = each["children"][-1]
    return each["type"] == "field" or each["type"] in PROJECTIONS


def last_member(node: Node) -> Any:
    """Return the member of each element that a view ends with, or counts; None if it is none.

    The elements themselves count as one.
    """
    while node["type"] == "pipe" or _is_length(node):
        node = node["children"][-1] if node["type"] == "pipe" else counted(node)
    each = node["children"][1] if node["type"] in PROJECTIONS else node
    names = each["children"] if each["type"] == "subexpression" else [each]
    of_each = each is not node and all(name["type"] in ("field", "identity") for name in names)
    return each if of_each else None


def last_slice(node: Node) -> Any:
    """Return the node of the slice of one value at the end of a view, None if it has none."""
    while node["type"] in ("pipe", "subexpression"):
        node = node["children"][-1]
    if node["type"] != "projection" or node["children"][1]["type"] not in _OF_EACH:
        return None
    array = node["children"][0]
    return array["children"][-1] if ends_in(array, "slice") else None


def last_part(node: Node) -> Any:
    """Return the node of the slice of each element's member at the end of a view, None without."""
    node = node["children"][-1] if node["type"] == "pipe" else node
    each = node["children"][1] if node["type"] in PROJECTIONS else node
    inner = each["children"][-1] if each["type"] == "subexpression" else each
    of_each = each is not node and inner["type"] == "projection"
    array = inner["children"][0] if of_each and inner["children"][1]["type"] == "identity" else node
    return each if ends_in(array, "slice") else None


def slice_of(part: Node) -> list[int | None]:
    """Return the start, the stop and the step of a slice of each element's member."""
    while part["type"] != "slice":
        part = part["children"][0 if part["type"] == "projection" else -1]
    return [*part["children"]]
