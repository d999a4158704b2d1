"""Checks values against a JSON Schema, and describes in plain words how they violate it.

The library only tells if a value fits a schema: it would explore alternatives that contain each
other in exponential time. So the search for violations walks the schema here, one at a time.
"""

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from time import perf_counter_ns
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.errors import did_you_mean
from mcp_abridge.schema.keywords import DIALECT, compiled, dialect
from mcp_abridge.schema.references import Schema, Subschema, bundle, split_definitions, target

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

Steps = tuple[str | int, ...]


class Violation(Struct, frozen=True):
    """A place in a value that does not fit a schema: the keyword that it breaks, and how.

    `types` are the types that were expected, if the value has another one.
    """

    path: Steps
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
        """Prepare a valid schema without references to elsewhere. Raises Unsupported."""
        self.root = bundle(schema)
        self.head, self.body = split_definitions(self.root)
        # By the id of a schema, which stays as long as the Checker.
        self._validators: dict[int, tuple[Schema, Any]] = {}
        self._singles: dict[tuple[int, str], Schema] = {}
        self.lone_references = dialect(schema) != DIALECT

    def violations(self, value: Any, fuel: Fuel) -> Iterator[Violation]:
        """Yield the violations of a value of the types of `decoded`; at most LIMIT.

        Raises OutOfFuel if that takes more time than there is fuel.
        """
        search = _Search(self, fuel)
        if not search.fits(self.body, value):
            try:
                yield from dict.fromkeys(islice(search.violations(self.body, value), LIMIT))
            except RecursionError:
                yield Violation((), "depth", "does not fit, and is too deep to say where")

    def single(self, node: Schema, keyword: str) -> Schema:
        key = id(node), keyword
        if key not in self._singles:
            single: Schema = {keyword: node[keyword]}
            if keyword == "contains":
                single["minContains"] = node.get("minContains", 1)
            elif keyword == "maxContains":
                single |= {"contains": node.get("contains", True), "minContains": 0}
            self._singles[key] = single
        return self._singles[key]

    def validator(self, node: Schema) -> Any:
        if id(node) not in self._validators:
            self._validators[id(node)] = node, compiled(self.head | node)
        return self._validators[id(node)][1]


def decoded(raw: bytes) -> Any:
    """Decode JSON for a Checker: a number that is no integer is a Decimal, as it is spelled."""
    from decimal import Decimal

    try:
        return msgspec.json.Decoder(float_hook=Decimal).decode(raw)
    except msgspec.ValidationError:  # an integer of thousands of digits
        return json.loads(raw, parse_float=Decimal, parse_int=Decimal)


class _Search:
    """One search for violations; it remembers why alternatives did not fit.

    Alternatives that contain each other lead to a value in exponentially many ways.
    """

    def __init__(self, checker: Checker, fuel: Fuel) -> None:
        self._checker = checker
        self._fuel = fuel
        self._reasons: dict[tuple[int, int], Violation] = {}

    def fits(self, node: Subschema, value: Any) -> bool:
        if isinstance(node, bool):
            return node
        start_ns = perf_counter_ns()
        fitting: bool = self._checker.validator(node).is_valid(value)
        self._fuel.burn_since(start_ns)
        return fitting

    def violations(self, node: Subschema, value: Any) -> Iterator[Violation]:
        """Yield the violations of a value that does not fit; their paths begin at the value."""
        if isinstance(node, bool):
            yield Violation((), "false", f"nothing may stand here, found {_excerpt(value)}")
            return
        keyword, parts = "unevaluatedProperties", "members"
        if isinstance(value, list):
            keyword, parts = "unevaluatedItems", "elements"
        rest = Violation((), keyword, f"has {parts} that no schema takes")
        every = self._all(node, value)
        yield next(every, rest)
        yield from every

    def _all(self, node: Schema, value: Any) -> Iterator[Violation]:
        if "$ref" in node and self._checker.lone_references:
            node = {"$ref": node["$ref"]}  # in draft-07, keywords beside it do not count
        yield from self._own(node, value)
        for inner in self._in_place(node, value):
            if not self.fits(inner, value):
                yield from self.violations(inner, value)
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                yield from self._alternatives(keyword, node[keyword], value)
        if isinstance(value, dict):
            yield from _missing(node, value)
            yield from self._members(node, value)
        elif isinstance(value, list):
            yield from self._elements(node, value)

    def _own(self, node: Schema, value: Any) -> Iterator[Violation]:
        for keyword in [each for each in node if each in _MESSAGES]:
            single = self._checker.single(node, keyword)
            if not self.fits(single, value):
                expected = single["minContains"] if keyword == "contains" else node[keyword]
                types = tuple(_listed(expected)) if keyword == "type" else ()
                yield Violation((), keyword, _MESSAGES[keyword](expected, value), types)

    def _in_place(self, node: Schema, value: Any) -> Iterator[Subschema]:
        if "$ref" in node:
            yield target(self._checker.root, node["$ref"])
        yield from node.get("allOf", ())
        if "if" in node:
            yield node.get("then" if self.fits(node["if"], value) else "else", True)
        for keyword in ("dependentSchemas", "dependencies"):
            for name, inner in node.get(keyword, {}).items():
                if isinstance(value, dict) and name in value and not isinstance(inner, list):
                    yield inner

    def _alternatives(
        self, keyword: str, branches: list[Subschema], value: Any
    ) -> Iterator[Violation]:
        """Yield the violation of the alternative that was meant, or of the keyword itself."""
        fitting = sum(self.fits(branch, value) for branch in branches)
        if fitting == 1 or (fitting and keyword == "anyOf"):
            return
        number = "more than one" if fitting else "none"
        vague = Violation((), keyword, f"{_excerpt(value)} fits {number} of the alternatives")
        if fitting:
            yield vague
            return
        for branch in branches:
            if (id(branch), id(value)) not in self._reasons:
                self._reasons[id(branch), id(value)] = next(self.violations(branch, value))
        # No part of either is freed during the search.
        reasons = [self._reasons[id(branch), id(value)] for branch in branches]
        others = [each for each in reasons if each.keyword != "type" or each.path]
        if not others:
            types = tuple(dict.fromkeys(name for each in reasons for name in each.types))
            yield Violation((), "type", _of_type(types, value), types)
            return
        likeliest, *more = sorted(others, key=_closeness, reverse=True)
        alone = not more or _closeness(more[0]) < _closeness(likeliest)
        yield likeliest if alone else vague

    def _members(self, node: Schema, value: dict[str, Any]) -> Iterator[Violation]:
        declared: Schema = node.get("properties", {})
        patterns: Schema = node.get("patternProperties", {})
        rest = node.get("additionalProperties", True)
        for name, inner in declared.items():
            if name in value:
                yield from self._below(name, inner, value[name])
        for name, member in value.items():
            if not self.fits(node.get("propertyNames", True), name):
                yield from self.violations(node["propertyNames"], name)
            matches = [text for text in patterns if self.fits(_of_pattern(text), name)]
            for text in matches:
                yield from self._below(name, patterns[text], member)
            if matches or name in declared:
                continue
            if rest is False:
                yield Violation((name,), "additionalProperties", "is none of the properties")
            else:
                yield from self._below(name, rest, member)

    def _elements(self, node: Schema, value: list[Any]) -> Iterator[Violation]:
        keyword, first = "items", node.get("prefixItems", [])
        if isinstance(node.get("items"), list):  # draft-07
            keyword, first = "additionalItems", node["items"]
        rest = node.get(keyword, True)
        for index, element in enumerate(value):
            if index < len(first):
                yield from self._below(index, first[index], element)
            elif rest is False:
                yield Violation((), keyword, "nothing more may stand in this array")
                return
            else:
                yield from self._below(index, rest, element)

    def _below(self, step: str | int, node: Subschema, value: Any) -> Iterator[Violation]:
        if not self.fits(node, value):
            for each in self.violations(node, value):
                yield replace(each, path=(step, *each.path))


