"""Sorts an array."""

from typing import Any, ClassVar

from msgspec import UNSET, Raw

from mcp_abridge.document.gather import column_values
from mcp_abridge.document.paths import ROOT, Path
from mcp_abridge.document.tree import Number, Slot, Value, level
from mcp_abridge.query.call import Call
from mcp_abridge.transforms.base import Transform, arrays


class Sort(Transform, frozen=True):
    """Sort the array at `at` by the value at `by` in each element, or by the elements themselves.

    Elements that compare equal keep their order. Texts are compared by their UTF-8 bytes, numbers
    by value. Different types come in this order: numbers, texts, false, true, then arrays and
    objects, which compare equal. `descending` reverses all of that; null and missing values come
    last either way.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'[{"n": 10}, {"n": "a"}, {"n": null}, {"n": 9.50}, {"m": 1}]')
    >>> Sort(by=Path.parse("n"))(document.root, Call("list"))
    >>> document.encode()
    b'[{"n":9.50},{"n":10},{"n":"a"},{"n":null},{"m":1}]'
    """

    name: ClassVar[str] = "sort"
    shorthand: ClassVar[str | None] = "by"

    by: Path = ROOT
    """The path of the value to compare, from the element on."""
    at: Path = ROOT
    """The array."""
    descending: bool = False
    """The greatest first; null and missing values still come last."""

    def __call__(self, root: Slot, call: Call) -> None:
        for slot, unopened, value in arrays(root, self.at, call):
            values = column_values(unopened, self.by)
            if value and all(each is UNSET for each in values):
                call.missing.append(str(self.at.then(self.by)))
            keys: list[Any] = list(map(key, values))
            order = [index for index, each in enumerate(keys) if each is not None]
            # In descending order too, elements that compare equal keep their order.
            order.sort(key=keys.__getitem__, reverse=self.descending)
            order += [index for index, each in enumerate(keys) if each is None]
            if order != list(range(len(value))):
                value[:] = [value[index] for index in order]
                slot.set(value)


def key(value: Value) -> tuple[int, Any] | None:
    """Return the sort key of `value`, None for null and for a missing value."""
    if type(value) is Raw:
        value = level(value)
    if value is None or value is UNSET:
        return None
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, str):
        return 1, value
    if isinstance(value, int | float):
        return 0, _exact(value.spelling if isinstance(value, Number) else str(value))
    if type(value) is Raw:
        return 0, _exact(bytes(value).decode())
    return 3, 0


def _exact(spelling: str) -> Any:
    if len(spelling) < 19 and spelling.lstrip("-").isdecimal():
        return int(spelling)
    from decimal import Decimal, InvalidOperation

    try:
        return Decimal(spelling)
    except InvalidOperation:  # an exponent beyond what any number needs
        return float(spelling)
