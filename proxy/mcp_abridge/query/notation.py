"""Parts of an expression as JMESPath writes them, for the sentences that speak of them.

Without it, a remark names a condition by `…`, and what it advises cannot be written.
"""

from typing import Any

from mcp_abridge.document.names import label
from mcp_abridge.document.tree import encode

Node = dict[str, Any]

_SHOWN = 60  # characters of a text that a message repeats
_SIGNS = {"filter_projection": "[?…]", "projection": "[*]", "flatten": "[]"}
_SIGNS["value_projection"] = ".*"


def notation(node: Node) -> str:
    """Return a short expression as JMESPath writes it; `…` for what is long.

    >>> from mcp_abridge.query.patterns import Expression
    >>> texts = ("a.b[0].c", "length(@)", "'it'", "a[].b", "a[1:][?b].c", "[]", "a && b")
    >>> [notation(Expression(text).tree) for text in texts]
    ['a.b[0].c', 'length(@)', "'it'", 'a[].b', 'a[1:][?…].c', '[]', '…']
    """
    type_, children = node["type"], node.get("children", [])
    if type_ == "field":
        return label(node["value"])
    if type_ in ("current", "identity"):
        return "@"
    if type_ == "subexpression":
        return ".".join(map(notation, children))
    if type_ in _SIGNS:
        base, *then = map(notation, children[:2])
        sliced = ends_in(children[0], "slice") or children[0]["type"] == "flatten"
        sign = "" if type_ == "projection" and sliced else _SIGNS[type_]
        ends = (each if each[0] == "[" else f".{each}" for each in then if each != "@")
        return "".join([base.removeprefix("@") + sign, *ends])
    if type_ == "index_expression":
        signs = "".join(map(_index, children[1:]))
        return (notation(children[0]).removeprefix("@") + signs) or "@"
    if type_ == "function_expression":
        call = f"{node['value']}({', '.join(map(notation, children))})"
        return "$" if call == "root()" else call
    if type_ == "expref":
        return f"&{notation(children[0])}"
    return constant(node["value"]) if type_ == "literal" else "…"


def _index(node: Node) -> str:
    """Return an index, or a slice, in its brackets."""
    if node["type"] == "index":
        return f"[{node['value']}]"
    start, stop, step = ("" if each is None else str(each) for each in node["children"])
    return f"[{start}:{stop}{step and f':{step}'}]"


def ends_in(node: Node, kind: str) -> bool:
    """Return True for an expression in brackets whose last ones hold an index, or a slice."""
    return bool(node["type"] == "index_expression" and node["children"][-1]["type"] == kind)


def share(count: int, total: int) -> str:
    """Return in how many of how many elements something is so."""
    if total == 1:
        return ""
    return f" in all {total} elements" if count == total else f" in {count} of {total} elements"


def constant(value: Any) -> str:
    """Return a value as JMESPath writes it; `…` for a long one."""
    text = value if isinstance(value, str) else encode(value).decode()
    text = text if len(text) <= _SHOWN and text.isprintable() else "…"
    return f"'{text}'" if isinstance(value, str) else f"`{text}`"


def brackets(node: Node) -> tuple[str, str]:
    """Return the text before the brackets of a node, and the brackets."""
    *before, last = node["children"]
    indexes = node["type"] == "index_expression"
    sign = _index(last) if indexes else _SIGNS[node["type"]]
    first = {**node, "children": before} if indexes else node["children"][0]
    outer = f"{notation(node['within'])}." if "within" in node else ""
    return outer + notation(first), sign
