"""The value of a view, by the stock jmespath library over plain values.

It knows what views add as far as notices use it: slices of texts, a slice at the end that keeps
nulls, `{a, b.c}`, and a few functions.
"""

import json
import re
from collections import Counter
from typing import Any

import jmespath
from jmespath import functions

from tests.looks.shapes import nodes, with_rows

UNKNOWN: Any = object()
_WINDOW = re.compile(r"(.*?)\[(\d+):(\d+)\](\.\{[^{}]*\}|\.\[[^][]*\]|)", re.DOTALL)
_MEMBERS = re.compile(r"\{([\w.]+(?:, [\w.]+)*)\}")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_ROWS = re.compile(r"\b(?:rows|records)\b")
_LINES = re.compile(r"(?:(.*) \| )?lines\((\d+), (\d+)\)", re.DOTALL)


class _Functions(functions.Functions):
    @functions.signature({"types": ["object"]})
    def _func_entries(self, value: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"key": name, "value": member} for name, member in value.items()]

    @functions.signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_unnest(self, array: list[Any], inner: Any) -> list[dict[str, Any]]:
        name = inner.expression["value"]
        return [each | {name: value} for each in array for value in each[name]]

    @functions.signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_nodes(self, array: list[Any], inner: Any) -> list[dict[str, Any]]:
        return nodes(array, inner.expression["value"])

    @functions.signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_count_by(self, array: list[Any], by: Any) -> dict[str, int]:
        keys = (by.visit(by.expression, each) for each in array)
        counts = Counter(key if isinstance(key, str) else dumps(key) for key in keys)
        return dict(counts.most_common())

    @functions.signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_max_by(self, array: list[Any], by: Any) -> Any:
        values = [number(by.visit(by.expression, each)) for each in array]
        most = max((value for value in values if value is not None), default=None)
        return None if most is None else array[values.index(most)]

    @functions.signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_sort_by(self, array: list[Any], by: Any) -> Any:
        keys = [by.visit(by.expression, each) for each in array]
        some = [key for key in keys if key is not None]
        if all(isinstance(key, str) for key in some) and any(number(key) is None for key in some):
            pairs = [(key, n) for n, key in enumerate(keys) if key is not None]
        else:
            pairs = [(key, n) for n, each in enumerate(keys) if (key := number(each)) is not None]
        return [array[n] for _, n in sorted(pairs)]


def number(value: Any) -> float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def value_of(whole: Any, text: str, view: str) -> Any:
    """Return the value of a view of a document; UNKNOWN if this is beyond the oracle.

    `text` is the text that the document is, or that it was read from.
    """
    view = view.replace("_abridged_of_server", "_abridged")  # as an answer spells it
    if view in ("all", "help") or (whole is UNKNOWN and view != "text" and "text[" not in view):
        return UNKNOWN
    if part := _LINES.fullmatch(view):
        place = value_of(whole, text, part[1]) if part[1] else text
        first, last = int(part[2]), int(part[3])
        return "".join(place.splitlines(keepends=True)[first - 1 : last])
    if window := _WINDOW.fullmatch(view):
        if not window[1] and isinstance(whole, dict):
            whole = text  # an object has no slices
        path = window[1].removesuffix(" | ")
        read = search(path, whole) if path in ("all", "help") else None  # a member of that name
        place = read or value_of(whole, text, path) if path else whole
        if not isinstance(place, str | list):
            return UNKNOWN
        after = place[int(window[2]) : int(window[3])]
        return search(f"[*]{window[4]}", after) if window[4] else after
    if view == "text" and not (isinstance(whole, dict) and "text" in whole):
        return text
    return search(view, whole)


def search(view: str, value: Any) -> Any:
    """Return the value of an expression; UNKNOWN if this is beyond the oracle."""
    view = _MEMBERS.sub(lambda match: f"{{{_hash(match[1])}}}", view)
    value = with_rows(value) if _ROWS.search(view) else value
    try:
        return jmespath.search(view, value, jmespath.Options(custom_functions=_Functions()))
    except jmespath.exceptions.JMESPathError:
        return UNKNOWN


def _hash(members: str) -> str:
    return ", ".join(f"{path.rpartition('.')[2]}: {path}" for path in members.split(", "))
