"""Names in single quotes: without it, a view orders and counts rows by a text that all have alike.

`sort_by(rows, &'%CPU')` and `[?'state'=='open']` read nothing of a row, which is never meant. Nor
is a text that is a condition by itself, as in `[?state=='open' || 'new']`.
"""

import re
from collections.abc import Callable, Iterator

from mcp_abridge.errors import Refusal
from mcp_abridge.query.ends import PROJECTIONS
from mcp_abridge.query.kind_words import TESTS, subject_of
from mcp_abridge.query.notation import Node, constant, notation
from mcp_abridge.query.patterns import nodes

# What a text is part of: a key, a comparison, or nothing but `and`, `or` and `not`.
_KEY, _OPERAND, _ALONE = "key", "operand", "alone"
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def with_names(tree: Node, exists: Callable[[str], bool]) -> list[str]:
    """Put names in place of the texts in keys and conditions that are alike for all rows.

    Return a remark for each. `exists` tells if a member of a name is anywhere in the document.
    Raises Refusal if a text alone decides a condition, and is no name.

    >>> from mcp_abridge.query.patterns import Expression
    >>> tree = Expression("max_by(@, &'%CPU')").tree
    >>> with_names(tree, {"%CPU"}.__contains__), notation(tree)
    (['\\'%CPU\\' is a text; it is read as the name "%CPU"'], 'max_by(@, &"%CPU")')
    """
    remarks = []
    for text, place in [*_constants(tree, exists)]:
        quoted, names = constant(text["value"]), _names(text["value"], exists)
        if place == _KEY and not all(map(exists, names)):  # as in sum_by(rows, &'all', &size)
            remarks.append(f"{quoted} is a text, and the same for all elements")
            continue
        if place == _ALONE and not all(map(exists, names)):
            way = f"compare it, as in {_compared(text, tree)}"
            raise Refusal(f"view: {quoted} alone is true of all elements: {way}")
        fields = [{"type": "field", "value": name, "children": []} for name in names]
        path = {"type": "subexpression", "children": fields}
        text.update(fields[0] if len(fields) == 1 else path)
        remarks.append(f"{quoted} is a text; it is read as the name {notation(text)}")
    return [*dict.fromkeys(remarks)]


def _constants(tree: Node, exists: Callable[[str], bool]) -> Iterator[tuple[Node, str]]:
    """Yield the texts in place of names, and the part that each of them is of."""
    for node in nodes(tree):
        kind, children = node["type"], node["children"]
        if kind == "expref":
            tests = _tests(children[0], exists)
            if children[0]["type"] == "literal":
                yield from ((text, _KEY) for text, _ in tests)
            else:  # a text alone is what the key is, as in &(done && 'yes' || 'no')
                yield from (pair for pair in tests if pair[1] == _OPERAND)
        elif kind == "filter_projection":
            yield from _tests(children[2], exists)
        if kind in PROJECTIONS and children[1]["type"] == "multi_select_list":
            cells = children[1]["children"]
            if all(each["type"] == "literal" and isinstance(each["value"], str) for each in cells):
                yield from ((text, _KEY) for text in cells)
        elif kind == "or_expression" and children[0]["type"] == "literal":
            yield from _tests(children[0], exists)


def _tests(node: Node, exists: Callable[[str], bool]) -> Iterator[tuple[Node, str]]:
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
        first = (*(each for each in texts if exists(each["value"])), *texts)[:1]
        yield from ((text, _ALONE if kind == "literal" else _OPERAND) for text in first)


def _compared(text: Node, tree: Node) -> str:
    """Return a test with a text, on what the expression tests first."""
    for node in nodes(tree):
        if node["type"] == "function_expression" and node["value"] in TESTS:
            return notation({**node, "children": [node["children"][0], text]})
        if node["type"] == "comparator":
            return f"{subject_of(node)}=={constant(text['value'])}"
    return f"name=={constant(text['value'])}"


def _names(name: str, exists: Callable[[str], bool]) -> list[str]:
    """Return a name, or those of a path if there is no such name."""
    return name.split(".") if _PATH.fullmatch(name) and not exists(name) else [name]
