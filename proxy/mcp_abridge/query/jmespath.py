"""Evaluation of JMESPath for rules and views; all work and all memory on the way burn fuel.

Invariant: for every expression and value, evaluation ends when its fuel does, and makes at most
about 16 bytes in memory per unit. Work in one go (texts joined, arrays compared, parts copied)
burns its fuel beforehand. The import loads the jmespath library.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jmespath import Options
from jmespath.functions import Functions, signature
from jmespath.visitor import TreeInterpreter
from msgspec import Raw

from mcp_abridge.document.fuel import Fuel, characters, charge
from mcp_abridge.document.tree import Document, Number, Value, encode, loads, opened
from mcp_abridge.errors import did_you_mean
from mcp_abridge.query.lookups import Lookups
from mcp_abridge.query.patterns import Expression
from mcp_abridge.query.questions import Questions

_ARRAY = 4  # units for a new one, before its elements
# Units of a step that makes an array or an object, before its elements or members.
_COSTS = dict.fromkeys(
    ("filter_projection", "flatten", "multi_select_list", "projection", "value_projection"), 5
) | {"multi_select_dict": 9}
_COMPARED = 4096  # characters of two texts that are compared per unit


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
        # Functions, not bound methods: those would hold `self` and its values in a reference cycle.
        self._ways: dict[str, Callable[[Any, Any, Any], Any]] = {}

    def visit(self, node: Any, value: Any) -> Any:
        """Evaluate a node over a value. Raises OutOfFuel and the errors of the jmespath library."""
        fuel, kind = self.fuel, node["type"]
        fuel.remaining -= _COSTS.get(kind, 1)
        if fuel.remaining < 0:
            fuel.burn(0)
        way = self._ways.get(kind)
        if way is None:
            own = type(self)
            way = self._ways[kind] = getattr(own, f"visit_{kind}", own.default_visit)
        return way(self, node, value)

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
        sign = node["value"]
        first, second = node["children"]
        one, other = self.visit(first, value), self.visit(second, value)
        if sign in ("eq", "ne"):
            return self._equal(one, other) == (sign == "eq")
        if type(one) not in _ORDERED or type(other) not in _ORDERED:
            return None
        if type(one) is str:
            self.fuel.burn(len(one) // _COMPARED)
        return self.COMPARATOR_FUNC[sign](one, other)

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

    def visit_filter_projection(self, node: Any, value: Any) -> Any:
        array, result, condition = node["children"]
        base = self.open(self.visit(array, value))
        if not isinstance(base, list):
            return None
        visit, false = self.visit, self._is_false
        condition = self._corrected(condition, base)
        elements = [element for element in base if not false(visit(condition, element))]
        # If the condition keeps no element, no member can be missing.
        return self._projected(
            elements, self._corrected(result, base, required=True) if elements else result
        )

    def visit_projection(self, node: Any, value: Any) -> Any:
        array, result = node["children"]
        base = self.open(self.visit(array, value))
        if (
            result["type"] == "identity"
            and _ends_in(array, "slice")
            and isinstance(base, self.whole)
        ):
            return base
        return self._projected(base, self._corrected(result, base, required=True))

    def visit_value_projection(self, node: Any, value: Any) -> Any:
        array, result = node["children"]
        members = self.open(self.visit(array, value))
        base = [*members.values()] if isinstance(members, dict) else None
        return self._projected(base, self._corrected(result, base, required=True))

    def _projected(self, base: Any, result: Any) -> list[Any] | None:
        if not isinstance(base, list):
            return None
        visit = self.visit
        values = [visit(result, element) for element in base]
        return [each for each in values if each is not None]

    def visit_flatten(self, node: Any, value: Any) -> Any:
        base = self.open(self.visit(node["children"][0], value))
        if not isinstance(base, list):
            return None
        merged: list[Any] = []
        self.fuel.burn(len(base) * self.element >> 1)
        for element in base:
            inner = self.open(element)
            if isinstance(inner, list):
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
            self.fuel.burn(_ARRAY + (length * self.element >> 1))
        return value[part]

    def visit_pipe(self, node: Any, value: Any) -> Any:
        first, *others = node["children"]
        result = self.visit(first, value)
        for other in others:
            other = self._corrected(other, [result], single=True)
            result = self.visit(other, result)
        return result

    def visit_function_expression(self, node: Any, value: Any) -> Any:
        children = node["children"]
        arguments = [self.visit(child, value) for child in children]
        for by, over in ((0, 1), (1, 0)) if len(arguments) == 2 else ():
            if children[by]["type"] == "expref":  # evaluated over the other's elements
                expression = arguments[by].expression
                arguments[by].expression = self._corrected(
                    expression, arguments[over], required=True
                )
        functions: MeteredFunctions = self._functions  # type: ignore[attr-defined]
        functions.current = value
        return functions.call_function(node["value"], arguments)

    def _is_false(self, value: Any) -> bool:
        return value is not True and (value is None or value is False or value in _EMPTY)


class _OfViews(Interpreter):
    """An interpreter in which an array has members, which JMESPath takes for null.

    A result shows arrays as tables, and other languages know the length of an array. The members of
    its elements are meant by `items.title`, as the notes write it.
    """

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
        if not _ends_in(first, "index"):
            return super().visit_subexpression(node, value)
        value = self.visit(first, value)
        for each in others:
            value = self.open(value)
            # The members of one element are searched here: `Lookups` sees the array alone.
            value = self.visit(self._corrected(each, [value], single=True), value)
        return value


_UNOPENED = 4  # units for a value that stays unopened: it takes some 64 bytes in memory
_LARGE = 1024  # bytes: to open a smaller value is included in its step

# Kinds of nodes that get plain values; all others work on values opened by one level.
_COMPUTING = {"and_expression", "comparator", "expref"}
_COMPUTING |= {"function_expression", "not_expression", "or_expression"}
_PASSING = {"current", "identity", "literal"}


class LazyInterpreter(_OfViews):
    """An interpreter over unopened values; it decodes just those that it computes with."""

    element = 2 * _UNOPENED
    whole = (str, list)

    def __init__(self, fuel: Fuel, document: Document, lookups: Lookups) -> None:
        super().__init__(fuel, lookups=lookups)
        self._computing = _OfViews(fuel, lookups=lookups)
        self._document = document
        self._room: int | None = None

    def visit(self, node: Any, value: Any) -> Any:
        kind = node["type"]
        if kind not in _PASSING:
            if kind in _COMPUTING:
                return self._computed(node, value)
            value = self.open(value)
        self.fuel.burn(_UNOPENED - 1)
        result = super().visit(node, value)
        return None if _null(result) else result

    def _computed(self, node: Any, value: Any) -> Any:
        charge(value, self.fuel)
        output = encode(value)
        result = self._computing.visit(node, loads(output))
        if isinstance(result, dict | list):
            # The result may keep all values decoded for it: free once for the whole document.
            if self._room is None:
                self._room = len(encode(self._document.cell[0]))
            self._room -= len(output)
            self.fuel.burn(max(0, min(len(output), -self._room)) >> 2)
        return result

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
    return type(value) is Raw and len(memoryview(value)) == 4 and bytes(value) == b"null"


def _ends_in(node: Any, kind: str) -> bool:
    return bool(node["type"] == "index_expression" and node["children"][-1]["type"] == kind)


_ORDERED = {int, float, str, Number}
_SIZED = {str, list, dict}
_EMPTY: tuple[Any, ...] = ("", [], {})


# Functions that go through all of an argument. The others go through its outermost level, or
# evaluate an expression over each element, which is charged by itself.
_DEEP = {"abs", "avg", "ceil", "contains", "floor", "join", "max", "min", "sort", "sum"}
_DEEP |= {"to_number", "to_string"}
_WRITTEN = 4  # `to_string` writes up to 12 bytes for each byte of a text


class MeteredFunctions(Questions, Functions):
    """The functions of JMESPath and of questions, and `argument('name')`: one of the call."""

    def __init__(self, fuel: Fuel, arguments: Mapping[str, Any]) -> None:
        self._fuel = fuel
        self._arguments = arguments

    @signature({"types": ["string"]})
    def _func_argument(self, name: str) -> Any:
        return self._arguments.get(name)

    def call_function(self, function_name: str, resolved_args: Any) -> Any:
        if function_name in _DEEP:
            times = _WRITTEN if function_name == "to_string" else 1
            charge(_visited(function_name, resolved_args), self._fuel, times)
        else:
            self._fuel.burn(_ARRAY + sum(map(_outer_units, resolved_args)))
        return super().call_function(function_name, resolved_args)

    def _create_key_func(self, *by: Any) -> Callable[[Any], Any]:
        key = super()._create_key_func(*by)  # type: ignore[misc]

        def charged(element: Any) -> Any:
            value = key(element)
            if type(value) is str:
                self._fuel.burn(len(value) >> 8)  # keys are compared
            return value

        return charged


def function_mistake(expression: Expression) -> str | None:
    """Return the mistake in the calls of an expression, or None."""
    table = MeteredFunctions.FUNCTION_TABLE
    signatures = {name: entry["signature"] for name, entry in table.items()}
    for node in nodes(expression.tree):
        if node["type"] != "function_expression":
            continue
        name, count = node["value"], len(node["children"])
        if name not in signatures:
            return f"unknown JMESPath function {name!r}{did_you_mean(name, signatures)}"
        arity = len(signatures[name])
        variadic = bool(signatures[name]) and "variadic" in signatures[name][-1]
        if count < arity or (count > arity and not variadic):
            expected = f"{arity} argument{'s' * (arity != 1)}{' or more' * variadic}"
            return f"the JMESPath function {name!r} takes {expected}, found {count}"
        for child, types in zip(node["children"], signatures[name], strict=False):
            if types["types"] == ["expref"] and child["type"] != "expref":
                return f"the JMESPath function {name!r} takes an expression, written &name"
    return None


def nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all nodes of a parsed expression, the outer ones first."""
    waiting = [tree]
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting.extend(child for child in node.get("children", ()) if isinstance(child, dict))


def _visited(function_name: str, arguments: list[Any]) -> list[Any]:
    """Return all values that a function goes through: `join` writes its separator repeatedly."""
    if function_name == "join" and len(arguments) == 2 and isinstance(arguments[1], list):
        return [arguments[1], [arguments[0]] * len(arguments[1])]
    return arguments


def _outer_units(value: Any) -> int:
    if isinstance(value, str):
        return characters(value)
    if isinstance(value, dict):
        return 4 * len(value)  # with the table of its names
    return len(value) if isinstance(value, list) else 0
