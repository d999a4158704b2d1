"""The table of all functions of expressions, and what each call burns.

Without it, one call could go through a document again and again for a single unit of fuel.
"""

from collections.abc import Callable, Mapping
from typing import Any

from jmespath.functions import Functions, signature

from mcp_abridge.document.fuel import Fuel, characters, charge
from mcp_abridge.errors import did_you_mean
from mcp_abridge.query.amounts import OF_VALUES
from mcp_abridge.query.patterns import Expression, nodes
from mcp_abridge.query.questions import Questions

ARRAY = 4
"""Units for a new array, before its elements."""

# Functions that go through all of an argument. The others go through its outermost level, or
# evaluate an expression over each element, which is charged by itself.
_DEEP = {"abs", "avg", "ceil", "contains", "floor", "join", "max", "min", "sort", "sum"}
_DEEP |= {"to_number", "to_string"}
_WRITTEN = 4  # `to_string` writes up to 12 bytes for each byte of a text


class MeteredFunctions(Questions, Functions):
    """The functions of JMESPath and of questions, and `argument('name')`: one of the call."""

    root: Callable[[], Any]

    def __init__(self, fuel: Fuel, arguments: Mapping[str, Any]) -> None:
        self._fuel = fuel
        self._arguments = arguments

    @signature({"types": ["string"]})
    def _func_argument(self, name: str) -> Any:
        return self._arguments.get(name)

    @signature()
    def _func_root(self) -> Any:
        return self.root()

    def call_function(self, function_name: str, resolved_args: Any) -> Any:
        if function_name in _DEEP:
            times = _WRITTEN if function_name == "to_string" else 1
            charge(_visited(function_name, resolved_args), self._fuel, times)
        else:
            self._fuel.burn(ARRAY + sum(map(_outer_units, resolved_args)))
        if self.kinds is not None and function_name in OF_VALUES and len(resolved_args) == 1:
            return self.of_values(function_name, resolved_args[0])
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
    arguments = set[int]()  # the expressions that are arguments of a function
    for node in nodes(expression.tree):
        if node["type"] == "expref" and id(node) not in arguments:
            return "&name stands only where a function takes an expression: max_by(items, &n)"
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
            if types["types"] != ["expref"]:
                continue
            if child["type"] != "expref":
                return f"the JMESPath function {name!r} takes an expression, written &name"
            arguments.add(id(child))
    return None


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
