"""Names in single quotes: without it, a view orders and counts rows by a text that all have alike.

`sort_by(rows, &'%CPU')` and `[?'state'=='open']` read nothing of a row, which is never meant.
"""

import re
from collections.abc import Callable, Iterator

from mcp_abridge.query.kind_words import TESTS
from mcp_abridge.query.notation import Node, constant, notation
from mcp_abridge.query.patterns import nodes

_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def with_names(tree: Node, exists: Callable[[str], bool]) -> list[str]:
    """Put names in place of the texts in keys and conditions that are alike for all rows.

    Return a remark for each. `exists` tells if a member of a name is anywhere in the document.

    >>> from mcp_abridge.query.patterns import Expression
    >>> tree = Expression("max_by(@, &'%CPU')").tree
    >>> with_names(tree, {"%CPU"}.__contains__), notation(tree)
    (['\\'%CPU\\' is a text; it is read as the name "%CPU"'], 'max_by(@, &"%CPU")')
    """
    remarks = []
    for text, is_key in [*_constants(tree, exists)]:
        quoted, names = constant(text["value"]), _names(text["value"], exists)
        if is_key and not all(map(exists, names)):  # as in sum_by(rows, &'all', &size)
            remarks.append(f"{quoted} is a text, and the same for all elements")
            continue
        fields = [{"type": "field", "value": name, "children": []} for name in names]
        path = {"type": "subexpression", "children": fields}
        text.update(fields[0] if len(fields) == 1 else path)
        remarks.append(f"{quoted} is a text; it is read as the name {notation(text)}")
    return [*dict.fromkeys(remarks)]


def _constants(tree: Node, exists: Callable[[str], bool]) -> Iterator[tuple[Node, bool]]:
    """Yield the texts in place of names, and whether they are all of a key."""
    for node in nodes(tree):
        if node["type"] == "expref":
            key = node["children"][0]
            yield from ((text, text is key) for text in _tests(key, exists))
        elif node["type"] == "filter_projection":
            yield from ((text, False) for text in _tests(node["children"][2], exists))


def _tests(node: Node, exists: Callable[[str], bool]) -> Iterator[Node]:
    """Yield the texts in a key or a condition that make it alike for all elements."""
    kind, children = node["type"], node["children"]
    if kind in ("and_expression", "or_expression", "not_expression"):
        for child in children:
            yield from _tests(child, exists)
    elif kind == "literal":
        children = [node]
    elif kind != "comparator" and not (kind == "function_expression" and node["value"] in TESTS):
        return
    if all(each["type"] == "literal" for each in children):
        texts = [each for each in children if isinstance(each["value"], str) and each["value"]]
        yield from (*(each for each in texts if exists(each["value"])), *texts)[:1]


def _names(name: str, exists: Callable[[str], bool]) -> list[str]:
    """Return a name, or those of a path if there is no such name."""
    return name.split(".") if _PATH.fullmatch(name) and not exists(name) else [name]
