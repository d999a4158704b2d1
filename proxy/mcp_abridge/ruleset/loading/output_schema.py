"""Checks of an `output_schema`: some clients reject a whole tool list for one unreadable schema."""

import re
import warnings
from collections.abc import Iterator
from typing import Any

from mcp_abridge.errors import OptionError, did_you_mean
from mcp_abridge.query.patterns import Pattern, PatternError
from mcp_abridge.schema import keywords, references
from mcp_abridge.schema.references import Schema
from mcp_abridge.schema.violations import TYPES, Location, violation_of

_OPENAPI = {"discriminator", "example", "externalDocs", "nullable", "xml"}
# RE2 syntax that is not in ECMA-262, which clients in JavaScript use for patterns.
_NOT_ECMA = re.compile(r"\\[AzQE]|\(\?(?!:)|\[\[:")


def problems(schema: Schema) -> list[OptionError]:
    """Return every mistake in `schema`, each with its path."""
    mistakes = list(_root(schema))
    if any(each.at[:1] == ("$schema",) for each in mistakes):
        return mistakes
    try:
        validator = keywords.of_schemas(keywords.dialect(schema))
        mistakes += (_no_schema(schema, error) for error in validator.iter_errors(schema))
        mistakes += _Walk(schema).walk(schema, ())
    except RecursionError:
        mistakes.append(OptionError((), "nested too deeply"))
    places = [each.at for each in mistakes]
    return [each for number, each in enumerate(mistakes) if places.index(each.at) == number]


def _root(schema: Schema) -> Iterator[OptionError]:
    if schema.get("type") != "object":
        yield OptionError(("type",), "the root is an object for every client: write type: object")
    if schema.get("nullable") is True:
        yield OptionError(("nullable",), "the root is an object for every client, never null")
    dialect = schema.get("$schema", keywords.DIALECT)
    if not isinstance(dialect, str) or dialect.removesuffix("#") not in keywords.DIALECTS:
        dialects = " and ".join(keywords.DIALECTS)
        yield OptionError(("$schema",), f"unknown dialect {dialect!r}; known: {dialects}")


def _no_schema(schema: Schema, error: Any) -> OptionError:
    while error.kind.name == "anyOf":
        error = max((reasons[0] for reasons in error.kind.context), key=_closeness)
    path, value = tuple(error.instance_path), schema
    for step in path:
        value = value[step]
    names = [step for step in path if isinstance(step, str)]
    message = violation_of(error, value).message
    if names[-1:] == ["type"] and names[-2:-1] != ["properties"] and not isinstance(value, list):
        message = f"{value!r} is no type{did_you_mean(str(value or 'null'), TYPES)}"
    return OptionError(path, f"{names[-1]}: {message}")


def _closeness(error: Any) -> tuple[int, bool]:
    return len(error.instance_path), error.kind.name not in ("enum", "type")


class _Walk:
    def __init__(self, root: Schema) -> None:
        self.root = root
        self.keywords = keywords.words(keywords.dialect(root))
        self.all_keywords = _OPENAPI.union(*map(keywords.words, keywords.DIALECTS))

    def walk(self, node: Any, path: Location) -> Iterator[OptionError]:
        if not isinstance(node, dict):
            return
        for word, value in node.items():
            here = (*path, word)
            if path and word == "$schema":
                yield OptionError(here, "'$schema' can stand at the root only", True)
            elif word in references.DYNAMIC or (path and word == "$id"):
                message = f"{word!r} cannot stand here; name schemas under $defs"
                yield OptionError(here, message, True)
            elif not (word in self.all_keywords or word.startswith("x-")) and (
                advice := did_you_mean(word, self.keywords)
            ):  # other words may be custom keywords
                yield OptionError(here, f"unknown keyword {word!r}{advice}", True)
            elif mistake := self._mistake(word, value):
                yield OptionError(here, f"{word}: {mistake}")
            for inner, inner_path in _inner(word, value, here):
                yield from self.walk(inner, inner_path)
        yield from _names(node, path)

    def _mistake(self, keyword: str, value: Any) -> str | None:
        if keyword == "nullable" and not isinstance(value, bool):
            return f"expected true or false, found {value!r}"
        if keyword not in ("pattern", "$ref") or not isinstance(value, str):
            return None
        if keyword == "pattern":
            return _pattern_mistake(value)
        if not value.startswith("#"):
            return f"{value!r} is outside of this schema; put it under $defs"
        try:
            references.target(self.root, value)
        except references.Unsupported:
            tables = [key for key in references.DEFINITIONS if isinstance(self.root.get(key), dict)]
            names = [references.pointer(key, name) for key in tables for name in self.root[key]]
            return f"nothing stands at {value!r}{did_you_mean(value, names)}"
        return None


def _inner(keyword: str, value: Any, path: Location) -> Iterator[tuple[Any, Location]]:
    if keyword in references.HOLDS_NAMED and isinstance(value, dict):
        yield from ((inner, (*path, name)) for name, inner in value.items())
    elif keyword in references.HOLDS_LIST and isinstance(value, list):
        yield from ((inner, (*path, index)) for index, inner in enumerate(value))
    elif keyword in references.HOLDS_ONE:
        yield value, path


def _names(node: Schema, path: Location) -> Iterator[OptionError]:
    declared, patterns = node.get("properties", {}), node.get("patternProperties", {})
    for text in patterns if isinstance(patterns, dict) else ():
        if mistake := _pattern_mistake(text):
            yield OptionError((*path, "patternProperties", text), mistake, True)
    required = node.get("required")
    closed = node.get("additionalProperties") is False and not patterns
    if closed and isinstance(declared, dict) and isinstance(required, list):
        for index, name in enumerate(required):
            if isinstance(name, str) and name not in declared:
                advice = did_you_mean(name, declared)
                message = f"required: {name!r} is none of the properties{advice}"
                yield OptionError((*path, "required", index), message)


def _pattern_mistake(text: str) -> str | None:
    if match := _NOT_ECMA.search(text.replace(r"\\", "--")):
        return f"{text!r} has {match[0]!r}, which clients in JavaScript cannot read"
    try:
        Pattern(text)
        keywords.compiled({"pattern": text})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(text)
    except PatternError as error:
        return str(error)
    except (ValueError, re.error) as error:
        return f"{text!r} is nothing that clients in JavaScript and Python can read: {error}"
    return None
