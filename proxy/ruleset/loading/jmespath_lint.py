"""Finds mistakes that the JMESPath grammar accepts."""

import re
from collections.abc import Iterator
from typing import Any

from proxy.document.lookups import compared
from proxy.document.patterns import Expression
from proxy.errors import did_you_mean


def mistake(expression: Expression) -> str | None:
    """Return the mistake in the calls or comparisons of an expression, or None.

    >>> mistake(Expression("lenght(items) > `2`"))
    "unknown JMESPath function 'lenght'; did you mean 'length'?"
    >>> mistake(Expression("starts_with(name)"))
    "the JMESPath function 'starts_with' takes 2 arguments, found 1"
    >>> mistake(Expression("draft == true"))
    'true is a name, and no literal; did you mean `true` in backticks?'
    """
    from jmespath.functions import Functions

    known = {name: entry["signature"] for name, entry in Functions.FUNCTION_TABLE.items()}
    known["argument"] = ({"types": ["string"]},)
    quoted = expression.quoted
    for node in _nodes(expression.tree):
        if wrong := _compared(node, quoted):
            return wrong
        if node["type"] != "function_expression":
            continue
        name, given = node["value"], len(node["children"])
        if name not in known:
            return f"unknown JMESPath function {name!r}{did_you_mean(name, known)}"
        wanted = len(known[name])
        variadic = bool(known[name]) and "variadic" in known[name][-1]
        if given < wanted or (given > wanted and not variadic):
            count = f"{wanted} argument{'s' * (wanted != 1)}{' or more' * variadic}"
            return f"the JMESPath function {name!r} takes {count}, found {given}"
    return None


def _compared(node: dict[str, Any], quoted: set[str]) -> str | None:
    """Return the mistake of a text or a literal that is written as a name, or None."""
    for field, other in compared(node):
        name = field["value"]
        if name in ("true", "false") and name not in quoted:
            return f"{name} is a name, and no literal; did you mean `{name}` in backticks?"
        # On the left side, or beside a text, a quoted name is meant as a member.
        text = field is node["children"][1] or other["type"] == "field"
        if name in quoted and text and other["type"] != "literal" and _PLAIN.fullmatch(name):
            said = f'"{name}" in double quotes is a name, as {name} is'
            return f"{said}; did you mean {name!r} in single quotes?"
    return None


def slip(condition: Expression) -> str | None:
    """Return the mistake in a rule's `when`, or None.

    >>> slip(Expression("action == status"))
    "action == status compares two arguments; did you mean 'status' in single quotes?"
    >>> slip(Expression("action == 'status'")) is None
    True
    """
    for node in _nodes(condition.tree):
        if node["type"] == "function_expression" and node["value"] == "argument":
            return "`when` sees the arguments themselves: write name, not argument('name')"
        if node["type"] != "comparator":
            continue
        left, right = node["children"]
        if left["type"] in _PLACES and right["type"] == "field":
            sign, word = _SIGNS.get(node["value"], "=="), right["value"]
            place = left["value"] if left["type"] == "field" else "..."
            meant = f"`{word}` in backticks" if word in _LITERALS else f"{word!r} in single quotes"
            return f"{place} {sign} {word} compares two arguments; did you mean {meant}?"
    return None


# Such a name needs no quotes: if it has quotes, it is probably meant as a text.
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PLACES = {"field", "subexpression", "index_expression"}
_LITERALS = {"true", "false", "null"}
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}


def _nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting.extend(child for child in node.get("children", ()) if isinstance(child, dict))
