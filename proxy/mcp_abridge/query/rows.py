"""Many rows at once: decoded in batches, by the members that an expression reads.

Without it, a condition on 16 MB of rows decodes each of them by itself, with all its members, and
walks through the expression for each: seconds of a processor, and a gigabyte.
"""

import operator
from collections.abc import Callable, Collection, Iterator
from operator import attrgetter
from typing import Any, Protocol

from msgspec import UNSET, Raw

from mcp_abridge.document import tree
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.rows import decoder_of, row_type
from mcp_abridge.document.tree import Number, Value, encode
from mcp_abridge.query.kind_words import TESTS
from mcp_abridge.query.kinds import Kinds
from mcp_abridge.query.notation import Node
from mcp_abridge.query.numerals import is_missing
from mcp_abridge.query.patterns import names_read, nodes, truthy
from mcp_abridge.query.search import with_match

_MANY = 64  # rows from which they are taken together
_BATCH = 1024  # rows that are decoded at a time
_FEW = 1000  # texts of a column of states, names of groups
NULL = Raw(b"null")
_NUMBERS = {int, float, Number}
_NOTHING = type(None)


def many(base: Any) -> bool:
    """Return True for an array of so many rows that they are taken together."""
    return isinstance(base, list) and len(base) >= _MANY


def batches(
    base: list[Value], expressions: Collection[Node], fuel: Fuel, *, spelled: bool
) -> Iterator[list[Any]]:
    """Yield rows as plain values, objects with just the members that expressions over them read.

    `spelled`: the numbers that an expression gives must keep their spelling.
    """
    parts = [names_read(expression) for expression in expressions]
    names = {name for part in parts for name in part or ()}
    inside = [node for expression in expressions for node in nodes(expression)]
    spelled |= any(node["type"] == "function_expression" for node in inside)
    decode = tree.loads if None in parts else decoder_of(names, spelled=spelled)
    for batch in _batches(base):
        fuel.burn(len(batch) >> (6 if None in parts else 9))
        yield decode(batch)


def columns(base: list[Value], node: Node, fuel: Fuel) -> list[Value] | None:
    """Return the values of an expression over rows if it is a member, or some members.

    None for any other expression, and for rows that are not objects or null.
    """
    selects = node["type"] in ("field", "multi_select_dict", "multi_select_list")
    if not selects or not many(base):
        return None
    form, fields = _form(node)
    names = [*dict.fromkeys(field["value"] for field in fields if field["type"] == "field")]
    kind = row_type(names)
    if kind is None or any(field["type"] != "field" for field in fields):
        return None
    places = [attrgetter(f"f{names.index(field['value'])}") for field in fields]
    values: list[Value] = []
    for batch in _batches(base):
        rows = tree.rows(Raw(batch), kind)
        if rows is None:
            return None
        fuel.burn((len(batch) >> 9) + len(rows) * (2 + 4 * len(fields)))  # some 64 bytes a value
        rows = [row for row in rows if row is not None]
        lists = [[*map(place, rows)] for place in places]
        lists = [[NULL if each is UNSET else each for each in some] for some in lists]
        if node["type"] == "field":
            values += [value for value in lists[0] if value != NULL]
        else:
            values += map(Raw, map(form.__mod__, zip(*lists, strict=True)))
    return values


def _form(node: Node) -> tuple[bytes, list[Node]]:
    """Return the JSON of what an expression selects, with a place for each value, and its parts."""
    children = node.get("children", ())
    if node["type"] != "multi_select_dict":
        return b"[%b]" % b",".join([b"%b"] * len(children)), [*children] or [node]
    fields = {each["value"]: each["children"][0] for each in children}
    keys = [encode(name).replace(b"%", b"%%") for name in fields]
    return b"{%b}" % b",".join(key + b":%b" for key in keys), [*fields.values()]


def _batches(base: list[Value]) -> Iterator[bytes]:
    for first in range(0, len(base), _BATCH):
        yield encode(base[first : first + _BATCH])


class Evaluation(Protocol):
    """The evaluation of a view over one value: `kinds` notes the kinds that it meets."""

    fuel: Fuel
    kinds: Kinds

    @property
    def functions(self) -> Any: ...
    def visit(self, node: Any, value: Any) -> Any: ...
    def compared(self, node: Any, one: Any, other: Any) -> Any: ...
    def result_of(self, node: Any, arguments: list[Any], value: Any) -> Any: ...


def over(evaluation: Evaluation, node: Node, rows: list[Any]) -> list[Any]:
    """Return the values of an expression over plain rows: each part of it over all of them.

    Parts that have no way of their own here are evaluated row by row.
    """
    way = _WAYS.get(node["type"])
    values = None if way is None else way(evaluation, node, rows)
    if values is None:
        visit = evaluation.visit
        return [visit(node, row) for row in rows]
    evaluation.fuel.burn(len(rows))
    return values


