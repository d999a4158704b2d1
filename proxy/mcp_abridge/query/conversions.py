r"""The functions that make rows and texts of values: JSON in a text, inner rows, lines with counts.

Without them, what lies inside a text, or in an array of each row, can be read but not asked. What a
function cannot convert becomes null, and views say so in a remark.
"""

from collections import Counter
from typing import Any

from jmespath.functions import signature

from mcp_abridge.document.fuel import Fuel, characters, charge
from mcp_abridge.document.tree import encode, loads
from mcp_abridge.errors import DocumentError, Refusal
from mcp_abridge.query.kinds import Kinds
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.query.rich_text import text_of
from mcp_abridge.query.shapes import nodes
from mcp_abridge.query.trees import path_of

_PART = 4  # units for a new text or number, _OBJECT for an object, before what they hold
_OBJECT = 15
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r\n": "\r\n"}  # in single quotes JMESPath has no escapes


class Conversions:
    """Functions that convert values; `kinds` takes the remarks of a view."""

    current: Any
    kinds: Kinds | None
    _fuel: Fuel

    @signature({"types": []})
    def _func_from_json(self, value: Any) -> Any:
        """Return the value of the JSON in a text; other values as they are."""
        if not isinstance(value, str):
            return value
        objects, others = value.count("{"), value.count("[") + value.count(",")
        self._fuel.burn(characters(value) + _OBJECT * objects + 2 * _PART * others)
        try:
            return loads(value.encode())
        except (DocumentError, UnicodeEncodeError):
            return self._null("from_json() is null where a text is no JSON")

    @signature({"types": []})
    def _func_lower(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.lower()
        return None if value is None else self._null("lower() is null where there is no text")

    @signature({"types": []}, {"types": ["string"]})
    def _func_split(self, value: Any, separator: str) -> Any:
        if not separator:
            raise Refusal("split(text, ','): the separator is empty")
        if not isinstance(value, str):
            return None if value is None else self._null("split() is null where there is no text")
        separator = _ESCAPES.get(separator, separator)
        self._fuel.burn(characters(value) + _PART * value.count(separator))
        if separator.endswith("\n"):
            value = value.removesuffix(separator)  # the end of the last line begins none
        return value.split(separator)

    @signature({"types": []}, {"types": ["string"]})
    def _func_capture(self, value: Any, pattern: str) -> Any:
        """Return an object of the named groups of a pattern; null if a text does not match."""
        compiled = self.pattern(pattern)
        if not compiled.groups:
            raise Refusal(f"capture(): {pattern!r} names no group, such as (?P<word>\\w+)")
        self._fuel.burn(_OBJECT)
        return compiled.groups_of(value, self._fuel) if isinstance(value, str) else None

    @signature({"types": []})
    def _func_plain_text(self, value: Any) -> Any:
        """Return the text of HTML, or of a tree of rich text, in its order, a block a line."""
        charge(value, self._fuel, 2)
        return text_of(value) or None

    @signature()
    def _func_uniq(self) -> list[dict[str, Any]]:
        """Return the lines of a text, or the elements of an array, with how often each occurs."""
        value = self.current
        charge(value, self._fuel, 2)
        parts = value.removesuffix("\n").split("\n") if isinstance(value, str) else value
        if not isinstance(parts, list):
            raise Refusal("uniq() applies to a text or an array: items[].state | uniq()")
        keys = [part if type(part) is str else encode(part) for part in parts]
        counts, values = Counter(keys), dict(zip(keys, parts, strict=True))
        self._fuel.burn(_PART * len(parts) + _OBJECT * len(counts))
        name = "text" if isinstance(value, str) else "value"
        return [{"count": n, name: values[key]} for key, n in counts.most_common()]

    @signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_unnest(self, array: list[Any], inner: Any) -> list[Any]:
        """Return for each element a copy for each of its inner ones, in place of their array."""
        names = path_of(inner.expression)
        if not names:
            raise Refusal("unnest(streams, &values): the second is the name of the inner array")
        rows = []
        for element in array:
            values = inner.visit(inner.expression, element)
            values = values if isinstance(values, list) or values is None else [values]
            for value in values or ():
                self._fuel.burn(_OBJECT + 2 * len(element))
                rows.append(_with(element, names, value))
        return rows

    @signature({"types": ["array", "object"]}, {"types": ["expref"]})
    def _func_nodes(self, top: Any, inner: Any) -> list[Any]:
        """Return all objects of a tree as rows, level by level; see `shapes`."""
        names = path_of(inner.expression)
        if len(names) != 1:
            raise Refusal("nodes(items, &children): the second is the member with those below")
        rows = []
        for node in nodes(top, names[0]):
            self._fuel.burn(_OBJECT + 2 * len(node) + (len(node["at"]) >> 4))
            rows.append(node)
        return rows

    def pattern(self, text: str) -> Pattern:
        raise NotImplementedError

    def _null(self, remark: str) -> None:
        if self.kinds is not None:
            self.kinds.say(remark)


def _with(element: dict[str, Any], names: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return a copy of an object with a value at a path."""
    name, *others = names
    inner = element.get(name)
    if others:
        value = _with(inner if isinstance(inner, dict) else {}, tuple(others), value)
    return {**element, name: value}
