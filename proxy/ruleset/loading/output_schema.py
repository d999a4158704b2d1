"""Checks of an `output_schema`: a JSON Schema that the proxy and its clients can use.

Clients receive it in tools/list, and some reject the whole list for one unreadable schema.
"""

import re
import warnings
from collections.abc import Iterator
from typing import Any

from proxy.document.fuel import Fuel
from proxy.document.patterns import Pattern, PatternError
from proxy.errors import OptionError, did_you_mean
from proxy.schema import keywords
from proxy.schema.references import (
    DEFINITIONS,
    DYNAMIC,
    HOLDS_LIST,
    HOLDS_NAMED,
    HOLDS_ONE,
    Schema,
    Unclear,
    pointer,
    target,
)
from proxy.schema.violations import TYPES, Checker, Violation

At = tuple[str | int, ...]

# Keywords that annotate a schema rather than constrain a value, including those of OpenAPI.
_NOTES = {
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "discriminator",
    "else",
    "example",
    "examples",
    "externalDocs",
    "maxContains",
    "minContains",
    "nullable",
    "readOnly",
    "then",
    "title",
    "writeOnly",
    "xml",
}
# RE2 syntax that is not in ECMA-262, which clients in JavaScript use for patterns.
_FOREIGN = re.compile(r"\\[AzQE]|\(\?(?!:)|\[\[:")


def problems(schema: Schema) -> list[OptionError]:
    """Return every mistake in `schema`, each with its path."""
    found = list(_root(schema))
    if any(each.at[:1] == ("$schema",) for each in found):
        return found
    try:
        judge = Checker(keywords.metaschema(keywords.dialect(schema)))
        found += [_mistake(schema, each) for each in judge.violations(schema, Fuel())]
        places = {each.at for each in found}
        found += [each for each in _Walk(schema).schema(schema, ()) if each.at not in places]
    except RecursionError:
        found.append(OptionError((), "nested too deeply"))
    return found


def _root(schema: Schema) -> Iterator[OptionError]:
    kind = schema.get("type")
    if kind is None:
        yield OptionError((), "the root needs 'type: object', which clients ask for")
    elif isinstance(kind, list):
        yield OptionError(("type",), "the root is an object for every client; write type: object")
    elif isinstance(kind, str) and kind in TYPES.keys() - {"object"}:
        yield OptionError(("type",), f"the root is an object for every client, not {kind!r}")
    if schema.get("nullable") is True:
        yield OptionError(("nullable",), "the root is an object for every client, never null")
    dialect = schema.get("$schema", keywords.DIALECT)
    if not isinstance(dialect, str) or dialect.removesuffix("#") not in keywords.DIALECTS:
        known = " and ".join(keywords.DIALECTS)
        yield OptionError(("$schema",), f"unknown dialect {dialect!r}; known: {known}")


def _mistake(schema: Schema, found: Violation) -> OptionError:
    """Return the mistake that a violation of the metaschema reports."""
    value: Any = schema
    for step in found.path:
        value = value[step]
    words = [step for step in found.path if isinstance(step, str)]
    how = found.message
    if words[-1:] == ["type"] and words[-2:-1] != ["properties"] and not isinstance(value, list):
        advice = did_you_mean(value, TYPES) if isinstance(value, str) else ""
        how = f"{value!r} is no type{advice}"
        if value is None:
            how = "null is no type; quote it: 'null'"
    return OptionError(found.path, f"{words[-1]}: {how}")


_FARTHEST = 100  # references followed from one reference back to itself


