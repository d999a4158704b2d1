"""Parsed expressions: what a part of one is evaluated over, which names it reads, what it compares.

Without it, a name inside of a condition would be looked for among the members of the whole.
"""

from collections.abc import Collection, Iterator
from itertools import takewhile

from mcp_abridge.query.notation import Node
from mcp_abridge.query.patterns import FIRST_ALONE, Expression

Names = tuple[str, ...]
"""Names of members, each inside the previous one."""

Need = bool | None
"""True for a required member, None for one whose absence makes a condition true."""

ORDERS = frozenset(("gt", "gte", "lt", "lte"))
"""The signs of comparisons that are no tests for equality, which suit no bare word."""

_REFERENCES = ("field", "subexpression", "index_expression")
_COMPARING = {"contains", "starts_with", "ends_with"}


def renamed(tree: Node, names: Collection[str]) -> Node:
    """Return an expression with each of these member names of its value replaced by `@`."""
    current = {"type": "current", "children": []}
    inside = (node for node, at, _ in alongside(tree, required=False) if not at)
    fields = (node for node in inside if node["type"] == "field")
    return with_replacements(
        tree, {id(node): current for node in fields if node.get("value") in names}
    )


def as_meant(tree: Node) -> Node:
    """Return an expression in which `!` is for all of a path or comparison, not for its first name.

    JMESPath takes `!user.admin` for the member of a boolean, which is always null, and
    `!state=='open'` for a boolean that is compared with a text.
    """
    children = [as_meant(each) if isinstance(each, dict) else each for each in tree["children"]]
    same = all(one is other for one, other in zip(children, tree["children"], strict=True))
    node = tree if same else {**tree, "children": children}
    compares = node["type"] == "comparator" and children[0]["type"] == "not_expression"
    if not (compares or of_negation(node)):
        return node
    negation = children[0]
    inside = {**node, "children": [*negation["children"], *children[1:]]}
    return {**negation, "children": [as_meant(inside)]}


def of_negation(node: Node) -> bool:
    """Return True if a node takes a member or an element of a negation."""
    steps = node["type"] == "subexpression" or node["type"] in FIRST_ALONE - {"pipe"}
    return steps and node["children"][0]["type"] == "not_expression"


def members_named(tree: Node) -> set[str]:
    """Return the names of the members of its value that an expression reads."""
    inside = (node for node, at, _ in alongside(tree, required=False) if not at)
    return {node["value"] for node in inside if node["type"] == "field"}


def bare_names(expression: Expression) -> list[Node]:
    """Return the names without quotes on the right of `==` and `!=` that may be meant as texts."""
    names, waiting, quoted = list[Node](), [expression.tree], None
    while waiting:
        node = waiting.pop()
        waiting += (each for each in node.get("children", ()) if isinstance(each, dict))
        if node["type"] != "comparator" or node["value"] in ORDERS:
            continue
        first, second = node["children"]
        if second["type"] == "field" and first["type"] in _REFERENCES and not _null(second):
            quoted = expression.quoted if quoted is None else quoted
            if quoted.isdisjoint((second["value"], str(first.get("value")))):
                names.append(second)
    return names


def path_of(node: Node) -> Names:
    """Return the path of names that an expression begins with, as far as it has no other parts."""
    while node["type"] in FIRST_ALONE:
        node = node["children"][0]
    parts = node["children"] if node["type"] == "subexpression" else [node]
    names = [each["value"] for each in takewhile(lambda each: each["type"] == "field", parts)]
    return tuple(names)


def compared(node: Node) -> list[tuple[Node, Node]]:
    """Return the names that `node` compares, each with the other operand; the right name first."""
    kind = node["type"]
    compares = kind == "function_expression" and node["value"] in _COMPARING
    if not (compares or kind == "comparator") or len(node["children"]) != 2:
        return []
    first, second = node["children"]
    return [pair for pair in ((second, first), (first, second)) if pair[0]["type"] == "field"]


def alongside(node: Node, required: Need, at: Names = ()) -> Iterator[tuple[Node, Names, Need]]:
    """Yield the nodes that are evaluated over the same value as `node`, or over its members."""
    yield node, at, required
    kind, children = node["type"], node.get("children", [])
    if kind == "subexpression":
        for child in children:
            yield from alongside(child, required, at)
            if child["type"] == "field":
                at = (*at, child["value"])
            elif child["type"] != "current":
                return
    elif kind in FIRST_ALONE:
        yield from alongside(children[0], required, at)
    elif kind == "comparator":
        # A comparison with null tests if the member is present.
        alone = None if node["value"] == "eq" else False
        for child, other in (children, children[::-1]):
            yield from alongside(child, alone if _null(other) else True, at)
    elif kind != "expref":
        if kind == "function_expression":
            required = node["value"] not in ("not_null", "type")
        elif kind in ("and_expression", "or_expression", "not_expression"):
            required = None if kind == "not_expression" else False
        elif kind.startswith("multi_select"):
            required = True
        for child in children:
            if isinstance(child, dict):
                yield from alongside(child, required, at)


def _null(node: Node) -> bool:
    return (node["type"], node.get("value")) in (("literal", None), ("field", "null"))


def with_replacements(node: Node, by: dict[int, Node]) -> Node:
    """Return an expression with others in place of some of its nodes, by the id of each."""
    if id(node) in by:
        return by[id(node)]
    children = node.get("children", [])
    parts = [with_replacements(part, by) if isinstance(part, dict) else part for part in children]
    same = all(part is child for part, child in zip(parts, children, strict=True))
    return node if same else {**node, "children": parts}