def _closeness(reason: Violation) -> tuple[int, bool]:
    """Return how far an alternative fits; one of another constant is meant least."""
    return len(reason.path), reason.keyword not in ("const", "enum")


@lru_cache
def _of_pattern(text: str) -> Schema:
    return {"pattern": text}


def _missing(node: Schema, value: dict[str, Any]) -> Iterator[Violation]:
    for name in node.get("required", ()):
        if name not in value:
            yield Violation((name,), "required", "is missing")
    for keyword in ("dependentRequired", "dependencies"):
        for name, others in node.get(keyword, {}).items():
            for other in others if name in value and isinstance(others, list) else ():
                if other not in value:
                    yield Violation((other,), keyword, f"is missing beside {name!r}")


def _of_type(expected: Any, value: Any) -> str:
    nouns = dict.fromkeys(TYPES.get(name, name) for name in _listed(expected))
    return f"expected {' or '.join(nouns)}, found {_excerpt(value)}"


def _one_of(expected: list[Any], value: Any) -> str:
    texts = [each for each in expected if isinstance(each, str)]
    advice = did_you_mean(value, texts) if isinstance(value, str) else ""
    options = ", ".join([*map(_excerpt, expected[:10]), *(["…"] if len(expected) > 10 else [])])
    some = f"one of {options}" if len(expected) > 1 else options
    return f"expected {some}, found {_excerpt(value)}{advice}"


Message = Callable[[Any, Any], str]


def _template(text: str) -> Message:
    return lambda expected, value: text.format(_excerpt(value), expected)


def _count(part: str, than: str) -> Message:
    return lambda limit, value: (
        f"has {len(value) or 'no'} {part}{'s' * (len(value) != 1)}, {than} than {limit}"
    )


# The messages for a value that breaks a keyword, by the keyword's value and that value.
_MESSAGES: dict[str, Message] = {
    "const": lambda expected, value: _one_of([expected], value),
    "contains": _template("fewer than {1} elements are such as 'contains' asks for"),
    "enum": _one_of,
    "exclusiveMaximum": _template("{} is not less than {}"),
    "exclusiveMinimum": _template("{} is not more than {}"),
    "format": _template("{} is not of the format {!r}"),
    "maxContains": _template("more than {1} elements are such as 'contains' asks for"),
    "maxItems": _count("element", "more"),
    "maxLength": _count("character", "more"),
    "maxProperties": _count("member", "more"),
    "maximum": _template("{} is greater than the maximum of {}"),
    "minItems": _count("element", "fewer"),
    "minLength": _count("character", "fewer"),
    "minProperties": _count("member", "fewer"),
    "minimum": _template("{} is less than the minimum of {}"),
    "multipleOf": _template("{} is not a multiple of {}"),
    "not": _template("{} is what it must not be"),
    "pattern": _template("{} does not match {!r}"),
    "type": _of_type,
    "uniqueItems": _template("has an element twice"),
}


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _excerpt(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST else repr(value[:_LONGEST]) + "…"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _spelled(path: Steps) -> str:
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            plain = step.replace("-", "_").isidentifier() and len(step) <= _LONGEST
            text += ("." if text else "") + (step if plain else _excerpt(step))
    return text or "the document"