class _Walk:
    """Walks the schemas inside a schema, which may hold any values."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.checked = keywords.metaschema(keywords.dialect(root))["properties"].keys()

    def schema(self, node: Any, at: At) -> Iterator[OptionError]:
        """Yield the mistakes in the schema at `at` and in those inside it."""
        if not isinstance(node, dict):
            return
        for word, value in node.items():
            here = (*at, word)
            if word in _CHECKS:
                yield from (
                    OptionError(here, f"{word}: {each}") for each in _CHECKS[word](self, value)
                )
            if at and word == "$schema":
                yield OptionError(here, "'$schema' can stand at the root only", True)
            elif word in DYNAMIC or (at and word == "$id"):
                yield OptionError(
                    here, f"{word!r} cannot stand here; name schemas under $defs", True
                )
            elif meant := self.misspelt(word):
                yield OptionError(here, f"unknown keyword {word!r}{meant}", True)
            for inner, place in _inner(word, value, here):
                yield from self.schema(inner, place)
        yield from self._names(node, at)

    def misspelt(self, word: str) -> str:
        """Return advice if `word` is like a known keyword; other words may be custom keywords."""
        known = word in self.checked or word in _NOTES or word.startswith("x-")
        return "" if known else did_you_mean(word, self.checked)

    def _names(self, node: Schema, at: At) -> Iterator[OptionError]:
        """Yield the mistakes about property names in one schema."""
        own, patterns = node.get("properties", {}), node.get("patternProperties", {})
        for text in patterns if isinstance(patterns, dict) else ():
            for wrong in _pattern(self, text):
                yield OptionError((*at, "patternProperties", text), wrong, True)
        required = node.get("required")
        closed = node.get("additionalProperties") is False and not patterns
        if closed and isinstance(own, dict) and isinstance(required, list):
            for position, name in enumerate(required):
                if isinstance(name, str) and name not in own:
                    said = f"required: {name!r} is none of the properties{did_you_mean(name, own)}"
                    yield OptionError((*at, "required", position), said)

    def leads_nowhere(self, reference: str) -> bool:
        """Return True if a reference leads back to itself before any value is checked.

        Return False if that takes over _FARTHEST references: the library then fails at the check.
        """
        trail: set[str] = set()
        waiting: list[Any] = [{"$ref": reference}]
        while waiting and len(trail) <= _FARTHEST:
            node = waiting.pop()
            if not isinstance(node, dict):
                continue
            held = node.get("$ref")
            if isinstance(held, str):
                if held == reference and trail:
                    return True
                if held not in trail:
                    trail.add(held)
                    try:
                        waiting.append(target(self.root, held))
                    except Unclear:
                        return False
            for word in _IN_PLACE & node.keys():
                value = node[word]
                waiting += value if isinstance(value, list) else [value]
        return False


# Keywords whose schemas apply to the same value as the schema around them.
_IN_PLACE = {"allOf", "anyOf", "else", "if", "not", "oneOf", "then"}


def _inner(word: str, value: Any, at: At) -> Iterator[tuple[Any, At]]:
    if word in HOLDS_NAMED and isinstance(value, dict):
        yield from ((inner, (*at, name)) for name, inner in value.items())
    elif word in HOLDS_LIST and isinstance(value, list):
        yield from ((inner, (*at, position)) for position, inner in enumerate(value))
    elif word in HOLDS_ONE:
        yield value, at


def _pattern(walk: _Walk, text: Any) -> Iterator[str]:
    if not isinstance(text, str):
        return
    try:
        Pattern(text)
    except PatternError as error:
        yield str(error)
        return
    foreign = _FOREIGN.search(text.replace(r"\\", "--"))
    if foreign is not None:
        yield f"{text!r} has {foreign[0]!r}, which clients in JavaScript cannot read"
        return
    try:
        keywords.compiled({"pattern": text})
    except ValueError:
        yield f"{text!r} is nothing that clients in JavaScript can read"
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(text)
    except re.error as error:
        yield f"{text!r} is nothing that clients in Python can read: {error}"


def _reference(walk: _Walk, held: Any) -> Iterator[str]:
    if not isinstance(held, str):
        return
    if not held.startswith("#"):
        yield f"{held!r} is outside of this schema; put it under $defs"
        return
    try:
        target(walk.root, held)
    except Unclear:
        known = [
            pointer(words, name)
            for words in DEFINITIONS
            if isinstance(walk.root.get(words), dict)
            for name in walk.root[words]
        ]
        yield f"nothing stands at {held!r}{did_you_mean(held, known)}"
        return
    if walk.leads_nowhere(held):
        yield f"{held!r} leads back to itself"


def _nullable(walk: _Walk, value: Any) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"expected true or false, found {value!r}"


_CHECKS = {"$ref": _reference, "nullable": _nullable, "pattern": _pattern}
