"""The functions of JMESPath; each burns fuel for its work before it does the work in one go.

Imported with the first expression, since the import loads the jmespath library.
"""

from collections.abc import Callable, Mapping
from typing import Any

from jmespath.functions import Functions, signature

from proxy.document.fuel import ARRAY, COMPARED, OBJECT, Fuel, characters, pay

_CALL = 2  # units for the call of any function


class MeteredFunctions(Functions):
    """The functions of JMESPath; each burns fuel after the types of its arguments are checked."""

    def __init__(self, fuel: Fuel) -> None:
        self._fuel = fuel

    def call_function(self, function_name: str, resolved_args: Any) -> Any:
        known = self.FUNCTION_TABLE.get(function_name)
        if known is None:
            return super().call_function(function_name, resolved_args)
        if function_name in _CHECKED and resolved_args and type(resolved_args[-1]) is list:
            self._fuel.burn(len(resolved_args[-1]) >> 3)
        self._validate_arguments(resolved_args, known["signature"], function_name)  # type: ignore[attr-defined]
        self._fuel.left -= _CALL
        price = _PRICES.get(function_name)
        if price is not None:
            price(self._fuel, *resolved_args)
        return known["function"](self, *resolved_args)

    def _create_key_func(self, *by: Any) -> Callable[[Any], Any]:
        key = super()._create_key_func(*by)  # type: ignore[misc]

        def paid(element: Any) -> Any:
            found = key(element)
            if type(found) is str:
                self._fuel.burn(len(found) >> 8)
            return found

        return paid


class ArgumentFunctions(MeteredFunctions):
    """The functions of MeteredFunctions, and `argument('name')`: an argument of the call."""

    def __init__(self, fuel: Fuel, arguments: Mapping[str, Any]) -> None:
        super().__init__(fuel)
        self._arguments = arguments

    @signature({"types": ["string"]})
    def _func_argument(self, name: str) -> Any:
        return self._arguments.get(name)


# Functions that visit every element of an array just to check its type.
_CHECKED = {"avg", "join", "max", "min", "sort", "sum"}


def _copied(fuel: Fuel, value: Any) -> None:
    fuel.burn(characters(value) if isinstance(value, str) else ARRAY + (len(value) >> 1))


def _merged(fuel: Fuel, *objects: dict[str, Any]) -> None:
    fuel.burn(OBJECT + 4 * sum(map(len, objects)))


def _joined(fuel: Fuel, separator: str, array: list[str]) -> None:
    signs = sum(map(len, array)) + len(separator) * len(array)
    if signs >= 16:
        narrow = separator.isascii() and all(map(str.isascii, array))
        fuel.burn(signs // (16 if narrow else 4))


def _spelled(fuel: Fuel, value: Any) -> None:
    if not isinstance(value, str):
        fuel.burn(ARRAY)
        pay(value, fuel, written=True)


def _sorted(fuel: Fuel, array: list[Any]) -> None:
    rounds = len(array).bit_length()
    fuel.burn(ARRAY + (len(array) * rounds >> 3))
    _compared(fuel, array, rounds)


def _sorted_by(fuel: Fuel, array: list[Any], by: Any) -> None:
    fuel.burn(ARRAY + (len(array) * len(array).bit_length() >> 3))


def _compared(fuel: Fuel, array: list[Any], rounds: int = 1) -> None:
    if array and isinstance(array[0], str):
        fuel.burn(rounds * sum(map(len, array)) // COMPARED)


def _ended(fuel: Fuel, subject: str, end: str) -> None:
    fuel.burn(len(end) // COMPARED)


def _searched(fuel: Fuel, subject: Any, sought: Any) -> None:
    if isinstance(subject, str):
        if isinstance(sought, str):
            # In a short text, Python compares each character of `sought` at each position.
            fuel.burn(
                (min(len(subject), 30_000) * min(len(sought), 100) >> 10) + (len(subject) >> 7)
            )
        return
    fuel.burn(len(subject) >> 3)
    if type(sought) in (str, list, dict):
        for each in subject:
            if type(each) is type(sought) and len(each) == len(sought):
                if isinstance(each, str):
                    fuel.burn(len(each) // COMPARED)
                else:
                    pay(each, fuel)


def _numbered(fuel: Fuel, value: Any) -> None:
    if isinstance(value, str):
        fuel.burn(len(value) >> 5)


def _counted(fuel: Fuel, value: Any) -> None:
    pay(value, fuel)


def _listed(fuel: Fuel, *made: Any) -> None:
    fuel.burn(ARRAY)


_PRICES: dict[str, Callable[..., None]] = {
    "abs": _counted,
    "avg": _counted,
    "ceil": _counted,
    "contains": _searched,
    "ends_with": _ended,
    "floor": _counted,
    "join": _joined,
    "keys": _copied,
    "map": _listed,
    "max": _compared,
    "merge": _merged,
    "min": _compared,
    "reverse": _copied,
    "sort": _sorted,
    "sort_by": _sorted_by,
    "starts_with": _ended,
    "sum": _counted,
    "to_array": _listed,
    "to_number": _numbered,
    "to_string": _spelled,
    "values": _copied,
}
