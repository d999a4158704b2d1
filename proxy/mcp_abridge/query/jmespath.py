"""Evaluation of JMESPath for rules and views; all work and all memory on the way burn fuel.

Invariant: for every expression and value, evaluation ends when its fuel does, and makes at most
about 16 bytes in memory per unit. Work in one go (texts joined, arrays compared, parts copied)
burns its fuel beforehand. The import loads the jmespath library.
"""

from collections.abc import Callable, Mapping
from typing import Any

from jmespath import Options
from jmespath.visitor import TreeInterpreter, _Expression
from msgspec import Raw

from mcp_abridge.document.fuel import Fuel, charge, cost
from mcp_abridge.document.tree import Document, Number, Value, encode, loads, opened, plain
from mcp_abridge.errors import Refusal
from mcp_abridge.query.functions import ARRAY, MeteredFunctions
from mcp_abridge.query.kinds import TESTS
from mcp_abridge.query.lookups import Lookups, members_named, slip_of
from mcp_abridge.query.patterns import FIRST_ALONE, truthy
from mcp_abridge.query.rows import batches, columns, many, over, shared

# Units of a step that makes an array or an object, before its elements or members.
_COSTS = dict.fromkeys(
    ("filter_projection", "flatten", "multi_select_list", "projection", "value_projection"), 5
) | {"multi_select_dict": 9}
_COMPARED = 4096  # characters of two texts that are compared per unit


class Expref(_Expression):
    """An expression that is the argument of a function; `values` has those of all elements."""

    values: list[Any] | None = None

    def over(self, array: list[Any]) -> list[Any]:
        """Return its value over each element of an array."""
        if self.values is not None:
            return self.values
        visit: Callable[[Any, Any], Any] = self.interpreter.visit
        node: Any = self.expression
        return [visit(node, element) for element in array]


Expref.__name__ = "_Expression"  # by which the jmespath library knows its type


