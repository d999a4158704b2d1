"""Finds mistakes that the JMESPath grammar accepts."""

import re
from typing import Any

from mcp_abridge.errors import AbridgeError
from mcp_abridge.query.patterns import Expression, nodes
from mcp_abridge.query.trees import bare_names, compared, of_negation


def read_expression(text: str) -> Expression:
    """Read an expression. Raises AbridgeError for a mistake in its calls or comparisons, too."""
    from mcp_abridge.query.functions import function_mistake

    expression = Expression(text)
    quoted_names = expression.quoted
    reasons = (
        _NEGATION if of_negation(node) else _compared_name(node, quoted_names)
        for node in nodes(expression.tree)
    )
    if reason := next(filter(None, reasons), None) or function_mistake(expression):
        raise AbridgeError(reason)
    return expression


def _compared_name(node: dict[str, Any], quoted_names: set[str]) -> str | None:
    for field, other in compared(node):
        name = field["value"]
        if name in ("true", "false") and name not in quoted_names:
            return f"{name} is a name, and no literal; did you mean `{name}` in backticks?"
        # On the right side, or beside another name, a quoted name is meant as a text.
        text = field is node["children"][1] or other["type"] == "field"
        if name in quoted_names and text and other["type"] != "literal" and _PLAIN.fullmatch(name):
            reason = f'"{name}" in double quotes is a name, as {name} is'
            return f"{reason}; did you mean {name!r} in single quotes?"
    return None


def condition_mistake(condition: Expression) -> str | None:
    """Return the mistake in a rule's `when`, or None."""
    for node in nodes(condition.tree):
        if node["type"] == "function_expression" and node["value"] == "argument":
            return "`when` sees the arguments themselves: write name, not argument('name')"
    # Of a response, the names that exist are known when it comes; an argument may be left out.
    for node in bare_names(condition):
        name = node["value"]
        reason = f"{name} is a name, too; did you mean {name!r} in single quotes?"
        return f"{reason} As a name, write @.{name}"
    return None


_NEGATION = "`!a.b` is a member of a boolean, which is always null; did you mean `!(a.b)`?"

# Such a name needs no quotes: if it has quotes, it is probably meant as a text.
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
