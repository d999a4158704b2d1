"""Evaluation of JMESPath in views, which opens just what an expression reads.

Without it, a view of 20 MB would decode all of them. Beyond JMESPath, an array has members there.
"""

import re
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from mcp_abridge.document.fuel import Fuel, charge, cost
from mcp_abridge.document.names import label
from mcp_abridge.document.tree import (
    Document,
    Number,
    Pieces,
    Value,
    encode,
    loads,
    opened,
    plain,
)
from mcp_abridge.errors import OutOfFuel
from mcp_abridge.query.ends import counted, inside_of_each, slice_of
from mcp_abridge.query.hits import Hits
from mcp_abridge.query.jmespath import Interpreter
from mcp_abridge.query.kind_words import tests, true_anyhow
from mcp_abridge.query.lookups import Lookups
from mcp_abridge.query.notation import ends_in, notation, share
from mcp_abridge.query.patterns import FIRST_ALONE, truthy
from mcp_abridge.query.rows import NULL, batches, columns, many, over, shared
from mcp_abridge.query.shapes import OF_ANY_ARRAY, is_array, is_text, made_rows
from mcp_abridge.query.trees import members_named

_UNOPENED = 4  # units for a value that stays unopened: it takes some 64 bytes in memory
_TESTED = 100  # elements whose values as conditions are looked at
_TOGETHER = 1000  # elements between two looks at the time
_CELL = 16  # units for a cell of a row that is made of arrays
_LARGE = 1024  # bytes: to open a smaller value is included in its step

# Kinds of nodes that get plain values; all others work on values opened by one level.
_COMPUTING = {"and_expression", "comparator", "expref"}
_COMPUTING |= {"function_expression", "not_expression", "or_expression"}
_PASSING = {"current", "identity", "literal"}

# Functions of one value, and perhaps of expressions over the elements of an array.
_ORDERING = {"max_by", "min_by", "sort_by"}
_OF_ROWS = {"avg", "count_by", "group_by", "length", "max", "min", "sort", "sum", "sum_by"}
_OF_MEMBERS = {"entries", "keys", "values"}
_OF_ROWS |= {"unique", *_OF_MEMBERS, *_ORDERING}
_PLAIN = frozenset((bool, float, int, str, Number, type(None)))
_WHOLE = frozenset(("of_whole", "after"))  # marks of a function that a view begins or ends with
_SPELLINGS = re.compile(rb"\\[u/]")  # of what has another one


class _OfViews(Interpreter):
    """An interpreter in which an array has members, which JMESPath takes for null.

    A result shows arrays as tables, and other languages know the length of an array. The members of
    its elements are meant by `items.title`, as the notes write it.
    """

    def __init__(self, fuel: Fuel, lookups: Lookups) -> None:
        super().__init__(fuel, lookups=lookups)
        self.kinds = self.functions.kinds = lookups.kinds

    def _rows(self, value: Any) -> Any:
        """Return the hits of a search, or the rows of arrays side by side."""
        if isinstance(value, Hits):
            return value[value.list_name]
        rows = self._rows_by(value, "rows") if isinstance(value, dict) else None
        return value if rows is None else rows

    def _rows_by(self, value: Any, name: str) -> Any:
        rows = made_rows(value, name)
        self.fuel.burn(_CELL * sum(map(len, rows or ())))
        return rows

    def _filtered(self, node: Any, base: list[Any]) -> Any:
        # After a projection, as in `people[?name].addresses[?current]`, JMESPath asks each array.
        inside = members_named(node["children"][2]) and _of_arrays(base)
        if not inside:
            for test in tests(node["children"][2]):
                values = [self.open(self.visit(test, each)) for each in base[:_TESTED]]
                if remark := true_anyhow(test, values):
                    self.kinds.say(remark)
            return super()._filtered(node, base)
        parts = (self._filtered(node, self.open(each)) for each in base if not _null(each))
        return _if_any([part for part in parts if part is not None])

    def _projected(self, base: Any, result: Any) -> Any:
        # `[?id > 2][0]` is the first match, `[0:3]` the first ones; in JMESPath, those of each.
        if isinstance(base, list) and (kind := _first_bracket(result)):
            of_each = any(map(is_array, base)) or (kind == "slice" and any(map(is_text, base)))
            if not of_each:
                return self.visit(result, base)
        values = super()._projected(base, result)
        return _if_any(values) if values and result["type"] == "filter_projection" else values

    def visit_field(self, node: Any, value: Any) -> Any:
        name = node["value"]
        if not isinstance(value, list):
            rows = self._rows_by(value, name)
            return super().visit_field(node, value) if rows is None else rows
        first = self.open(value[0]) if value else None
        members = first if isinstance(first, dict) else {}
        if name in members or name not in OF_ANY_ARRAY:
            return self._projected(value, node) or ([] if name in members else None)
        return {"rows": value, "columns": [*members] or None, "length": len(value)}[name]

    def visit_subexpression(self, node: Any, value: Any) -> Any:
        of_one = False
        for each in node["children"]:
            if of_one:
                # The members of one value are searched here: `Lookups` sees the array alone.
                value = self.open(value)
                each = self._corrected(each, [value], single=True)
            value = self.visit(each, value)
            of_one |= ends_in(each, "index") or each["type"] == "function_expression"
        return value


