"""Checks values against a JSON Schema, and describes in plain words how they violate it.

The library only tells if a value fits a schema: it would explore alternatives that contain each
other in exponential time. So the search for violations walks the schema here, one at a time.
"""

import json
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice
from time import perf_counter_ns
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.names import label
from mcp_abridge.errors import did_you_mean
from mcp_abridge.schema.keywords import DIALECT, MASK, compiled, compiled_parts
from mcp_abridge.schema.references import (
    HOLDS_LIST,
    HOLDS_NAMED,
    HOLDS_ONE,
    NOTES,
    Schema,
    keys,
    lacking,
    pointer,
    target,
)

LIMIT = 1000  # violations reported of one value

TYPES = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
"""The types of JSON Schema, and the noun for a value of each."""

_LONGEST = 40  # characters of a value that are shown

# The keywords of which the library is asked with all that is in them.
_HOLDING = HOLDS_LIST | HOLDS_NAMED | HOLDS_ONE | {"$ref", "minContains", "maxContains"}

Location = tuple[str | int, ...]


class Violation(Struct, frozen=True):
    """A place in a value that does not fit a schema: the keyword that it breaks, and how.

    `types` are the types that were expected, if the value has another one.
    """

    path: Location
    keyword: str
    message: str
    types: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The path and the message; of upstream text, never more than a short excerpt."""
        return f"{_spelled(self.path)}: {self.message}"


class Checker:
    """A JSON Schema that values are checked against."""

    def __init__(self, schema: Schema) -> None:
        """Prepare a valid schema without references to elsewhere. Raises ValueError."""
        self.root = schema
        self.whole = compiled(schema)
        self._leaves: dict[str, Any] = {}

    @cached_property
    def parts(self) -> Any:
        return compiled_parts(self.root)

    def violations(self, value: Any, fuel: Fuel) -> Iterator[Violation]:
        """Yield the violations of a value of the types of `decoded`; at most LIMIT.

        Raises OutOfFuel if that takes more time than there is fuel.
        """
        search = _Search(self, fuel)
        if not search.fits(self.whole, value):
            try:
                yield from dict.fromkeys(islice(search.violations("#", value), LIMIT))
            except RecursionError:
                yield Violation((), "depth", "does not fit, and is too deep to say where")

    def leaves(self, at: str, node: Schema) -> Any:
        """Return the validator for the keywords of a schema that hold no schemas."""
        if at not in self._leaves:
            words = {"$schema": self.root.get("$schema", DIALECT)}
            self._leaves[at] = compiled(words | lacking(node, _HOLDING))
        return self._leaves[at]


def decoded(raw: bytes) -> Any:
    """Decode JSON for a Checker: a number that is no integer is a Decimal, as it is spelled."""
    from decimal import Decimal

    try:
        return msgspec.json.Decoder(float_hook=Decimal).decode(raw)
    except msgspec.ValidationError:  # an integer of thousands of digits
        return json.loads(raw, parse_float=Decimal, parse_int=Decimal)


class _Search(Struct, frozen=True):
    """One search for violations; it remembers why alternatives did not fit.

    Alternatives that contain each other lead to a value in exponentially many ways.
    """

    checker: Checker
    fuel: Fuel
    reasons: dict[tuple[str, int], Violation] = {}

    def fits(self, validator: Any, value: Any) -> bool:
        start_ns = perf_counter_ns()
        fitting: bool = validator.is_valid(value)
        self.fuel.burn_since(start_ns)
        return fitting

    def violations(self, at: str, value: Any) -> Iterator[Violation]:
        """Yield the violations of a value that does not fit; their paths begin at the value.

        `at` is the reference to the schema.
        """
        node = target(self.checker.root, at)
        if isinstance(node, bool):
            yield Violation((), "false", f"nothing may stand here, found {_excerpt(value)}")
            return
        every = self._all(at, node, value)
        yield next(every, None) or _vague(_HOLDING, node, value)
        yield from every

    def _all(self, at: str, node: Schema, value: Any) -> Iterator[Violation]:
        if "$ref" in node:
            yield from self._inside(pointer(*keys(node["$ref"])), value)
        yield from self._own(at, node, value)
        for number in range(len(node.get("allOf", ()))):
            yield from self._inside(f"{at}/allOf/{number}", value)
        if "if" in node:
            word = "then" if self._fits(f"{at}/if", value) else "else"
            yield from self._inside(f"{at}/{word}", value) if word in node else ()
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                yield from self._alternatives(at, keyword, len(node[keyword]), value)
        if isinstance(value, dict):
            yield from self._members(at, node, value)
        elif isinstance(value, list):
            first = len(node.get("prefixItems", ()))
            for index, element in enumerate(value):
                place = f"prefixItems/{index}" if index < first else "items"
                yield from self._inside(f"{at}/{place}", element, index)

    def _own(self, at: str, node: Schema, value: Any) -> Iterator[Violation]:
        start_ns = perf_counter_ns()
        try:
            errors = list(self.checker.leaves(at, node).iter_errors(value))
        except ValueError:  # an integer of thousands of digits
            yield _vague(node.keys() - _HOLDING - NOTES, node, value)
            return
        self.fuel.burn_since(start_ns)
        yield from (violation_of(error, value) for error in errors)

    def _alternatives(self, at: str, keyword: str, count: int, value: Any) -> Iterator[Violation]:
        """Yield the violation of the alternative that was meant, or of the keyword itself."""
        places = [f"{at}/{keyword}/{number}" for number in range(count)]
        fitting = sum(self._fits(place, value) for place in places)
        if fitting == 1 or (fitting and keyword == "anyOf"):
            return
        if fitting:
            yield Violation((), keyword, f"{_excerpt(value)} fits more than one alternative")
            return
        for place in places:
            if (place, id(value)) not in self.reasons:  # no part of it is freed meanwhile
                self.reasons[place, id(value)] = next(self.violations(place, value))
        reasons = [self.reasons[place, id(value)] for place in places]
        others = [each for each in reasons if each.path or not each.types]
        if not others:
            types = tuple(dict.fromkeys(name for each in reasons for name in each.types))
            yield Violation((), "type", _of_type(types, value), types)
            return
        likeliest, *more = sorted(others, key=_closeness, reverse=True)
        if not more or _closeness(more[0]) < _closeness(likeliest):
            yield likeliest
        else:
            reason = likeliest.text if likeliest.path else likeliest.message
            message = f"{_excerpt(value)} fits none of the {count} alternatives: {reason}"
            yield Violation((), keyword, message)

    def _members(self, at: str, node: Schema, value: dict[str, Any]) -> Iterator[Violation]:
        declared, rest = node.get("properties", {}), node.get("additionalProperties", True)
        for name in declared:
            if name in value:
                yield from self._inside(f"{at}{pointer('properties', name)[1:]}", value[name], name)
        for name in value if "patternProperties" not in node else ():
            if name in declared:
                continue
            if rest is False:
                yield Violation((name,), "additionalProperties", "is none of the properties")
            elif rest is not True:
                yield from self._inside(f"{at}/additionalProperties", value[name], name)

    def _inside(self, at: str, value: Any, *steps: str | int) -> Iterator[Violation]:
        if not self._fits(at, value):
            for each in self.violations(at, value):
                yield replace(each, path=(*steps, *each.path))

    def _fits(self, at: str, value: Any) -> bool:
        validator = self.checker.parts.get(at)
        return validator is None or self.fits(validator, value)


def violation_of(error: Any, value: Any) -> Violation:
    """Return an error of the library about a value, in our own words if these say more."""
    keyword, details = error.schema_path[-1], error.kind.as_dict()
    if "property" in details:
        return Violation((details["property"],), keyword, "is missing")
    if "types" in details:
        types = tuple(details["types"])
        return Violation((), keyword, _of_type(types, value), types)
    if "options" in details or "expected_value" in details:
        options = details.get("options") or [details["expected_value"]]
        return Violation((), keyword, _one_of(options, value))
    return Violation((), keyword, error.message.replace(MASK, _excerpt(value)))


def _closeness(reason: Violation) -> tuple[int, bool]:
    """Return how far an alternative fits; one of another constant is meant least."""
    return len(reason.path), reason.keyword not in ("const", "enum")


def _vague(keywords: Collection[str], node: Schema, value: Any) -> Violation:
    words = " or ".join(repr(word) for word in node if word in keywords)
    return Violation((), "schema", f"{_excerpt(value)} breaks {words}")


def _of_type(expected: tuple[str, ...], value: Any) -> str:
    nouns = [TYPES[name] for name in sorted(expected, key=("boolean", "null").__contains__)]
    return f"expected {' or '.join(nouns)}, found {_excerpt(value)}"


def _one_of(expected: list[Any], value: Any) -> str:
    texts = [each for each in expected if isinstance(each, str)]
    advice = did_you_mean(value, texts) if isinstance(value, str) else ""
    options = ", ".join([*map(_excerpt, expected[:10]), *(["…"] if len(expected) > 10 else [])])
    some = f"one of {options}" if len(expected) > 1 else options
    return f"expected {some}, found {_excerpt(value)}{advice}"


def _excerpt(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST else repr(value[:_LONGEST]) + "…"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _spelled(path: Location) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{label(step)}" for step in path)
    return "".join(steps).removeprefix(".") or "the document"
