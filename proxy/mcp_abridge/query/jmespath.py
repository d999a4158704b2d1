"""Evaluation of JMESPath for rules and views; all work and all memory on the way burn fuel.

Invariant: for every expression and value, evaluation ends when its fuel does, and makes at most
about 16 bytes in memory per unit. Work in one go (texts joined, arrays compared, parts copied)
burns its fuel beforehand. The import loads the jmespath library.
"""

from collections.abc import Callable, Mapping
from typing import Any

from jmespath import Options
from jmespath.visitor import TreeInterpreter, _Expression

from mcp_abridge.document.fuel import Fuel, charge
from mcp_abridge.document.tree import Number
from mcp_abridge.errors import Refusal
from mcp_abridge.query.functions import ARRAY, MeteredFunctions
from mcp_abridge.query.kind_words import TESTS
from mcp_abridge.query.lookups import Lookups, slip_of
from mcp_abridge.query.notation import ends_in
from mcp_abridge.query.shapes import elements, has_arrays, is_array

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

    def _rows(self, value: Any) -> Any:
        """Return the array that a value stands for if an array is needed."""
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
        base = self._rows(self.open(self.visit(node["children"][0], value)))
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
        if ends_in(array, "slice"):
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
            value = self._rows(self.open(value))
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
        return [each for each in self._each(result, base) if each is not None]

    def _each(self, node: Any, base: list[Any]) -> list[Any]:
        visit = self.visit
        return [visit(node, element) for element in base]

    def visit_flatten(self, node: Any, value: Any) -> Any:
        base = self._array(node, value)
        if base is None:
            return None
        self.fuel.burn(len(base) * self.element >> 1)
        if not has_arrays(base):
            return [*base]
        merged: list[Any] = []
        for element in base:
            if is_array(element):
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
        self._correct_exprefs(arguments, of_tree=node["value"] == "nodes")
        return self.result_of(node, arguments, value)

    def visit_expref(self, node: Any, value: Any) -> Any:
        return Expref(node["children"][0], self)

    def _correct_exprefs(self, arguments: list[Any], *, of_tree: bool = False) -> None:
        exprefs = [each for each in arguments if isinstance(each, Expref)]
        base = next((each for each in arguments if not isinstance(each, Expref)), None)
        if of_tree and isinstance(base, list):
            base = [each for _, each in elements("", base)]
        for each in exprefs:
            each.expression = self._corrected(each.expression, base, required=True)

    def result_of(self, node: Any, arguments: list[Any], value: Any) -> Any:
        """Return the result of a function for its arguments, evaluated over `value`."""
        if self.lookups is not None and node["value"] in TESTS:
            self.lookups.kinds.pair(node, *arguments)
        self.functions.current, self.functions.call = value, node
        return self.functions.call_function(node["value"], arguments)

    def _is_false(self, value: Any) -> bool:
        return value is not True and (value is None or value is False or value in _EMPTY)


_ORDERED = {int, float, str, Number}
_SIZED = {str, list, dict}
_EMPTY: tuple[Any, ...] = ("", [], {})