class LazyInterpreter(_OfViews):
    """An interpreter over unopened values; it decodes just those that it computes with."""

    element = 2 * _UNOPENED
    whole = (str, list)

    def __init__(self, fuel: Fuel, document: Document, lookups: Lookups) -> None:
        super().__init__(fuel, lookups)
        self._computing = _OfViews(fuel, lookups)
        self._document = document
        self._room: int | None = None
        self._root: Any = None
        self.last_slice: Any = None
        self.last_member: Any = None
        self.last_part: Any = None
        self.sliced: Value = None  # what the last slice is a part of
        self._computing.functions.root = self._whole

    def close(self) -> None:
        """Let go of the document: the library's interpreters refer to themselves."""
        vars(self).clear()

    def _whole(self) -> Any:
        if self._root is None:
            self._root = plain(self._document.cell[0], None, self.fuel)
            charge(self._root, self.fuel)
        return self._root

    def visit(self, node: Any, value: Any) -> Any:
        kind = node["type"]
        if kind not in _PASSING:
            if kind in _COMPUTING:
                of_rows = kind == "function_expression" and node["value"] in _OF_ROWS
                return (self._of_rows if of_rows else self._computed)(node, value)
            value = self.open(value)
        self.fuel.burn(_UNOPENED - 1)
        result = super().visit(node, value)
        return None if _null(result) else result

    def visit_slice(self, node: Any, value: Any) -> Any:
        if node is self.last_slice:
            self.sliced = value
        return super().visit_slice(node, value)

    def search_in(self, source_text: str) -> None:
        """Have a search go through the text that the document was read from, too."""
        self._computing.functions.source_text = source_text

    def _computed(self, node: Any, value: Any) -> Any:
        if node.get("value") == "outline":
            return self._computing.visit(node, self.open(value))
        if node.get("value") == "grep" and all(_is_literal(each) for each in node["children"]):
            base = self.open(value)
            if _is_unopened(base):
                return self._computing.visit(node, base)  # which decodes the rows with a match
        return self._over_plain(value, lambda plain: self._computing.visit(node, plain))

    def _over_plain(self, value: Any, evaluate: Callable[[Any], Any]) -> Any:
        self.fuel.burn(cost(value, self.fuel.remaining))
        if many(value) and _PLAIN.issuperset(map(type, value)):
            return evaluate(value)
        output = encode(value)
        result = evaluate(loads(output))
        if isinstance(result, dict | list):
            # The result may keep all values decoded for it: free once for the whole document.
            if self._room is None:
                self._room = len(encode(self._document.cell[0]))
            self._room -= len(output)
            self.fuel.burn(max(0, min(len(output), -self._room)) >> 2)
        return result

    def _of_rows(self, node: Any, value: Any) -> Any:
        """Evaluate a function of an array, of which it decodes the members that it reads."""
        first, *others = node["children"]
        base, name = self.open(self.visit(first, value)), node["value"]
        if isinstance(base, Hits) and name == "length":
            return base.count
        if isinstance(base, list) and name == "length":
            if inside_of_each(counted(node)):
                self._note_arrays(base)
            return len(base)
        if isinstance(base, str) and name == "length" and not _WHOLE.isdisjoint(node):
            lines = base.count("\n") + (not base.endswith("\n"))
            if lines > 1:
                self.kinds.say(f"length() counts characters, of {lines} lines")
        if isinstance(base, dict) and name == "length":
            self._note_members(node, base)
        of_members = isinstance(base, dict) and name in _OF_MEMBERS
        if of_members or (name == "unique" and _is_unopened(base) and self._has_one_spelling()):
            return self._computing.result_of(node, [base], None)
        exprefs = [self._computing.visit(other, None) for other in others]
        base = self._rows(base) if exprefs else base
        if exprefs and isinstance(base, list):
            self.kinds.rows(node, base)
        if not (many(base) and exprefs):
            return self._over_plain(base, lambda plain: self._result_of(node, [plain, *exprefs]))
        arguments = [base, *exprefs]
        self._correct_exprefs(arguments)
        spelled = name not in _ORDERING
        lists = self._values([each.expression for each in exprefs], base, spelled=spelled)
        for expref, values in zip(exprefs, lists, strict=True):
            expref.values = values
        return self._computing.result_of(node, arguments, None)

    def _note_arrays(self, base: list[Any]) -> None:
        """Note that arrays are counted, if their elements may be meant."""
        sample = base[:_TESTED]
        inner = [*map(self.open, sample)] if all(map(is_array, sample)) else []
        lengths = {*map(len, inner)}
        # Numbers may be the places of points, of which each is one.
        points = len(lengths) == 1 and not any(
            isinstance(self.open(each[0]), str | dict) for each in inner if each
        )
        if len(base) == 1 and lengths and lengths != {1}:
            self.kinds.say("length() counts 1 array; write [] after it to count its elements")
        elif lengths and lengths != {1} and not points:
            reason = "write [] after them to count their elements"
            self.kinds.say(f"length() counts {len(base)} arrays; {reason}")

    def _note_members(self, node: Any, value: dict[str, Any]) -> None:
        """Note that the members of an object are counted, if the elements of one may be meant."""
        arrays = [name for name, each in value.items() if is_array(each)]
        rows, what = self._rows(value), notation(counted(node))
        if isinstance(rows, list):
            self.kinds.say(f"length() counts members; {what}.rows has {len(rows)} elements")
        elif len(arrays) == 1 and (len(value) == 1 or what in ("@", "$")):
            name, count = label(arrays[0]), len(self.open(value[arrays[0]]))
            one = "one member" if len(value) == 1 else "members"
            self.kinds.say(f"length() counts {one}; {name} has {count} elements")

    def _has_one_spelling(self) -> bool:
        """Return True if equal parts of the document are spelled alike, so that bytes tell them."""
        source = self._document.cell[0]
        unopened = self._document.compact and type(source) is Raw
        return unopened and _SPELLINGS.search(memoryview(source)) is None

    def _result_of(self, node: Any, arguments: list[Any]) -> Any:
        self._computing._correct_exprefs(arguments)
        return self._computing.result_of(node, arguments, None)

    def _values(
        self, nodes: list[Any], base: list[Any], *, spelled: bool = False
    ) -> list[list[Any]]:
        """Return the values of some expressions over all rows, which are decoded in batches."""
        values: list[list[Any]] = [[] for _ in nodes]
        texts = dict[str, str]()
        for rows in batches(base, nodes, self.fuel, spelled=spelled):
            for node, some in zip(nodes, values, strict=True):
                some += shared(over(self._computing, node, rows), texts)
        return values

    def _matching(self, condition: Any, base: list[Any]) -> list[Any]:
        if not many(base):
            return super()._matching(condition, base)
        [values] = self._values([condition], base)
        both = zip(base, values, strict=True)
        return [row for row, value in both if value is not False and truthy(value)]

    def _projected(self, base: Any, result: Any) -> Any:
        if isinstance(base, list) and result["type"] == "identity":
            self.fuel.burn(_UNOPENED * len(base))
            if _is_unopened(base) and NULL not in base:
                return base
            some = [each for each in base if not _null(each)]
            if result is self.last_member:
                self._note_nulls(result, len(base) - len(some), len(base))
            return some
        values = columns(base, result, self.fuel) if isinstance(base, list) else None
        values = super()._projected(base, result) if values is None else values
        if values is not None and result is self.last_member:
            self._note_nulls(result, len(base) - len(values), len(base))
        if values and result is self.last_part:
            self._note_parts(result, values)
        return values

    def _note_parts(self, node: Any, values: list[Any]) -> None:
        """Note that each text is cut, if so many of the elements may be meant."""
        start, stop, _ = part = slice_of(node)
        texts = all(isinstance(self.open(each), str) for each in values[:_TESTED])
        if texts and 0 < (stop or 0) - (start or 0) < len(values):
            sign = ":".join("" if each is None else str(each) for each in part).removesuffix(":")
            self.kinds.say(f"[{sign}] is a part of each text here; for elements write | [{sign}]")

    def _note_nulls(self, node: Any, count: int, total: int) -> None:
        """Note that the values of a view are fewer than the elements that they are of."""
        what = notation(node)
        if count:
            are, them = ("is", "it") if count == 1 else ("are", "them")
            way = f"; write [{what}] to keep {them}" * (what != "@")
            self.kinds.say(f"{what} is null{share(count, total)}, which {are} left out{way}")

    def _each(self, node: Any, base: list[Any]) -> list[Any]:
        """Evaluate a node over each element, unless all would take far more time than there is."""
        values, start = list[Any](), self.fuel.room
        for first in range(0, len(base), _TOGETHER):
            values += super()._each(node, base[first : first + _TOGETHER])
            used = start - self.fuel.room
            if 8 * used > start and 2 * used * len(base) > 3 * start * len(values):
                raise OutOfFuel("all rows would take too much time")
        return values

    def open(self, value: Any) -> Any:
        if type(value) is Pieces:  # which the jmespath library knows as arrays alone
            return [*value]
        length = len(memoryview(value)) if type(value) is Raw else 0
        if length < _LARGE:
            return opened(value)
        textual = memoryview(value)[0] == 0x22
        self.fuel.burn(length >> (4 if textual else 9))
        content = opened(value)
        if not textual:
            self.fuel.burn(_UNOPENED * len(content))
        return content

    def _is_false(self, value: Any) -> bool:
        return super()._is_false(self.open(value))


def _null(value: Value) -> bool:
    return value is None or (
        type(value) is Raw and len(memoryview(value)) == 4 and bytes(value) == b"null"
    )


def _is_unopened(base: Any) -> bool:
    return many(base) and {*map(type, base)} == {Raw}


def _if_any(matches: list[Any]) -> list[Any]:
    """Return the matches in several arrays; none if none of them has one."""
    return matches if any(each != [] for each in matches) else []


def _is_literal(node: Any) -> bool:
    return bool(node["type"] == "literal")


def _of_arrays(base: list[Any]) -> bool:
    """Return True if all elements are arrays or null, and not all are null."""
    return all(is_array(each) or _null(each) for each in base) and any(map(is_array, base))


def _first_bracket(node: Any) -> str | None:
    """Return "index" or "slice" if an expression begins by one, else None."""
    while node["type"] in FIRST_ALONE or node["type"] == "subexpression":
        if node["type"] == "index_expression" and node["children"][0]["type"] == "identity":
            return str(node["children"][1]["type"])
        node = node["children"][0]
    return None