class Interpreter(TreeInterpreter):
    """An evaluator of parsed expressions over plain values; strings can be sliced like arrays."""

    element = 1  # half units for each element that is copied into an array without its own step
    whole: tuple[type, ...] = (str,)  # types whose slice is no projection

    def __init__(
        self, fuel: Fuel, arguments: Mapping[str, Any] | None = None, lookups: Lookups | None = None
    ) -> None:
        """Take the fuel and the arguments of a call; `lookups` records and corrects slips."""
        super().__init__(Options(custom_functions=MeteredFunctions(fuel, arguments or {})))
        self.fuel = fuel
        self.lookups = lookups
        self.bare: set[int] = set()  # the names that must be members where they are first compared
        # Functions, not bound methods: those would hold `self` and its values in a reference cycle.
        self._ways: dict[str, Callable[[Any, Any, Any], Any]] = {}

    def visit(self, node: Any, value: Any) -> Any:
        """Evaluate a node over a value. Raises OutOfFuel and the errors of the jmespath library."""
        fuel, kind = self.fuel, node["type"]
        fuel.remaining -= _COSTS.get(kind, 1)
        if fuel.remaining < fuel.alarm:
            fuel.burn(0)
        way = self._ways.get(kind)
        if way is None:
            own = type(self)
            way = self._ways[kind] = getattr(own, f"visit_{kind}", own.default_visit)
        return way(self, node, value)

    def over(self, node: Any, value: Any) -> Any:
        """Evaluate a whole expression over a value, which is `$` in it; see `visit`."""
        self.functions.root = lambda: value
        return self.visit(node, value)

    @property
    def functions(self) -> MeteredFunctions:
        return self._functions  # type: ignore[attr-defined, no-any-return]

    def open(self, value: Any) -> Any:
        """Return `value` in a form whose elements can be read; a subclass may decode it."""
        return value

    def _corrected(
        self, node: Any, base: Any, *, single: bool = False, required: bool = False
    ) -> Any:
        if self.lookups is None or not isinstance(base, list):
            return node
        return self.lookups.corrected(
            node, base, self.open, self.fuel, single=single, required=required
        )

    def visit_comparator(self, node: Any, value: Any) -> Any:
        first, second = node["children"]
        one, other = self.visit(first, value), self.visit(second, value)
        if id(second) in self.bare and node["value"] in ("eq", "ne"):
            if not (isinstance(value, dict) and second["value"] in value):
                raise Refusal(slip_of(second["value"]))
            self.bare.discard(id(second))
        return self.compared(node, one, other)

    def compared(self, node: Any, one: Any, other: Any) -> Any:
        """Return the result of a comparison of two values."""
        sign = node["value"]
        kinds = None if self.lookups is None else self.lookups.kinds
        if sign in ("eq", "ne"):
            if kinds is not None:
                kinds.pair(node, one, other)
            return self._equal(one, other) == (sign == "eq")
        if type(one) not in _ORDERED or type(other) not in _ORDERED:
            pair = None
        elif kinds is None:
            pair = (one, other) if (type(one) is str) == (type(other) is str) else None
        else:
            pair = kinds.ordered(node, one, other)
        if kinds is not None:
            kinds.pair(node, *(pair or (one, other)))
        if pair is None:
            return None
        if type(one) is str:
            self.fuel.burn(len(one) // _COMPARED)
        return self.COMPARATOR_FUNC[sign](*pair)

    def _equal(self, one: Any, other: Any) -> bool:
        kind = type(one)
        if kind in _SIZED and kind is type(other):
            if len(one) != len(other):
                return False
            if kind is not str:
                charge(one, self.fuel)
            elif len(one) >= _COMPARED:
                self.fuel.burn(len(one) // _COMPARED)
        # In Python, 1 equals True; in JMESPath it does not.
        return bool(one == other) and (kind is bool) == (type(other) is bool)

    def _array(self, node: Any, value: Any) -> Any:
        """Evaluate what stands before the brackets of a node; None if it is no array."""
        base = self.open(self.visit(node["children"][0], value))
        if self.lookups is not None:
            self.lookups.kinds.base(node, base)
        return base if isinstance(base, list) else None

    def visit_filter_projection(self, node: Any, value: Any) -> Any:
        base = self._array(node, value)
        return None if base is None else self._filtered(node, base)

    def _filtered(self, node: Any, base: list[Any]) -> Any:
        _, result, condition = node["children"]
        condition = self._corrected(condition, base)
        elements = self._matching(condition, base)
        # If the condition keeps no element, no member can be missing.
        return self._projected(
            elements, self._corrected(result, base, required=True) if elements else result
        )

    def _matching(self, condition: Any, base: list[Any]) -> list[Any]:
        visit, false = self.visit, self._is_false
        return [element for element in base if not false(visit(condition, element))]

    def visit_projection(self, node: Any, value: Any) -> Any:
        array, result = node["children"]
        if _ends_in(array, "slice"):
            base = self.open(self.visit(array, value))
            if result["type"] == "identity" and isinstance(base, self.whole):
                return base
        else:
            base = self._array(node, value)
        return self._projected(base, self._corrected(result, base, required=True))

    def visit_index_expression(self, node: Any, value: Any) -> Any:
        array, *indexes = node["children"]
        value = self.visit(array, value)
        for index in indexes:
            value = self.open(value)
            if self.lookups is not None:
                self.lookups.kinds.base(node, value, index)
            value = self.visit(index, value)
        return value

    def visit_value_projection(self, node: Any, value: Any) -> Any:
        array, result = node["children"]
        members = self.open(self.visit(array, value))
        if self.lookups is not None:
            self.lookups.kinds.base(node, members)
        base = [*members.values()] if isinstance(members, dict) else None
        return self._projected(base, self._corrected(result, base, required=True))

    def _projected(self, base: Any, result: Any) -> list[Any] | None:
        if not isinstance(base, list):
            return None
        visit = self.visit
        values = [visit(result, element) for element in base]
        return [each for each in values if each is not None]

    def visit_flatten(self, node: Any, value: Any) -> Any:
        base = self._array(node, value)
        if base is None:
            return None
        merged: list[Any] = []
        self.fuel.burn(len(base) * self.element >> 1)
        for element in base:
            if _is_array(element):
                inner = self.open(element)
                self.fuel.burn(len(inner) * self.element >> 1)
                merged.extend(inner)
            else:
                merged.append(element)
        return merged

    def visit_slice(self, node: Any, value: Any) -> Any:
        if not isinstance(value, str | list):
            return None
        part = slice(*node["children"])
        length = len(range(len(value))[part])
        if isinstance(value, str):
            self.fuel.burn(length // (16 if value.isascii() else 4))
        else:
            self.fuel.burn(ARRAY + (length * self.element >> 1))
        return value[part]

    def visit_pipe(self, node: Any, value: Any) -> Any:
        first, *others = node["children"]
        result = self.visit(first, value)
        for other in others:
            other = self._corrected(other, [result], single=True)
            result = self.visit(other, result)
        return result

    def visit_function_expression(self, node: Any, value: Any) -> Any:
        arguments = [self.visit(child, value) for child in node["children"]]
        self._correct_exprefs(arguments)
        return self.result_of(node, arguments, value)

    def visit_expref(self, node: Any, value: Any) -> Any:
        return Expref(node["children"][0], self)

    def _correct_exprefs(self, arguments: list[Any]) -> None:
        for by, elements in ((0, 1), (1, 0)) if len(arguments) == 2 else ():
            if isinstance(arguments[by], Expref):
                arguments[by].expression = self._corrected(
                    arguments[by].expression, arguments[elements], required=True
                )

    def result_of(self, node: Any, arguments: list[Any], value: Any) -> Any:
        """Return the result of a function for its arguments, evaluated over `value`."""
        if self.lookups is not None and node["value"] in TESTS:
            self.lookups.kinds.pair(node, *arguments)
        self.functions.current, self.functions.call = value, node
        return self.functions.call_function(node["value"], arguments)

    def _is_false(self, value: Any) -> bool:
        return value is not True and (value is None or value is False or value in _EMPTY)


class _OfViews(Interpreter):
    """An interpreter in which an array has members, which JMESPath takes for null.

    A result shows arrays as tables, and other languages know the length of an array. The members of
    its elements are meant by `items.title`, as the notes write it.
    """

    def __init__(self, fuel: Fuel, lookups: Lookups) -> None:
        super().__init__(fuel, lookups=lookups)
        self.kinds = self.functions.kinds = lookups.kinds

    def _filtered(self, node: Any, base: list[Any]) -> Any:
        # After a projection, as in `people[?name].addresses[?current]`, JMESPath asks each array.
        inside = members_named(node["children"][2]) and _of_arrays(base)
        if not inside:
            return super()._filtered(node, base)
        parts = (self._filtered(node, self.open(each)) for each in base if not _null(each))
        return [part for part in parts if part is not None]

    def _projected(self, base: Any, result: Any) -> Any:
        # `[?id > 2][0]` is the first match; in JMESPath, the first element of each match.
        if isinstance(base, list) and _begins_by_index(result) and not any(map(_is_array, base)):
            return self.visit(result, base)
        return super()._projected(base, result)

    def visit_field(self, node: Any, value: Any) -> Any:
        if not isinstance(value, list):
            return super().visit_field(node, value)
        name = node["value"]
        first = self.open(value[0]) if value else None
        if not isinstance(first, dict):
            first = {}
        elif name in first:
            return self._projected(value, node)
        return {"rows": value, "columns": [*first] or None, "length": len(value)}.get(name)

    def visit_subexpression(self, node: Any, value: Any) -> Any:
        first, *others = node["children"]
        if not (_ends_in(first, "index") or first["type"] == "function_expression"):
            return super().visit_subexpression(node, value)
        value = self.visit(first, value)
        for each in others:
            value = self.open(value)
            # The members of one value are searched here: `Lookups` sees the array alone.
            value = self.visit(self._corrected(each, [value], single=True), value)
        return value


_UNOPENED = 4  # units for a value that stays unopened: it takes some 64 bytes in memory
_LARGE = 1024  # bytes: to open a smaller value is included in its step

# Kinds of nodes that get plain values; all others work on values opened by one level.
_COMPUTING = {"and_expression", "comparator", "expref"}
_COMPUTING |= {"function_expression", "not_expression", "or_expression"}
_PASSING = {"current", "identity", "literal"}

# Functions of one value, and perhaps of expressions over the elements of an array.
_ORDERING = {"max_by", "min_by", "sort_by"}
_OF_ROWS = {"avg", "count_by", "group_by", "length", "max", "min", "sort", "sum", "sum_by"}
_OF_ROWS |= {"entries", "keys", "unique", "values", *_ORDERING}


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
        self.sliced: Value = None  # what the last slice is a part of
        self._computing.functions.root = self._whole

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
        if node.get("value") == "grep" and all(_is_literal(each) for each in node["children"]):
            base = self.open(value)
            if many(base) and {*map(type, base)} == {Raw}:
                return self._computing.visit(node, base)  # which decodes the rows with a match
        return self._over_plain(value, lambda plain: self._computing.visit(node, plain))

    def _over_plain(self, value: Any, evaluate: Callable[[Any], Any]) -> Any:
        self.fuel.burn(cost(value, self.fuel))
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
        base = self.open(self.visit(first, value))
        if isinstance(base, list) and node["value"] == "length":
            return len(base)
        exprefs = [self._computing.visit(other, None) for other in others]
        if not (many(base) and exprefs):
            return self._over_plain(base, lambda plain: self._result_of(node, [plain, *exprefs]))
        arguments = [base, *exprefs]
        self._correct_exprefs(arguments)
        spelled = node["value"] not in _ORDERING
        lists = self._values([each.expression for each in exprefs], base, spelled=spelled)
        for expref, values in zip(exprefs, lists, strict=True):
            expref.values = values
        return self._computing.result_of(node, arguments, None)

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
            return [each for each in base if not _null(each)]
        values = columns(base, result, self.fuel) if isinstance(base, list) else None
        return super()._projected(base, result) if values is None else values

    def open(self, value: Any) -> Any:
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


def _is_literal(node: Any) -> bool:
    return bool(node["type"] == "literal")


def _is_array(value: Value) -> bool:
    return memoryview(value)[0] == 0x5B if type(value) is Raw else isinstance(value, list)


def _of_arrays(base: list[Any]) -> bool:
    """Return True if all elements are arrays or null, and not all are null."""
    return all(_is_array(each) or _null(each) for each in base) and any(map(_is_array, base))


def _begins_by_index(node: Any) -> bool:
    while node["type"] in FIRST_ALONE or node["type"] == "subexpression":
        if node["type"] == "index_expression" and node["children"][0]["type"] == "identity":
            return bool(node["children"][1]["type"] == "index")
        node = node["children"][0]
    return False


def _ends_in(node: Any, kind: str) -> bool:
    return bool(node["type"] == "index_expression" and node["children"][-1]["type"] == kind)


def last_slice(node: Any) -> Any:
    """Return the node of the slice of one value at the end of a view, None if it has none."""
    while node["type"] in ("pipe", "subexpression"):
        node = node["children"][-1]
    if node["type"] != "projection" or node["children"][1]["type"] not in _OF_EACH:
        return None
    array = node["children"][0]
    return array["children"][-1] if _ends_in(array, "slice") else None


_OF_EACH = ("identity", "multi_select_dict", "multi_select_list")  # what a slice may end with
_ORDERED = {int, float, str, Number}
_SIZED = {str, list, dict}
_EMPTY: tuple[Any, ...] = ("", [], {})
