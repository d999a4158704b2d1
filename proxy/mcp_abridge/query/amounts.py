"""The functions that order and add values: exact sums, and numbers that are held as texts.

Without it, 0.1 + 0.2 + 0.3 is 0.6000000000000001, and of the texts "9" and "10" the greatest is 9.
In views, a text that spells a number counts as one, and what cannot be compared is left out; both
are said in a remark. Expressions of rules stay those of JMESPath.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, localcontext
from typing import Any

from jmespath.exceptions import JMESPathTypeError
from jmespath.functions import signature

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.names import label, nameable
from mcp_abridge.document.tree import Number, encode
from mcp_abridge.errors import Refusal
from mcp_abridge.query.kinds import Kinds
from mcp_abridge.query.notation import notation, share
from mcp_abridge.query.numerals import (
    are_days,
    is_missing,
    kind,
    kind_of_type,
    number,
    numbers,
    odd_order,
)
from mcp_abridge.query.trees import path_of

_EXACT = Context(prec=400, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])
_ROUNDED = Context(prec=28, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])

_EXAMINED = 100  # texts among which one of an amount is looked for
_FEWEST = 4  # values of which the last may be their total

Keyed = tuple[list[Any], Sequence[Any]]
"""Keys, and the elements that have them."""

OF_VALUES = frozenset(("avg", "max", "min", "sort", "sum"))
"""Functions of one array whose elements are compared or added."""


class Amounts:
    """Sums, greatest and least values, and orders; `kinds` notes what a view left out."""

    kinds: Kinds | None = None
    call: Any = None  # the node of the function
    _fuel: Fuel

    @signature({"types": ["array-number"]})
    def _func_sum(self, array: list[Any]) -> Any:
        return total(array)

    @signature({"types": ["array-number"]})
    def _func_avg(self, array: list[Any]) -> Any:
        if not array:
            return None
        return float(_ROUNDED.divide(_exact(array), Decimal(len(array))))

    @signature({"types": []})
    def _func_to_number(self, value: Any) -> Any:
        if self.kinds is None or not isinstance(value, str):
            return super()._func_to_number(value)  # type: ignore[misc]
        result = number(value)
        if result is None:
            self.kinds.unread(self.call, value)
        return result

    @signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_sort_by(self, array: list[Any], by: Any) -> Any:
        if self.kinds is None:
            return super()._func_sort_by(array, by)  # type: ignore[misc]
        return _ordered(*self._keyed(array, by, nulls=True))

    @signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_max_by(self, array: list[Any], by: Any) -> Any:
        return self._best(max, array, by)

    @signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_min_by(self, array: list[Any], by: Any) -> Any:
        return self._best(min, array, by)

    def _best(self, best: Any, array: list[Any], by: Any) -> Any:
        """Return the first element with the greatest or the least key; note how many have it."""
        call, values = self.call, by.over(array)
        keys, places = self._comparable(notation(by.expression), values, range(len(array)))
        place = _first(best, keys, range(len(keys)))
        if place is None:
            return None
        if self.kinds is not None:
            self.kinds.tie(call, keys.count(keys[place]) - 1, values[places[place]])
        return array[places[place]]

    @signature({"types": ["array"]}, {"types": ["expref"]}, {"types": ["expref"]})
    def _func_sum_by(self, array: list[Any], by: Any, of: Any) -> dict[str, Any]:
        names = self._groups(array, by)
        groups: dict[str, list[Any]] = {name: [] for name in names}
        keys = of.over(array)
        keys, groups_of = self._comparable(notation(of.expression), keys, names, adds=True)
        for key, name in zip(keys, groups_of, strict=True):
            groups[name].append(key)
        return {name: total(group) for name, group in groups.items()}

    def _groups(self, array: list[Any], by: Any) -> list[str]:
        """Return the name of each element's group: its value by an expression."""
        self._fuel.reserve(2 * len(array))
        call, values = self.call, by.over(array)
        arrays = [*map(type, values)].count(list)
        if arrays and call is not None and by.expression["type"] != "multi_select_list":
            text = (
                f"{notation(by.expression)} is an array{share(arrays, len(values))}, each a group"
            )
            self._say(f"{text} of its own{_of_elements(call, by.expression)}", True)
        names = [value if isinstance(value, str) else encode(value).decode() for value in values]
        if str in (types := {*map(type, values)}) and len(types) > 1:
            pairs = zip(names, values, strict=True)
            kinds = {(name, isinstance(value, str)) for name, value in pairs if nameable(name)}
            for name in sorted(name for name, text in kinds if text and (name, False) in kinds)[:1]:
                what = notation(by.expression)
                self._say(f"{what}: {name} and the text '{name}' are one group", True)
        return names

    def of_values(self, name: str, array: Any) -> Any:
        """Return the result of a function of OF_VALUES in a view. Raises Refusal."""
        if not isinstance(array, list):
            raise JMESPathTypeError(name, array, kind(array), ["array"])
        adds = name in ("avg", "sum")
        keys, elements = self._comparable("the value", array, array, adds=adds)
        if adds:
            return self._sum(keys) if name == "sum" else self._func_avg(keys)
        if name == "sort":
            return _ordered(keys, elements)
        return _first(max if name == "max" else min, keys, elements)

    def _sum(self, keys: list[Any]) -> Any:
        if len(keys) < _FEWEST:
            return total(keys)
        *others, last = keys
        rest = total(others)
        self._say("the last value is the sum of the others", rest == last != 0)
        return total([rest, last])

    def _keyed(self, array: list[Any], by: Any, *, nulls: bool = False) -> Keyed:
        return self._comparable(notation(by.expression), by.over(array), array, nulls=nulls)

    def _comparable(
        self,
        what: str,
        keys: list[Any],
        elements: Sequence[Any],
        *,
        nulls: bool = False,
        adds: bool = False,
    ) -> Keyed:
        """Return the keys that can be compared, and their elements; say which cannot.

        The keys are numbers if one of them is, or if they are added, or if all texts spell one or
        say that there is none; else texts. `nulls`: those that are null are counted among the
        others that are left out. Raises Refusal if a view leaves out all.
        """
        self._fuel.reserve(2 * len(keys))  # they are sorted, or added, in one go
        verb, takes = ("added", "numbers") if adds else ("compared", "numbers and texts")
        types = Counter(map(type, keys))
        texts, there = types[str], len(keys) - types[type(None)]
        some = len(keys) if nulls else there
        values: list[Any] = numbers(keys, of_texts=self.kinds is not None)
        fit = len(values) - values.count(None)
        numeric = any(kind_of_type(type_) == "number" for type_ in types)
        if not (adds or numeric) and fit < texts and not _fits_but_for_missing(keys, values):
            values = [key if isinstance(key, str) else None for key in keys]
            self._say(f"{what}: compared as texts, since not all are numbers", 2 * fit >= texts)
            sample = [*filter(None, values[:_EXAMINED])]
            if self.kinds is not None and are_days(sample):
                values = [None if is_missing(key) else key for key in values]
                missing = texts - len(values) + values.count(None)
                self._say(f"{what} is no time in {_left_out(missing, keys)}", missing > 0)
            as_ = odd_order(sample)
            so = as_ is not None and not (as_ == "numbers" and 2 * fit >= texts)
            self._say(f"{what}: compared as texts, not as {as_}", so)
            self._say(f"{what} is no text in {_left_out(some - texts, keys)}", some > texts)
        else:
            both = zip(keys, values, strict=True) if texts else ()
            converts = any(isinstance(key, str) and value is not None for key, value in both)
            self._say(f"{what}: texts that are numbers are {verb} as numbers", converts)
            self._say(f"{what} is no number in {_left_out(some - fit, keys)}", some > fit)
        if None in values:
            elements = [each for each, key in zip(elements, values, strict=True) if key is not None]
            values = [key for key in values if key is not None]
        if self.kinds is not None and not values and there:
            kinds = " and ".join(sorted({f"{kind(key)}s" for key in keys if key is not None}))
            way = "; write [] after the first argument if it has arrays of them"
            way = way if kinds == "arrays" and what != "…" else ""
            raise Refusal(f"view: {what}: only {takes} can be {verb}, and there are {kinds}{way}")
        return values, elements

    def _say(self, remark: str, so: bool) -> None:
        if so and self.kinds is not None:
            self.kinds.say(remark)