def shared(values: list[Any], texts: dict[str, str]) -> list[Any]:
    """Return texts that are equal as one object if few differ: else they take half a document."""
    if len(texts) > _FEW or {*map(type, values)} != {str}:
        return values
    return [*map(texts.setdefault, values, values)]


def _field(_: Evaluation, node: Node, rows: list[Any]) -> list[Any] | None:
    name = node["value"]
    if not {dict, _NOTHING}.issuperset(map(type, rows)):
        return None
    return [None if row is None else row.get(name) for row in rows]


def _literal(_: Evaluation, node: Node, rows: list[Any]) -> list[Any]:
    return [node["value"]] * len(rows)


def _path(evaluation: Evaluation, node: Node, rows: list[Any]) -> list[Any] | None:
    if any(child["type"] != "field" for child in node["children"]):
        return None
    for child in node["children"]:
        rows = over(evaluation, child, rows)
    return rows


def _comparator(evaluation: Evaluation, node: Node, rows: list[Any]) -> list[Any]:
    ones, others = (over(evaluation, child, rows) for child in node["children"])
    sign, types = node["value"], {*map(type, ones), *map(type, others)} - {_NOTHING}
    equality = sign in ("eq", "ne")
    if equality:
        alike = types <= {str, *_NUMBERS} or types <= {str, bool}  # in Python, 1 equals True
    else:
        as_texts = types <= {str} and evaluation.kinds.compares_texts(node)
        alike = types <= _NUMBERS or (as_texts and not any(map(is_missing, {*ones, *others})))
    if not alike:
        return [evaluation.compared(node, *pair) for pair in zip(ones, others, strict=True)]
    evaluation.kinds.pairs(node, ones, others)
    compare = _SIGNS[sign]
    if equality:
        return [*map(compare, ones, others)]
    pairs = zip(ones, others, strict=True)
    return [None if None in pair else compare(*pair) for pair in pairs]


def _either(evaluation: Evaluation, node: Node, rows: list[Any]) -> list[Any]:
    first, second = node["children"]
    values, either = over(evaluation, first, rows), node["type"] == "or_expression"
    undecided = [place for place, value in enumerate(values) if truthy(value) is not either]
    others = over(evaluation, second, [rows[place] for place in undecided])
    for place, value in zip(undecided, others, strict=True):
        values[place] = value
    return values


def _not(evaluation: Evaluation, node: Node, rows: list[Any]) -> list[Any]:
    # In JMESPath, 0 is true.
    values = over(evaluation, node["children"][0], rows)
    return [not value and type(value) not in _NUMBERS for value in values]


def _test(evaluation: Evaluation, node: Node, rows: list[Any]) -> list[Any] | None:
    """Evaluate a test of texts for a part that is the same for all."""
    subject, *parts = node["children"]
    if node["value"] not in TESTS or len(parts) != 1 or not isinstance(parts[0].get("value"), str):
        return None
    if parts[0]["type"] != "literal":
        return None
    texts, part = over(evaluation, subject, rows), parts[0]["value"]
    if not {str, _NOTHING}.issuperset(map(type, texts)):
        call = evaluation.result_of
        return [call(node, [text, part], row) for text, row in zip(texts, rows, strict=True)]
    evaluation.kinds.pairs(node, texts, [part] * len(texts))
    if node["value"] == "matches" and any(text is not None for text in texts):
        return _matches(evaluation, texts, part)
    test = getattr(evaluation.functions, f"_func_{node['value']}")
    return [test(text, part) for text in texts]


def _matches(evaluation: Evaluation, texts: list[Any], pattern: str) -> list[bool]:
    """Search many texts together; if one has several lines, an anchor tells them from a text."""
    compiled, fuel = evaluation.functions.pattern(pattern), evaluation.fuel
    if any("\n" in text for text in texts if text is not None):
        return [text is not None and compiled.search(text, fuel) is not None for text in texts]
    matches = [False] * len(texts)
    places = [place for place, text in enumerate(texts) if text is not None]
    of_lines = evaluation.functions.pattern(f"(?m){pattern}")
    for index in with_match([texts[place] for place in places], of_lines, fuel):
        matches[places[index]] = True
    return matches


_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}
_WAYS: dict[str, Callable[[Evaluation, Node, list[Any]], list[Any] | None]] = {
    "field": _field,
    "literal": _literal,
    "subexpression": _path,
    "comparator": _comparator,
    "and_expression": _either,
    "or_expression": _either,
    "not_expression": _not,
    "function_expression": _test,
}