def _fits_but_for_missing(keys: list[Any], values: list[Any]) -> bool:
    """Return True if all texts are numbers, or say that there is none, such as N/A."""
    return any(value is not None for value in values) and all(
        value is not None or not isinstance(key, str) or is_missing(key)
        for key, value in zip(keys, values, strict=True)
    )


def _of_elements(call: Any, by: Any) -> str:
    """Return how to group by the elements of an array, as the end of a sentence."""
    rows, _, *others = map(notation, call["children"])
    names = [f"&{'.'.join(map(label, path_of(by)))}", *others]
    way = f"{call['value']}(unnest({rows}, &{notation(by)}), {', '.join(names)})"
    return "" if "…" in way or not path_of(by) else f"; by its elements: {way}"


def _left_out(count: int, keys: list[Any]) -> str:
    return f"{count} of {len(keys)} elements, left out"


def _ordered(keys: list[Any], elements: Sequence[Any]) -> list[Any]:
    return [elements[place] for place in sorted(range(len(keys)), key=keys.__getitem__)]


def _first(best: Any, keys: list[Any], elements: Sequence[Any]) -> Any:
    """Return the first of the elements with the greatest or the least key; null if none has one."""
    return elements[best(range(len(keys)), key=keys.__getitem__)] if keys else None


def total(values: Iterable[Any]) -> Any:
    """Return the exact sum of numbers: of their spellings, not of their nearest binary fractions.

    >>> total([0.1, 0.2, 0.3]), total([1, 2])
    (0.6, 3)
    """
    values = [*values]
    if {*map(type, values)} <= {int}:
        return sum(values)
    result = _exact(values)
    return Number(str(result)) if result.is_finite() else float(result)


def _exact(values: Iterable[Any]) -> Decimal:
    # No function is called for each: a column may have a million.
    spellings = [each.spelling if isinstance(each, Number) else repr(each) for each in values]
    try:
        with localcontext(_EXACT):
            return sum(map(Decimal, spellings), Decimal(0))
    except Inexact:  # of 1e400 and 1e-400
        with localcontext(_ROUNDED):
            return sum(map(Decimal, spellings), Decimal(0))
