"""Validation of JSON Schema: the jsonschema library, with some keywords replaced.

No reference is ever fetched, patterns run on the linear-time engine, and no keyword takes quadratic
time in the size of a value.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

from proxy.document.fuel import Fuel
from proxy.document.patterns import Pattern
from proxy.schema.formats import FORMATS
from proxy.schema.references import Schema, Subschema

DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
}
"""The supported dialects, without the empty fragment that some schemas append."""

DIALECT = next(iter(DIALECTS))


def checker(schema: Schema) -> Any:
    """Return the library's validator for `schema`, a valid schema of a known dialect.

    >>> [error.message for error in checker({"maximum": 5}).iter_errors(6)]
    ['6 is greater than the maximum of 5']
    """
    from referencing import Registry

    # With a `$schema` inside, the library would use its own keywords, not those of this module.
    body = {word: value for word, value in schema.items() if word != "$schema"}
    return _own(_dialect(schema))(body, registry=Registry(), format_checker=_formats())


def judge(schema: Schema) -> Any:
    """Return the library's validator of the meta-schema, which checks `schema` itself."""
    kind = _library(_dialect(schema))
    return kind(kind.META_SCHEMA)


def checked(schema: Schema) -> frozenset[str]:
    """Return the keywords that constrain a value in the dialect of `schema`."""
    return frozenset(_library(_dialect(schema)).VALIDATORS)


def errors(checker: Any, value: Any, fuel: Fuel | None = None) -> Iterator[Any]:
    """Yield the library's errors for a plain value, in time that its depth does not multiply.

    If alternatives contain each other, as many ways lead down to a value as there are combinations
    of them; so each reference is checked against a value only once.
    """
    from copy import copy

    if checker.format_checker is not None:
        # The format checker is the only own object that the library passes to every subvalidator.
        formats = copy(checker.format_checker)
        formats.known = {}
        formats.fuel = fuel
        checker = checker.evolve(format_checker=formats)
    yield from checker.iter_errors(value)


def meant(error: Any) -> Any:
    """Return the most relevant error inside `error`; if alternatives failed, of the likeliest."""
    from jsonschema.exceptions import best_match

    return best_match([error])


def _dialect(schema: Schema) -> str:
    named: str = schema.get("$schema", DIALECT)
    return DIALECTS[named.removesuffix("#")]


def _library(dialect: str) -> Any:
    import jsonschema

    return getattr(jsonschema, dialect)


@lru_cache
def _own(dialect: str) -> Any:
    from jsonschema import validators

    base: Any = _library(dialect)
    extend: Any = validators.extend
    own = {word: check for word, check in _KEYWORDS.items() if word in base.VALIDATORS}
    return extend(base, own)


@lru_cache
def _formats() -> Any:
    from jsonschema import FormatChecker

    # Not the library's own formats: which exist depends on the installed packages.
    found = FormatChecker(formats=())
    for name, fits in FORMATS.items():
        found.checks(name)(lambda value, fits=fits: not isinstance(value, str) or fits(value))
    return found


_pattern = lru_cache(Pattern)


def _found(checker: Any, text: str, value: str) -> bool:
    fuel = getattr(checker.format_checker, "fuel", None)
    return _pattern(text).search(value, fuel=fuel) is not None


# Replacements of keywords that the library checks with `re`, in quadratic time, not at all for
# numbers beyond the range of Python, or without naming the member.


def _pattern_of(checker: Any, text: str, value: Any, schema: Schema) -> Iterator[Any]:
    if isinstance(value, str) and not _found(checker, text, value):
        yield _error(f"{value!r} does not match {text!r}")


def _pattern_properties(
    checker: Any, patterns: Schema, value: Any, schema: Schema
) -> Iterator[Any]:
    if isinstance(value, dict):
        for text, inner in patterns.items():
            for name, member in value.items():
                if _found(checker, text, name):
                    yield from checker.descend(member, inner, path=name, schema_path=text)


def _additional_properties(
    checker: Any, inner: Subschema, value: Any, schema: Schema
) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    own = schema.get("properties", {})
    patterns = list(schema.get("patternProperties", ()))
    for name, member in value.items():
        if name in own or any(_found(checker, each, name) for each in patterns):
            continue
        if inner is False:
            yield _error("is none of the properties", name)
        else:
            yield from checker.descend(member, inner, path=name)


def _required(checker: Any, names: list[str], value: Any, schema: Schema) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (_error("is missing", name) for name in names if name not in value)


def _dependent_required(
    checker: Any, names: Mapping[str, list[str]], value: Any, schema: Schema
) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, others in names.items():
            for other in others if name in value else ():
                if other not in value:
                    yield _error(f"is missing beside {name!r}", other)


def _multiple_of(checker: Any, unit: float, value: Any, schema: Schema) -> Iterator[Any]:
    if checker.is_type(value, "number") and not _divides(unit, value):
        yield _error(f"{value} is not a multiple of {unit}")


def _divides(unit: Any, value: Any) -> bool:
    if isinstance(value, float) and not isfinite(value):
        return False  # as clients see it: they read such a number as infinity
    if isinstance(unit, int):
        return bool(value % unit == 0)
    try:
        quotient = value / unit
    except OverflowError:
        quotient = float("inf")
    if isfinite(quotient):
        return bool(quotient.is_integer())
    from fractions import Fraction

    return Fraction(value) % Fraction(unit) == 0


def _unevaluated_items(checker: Any, inner: Subschema, value: Any, schema: Schema) -> Iterator[Any]:
    from jsonschema import _utils

    if isinstance(value, list):
        known = set(_utils.find_evaluated_item_indexes_by_schema(checker, value, schema))
        if any(position not in known for position in range(len(value))):
            yield _error("has elements that no schema takes")


def _unevaluated_properties(
    checker: Any, inner: Subschema, value: Any, schema: Schema
) -> Iterator[Any]:
    from jsonschema import _utils

    if isinstance(value, dict):
        known = set(_utils.find_evaluated_property_keys_by_schema(checker, value, schema))
        if any(name not in known for name in value):
            yield _error("has members that no schema takes")


def _unique_items(checker: Any, wanted: bool, value: Any, schema: Schema) -> Iterator[Any]:
    if wanted and isinstance(value, list) and len(set(map(_identity, value))) < len(value):
        yield _error("has an element twice")


def _identity(value: Any) -> Any:
    """Return a key that is equal for two values if JSON Schema takes them for equal."""
    if isinstance(value, dict):
        return dict, frozenset((name, _identity(member)) for name, member in value.items())
    if isinstance(value, list):
        return list, tuple(map(_identity, value))
    return isinstance(value, bool), value


def _reference(checker: Any, name: str, value: Any, schema: Schema) -> Iterator[Any]:
    known = getattr(checker.format_checker, "known", None)
    if known is None or not isinstance(value, dict | list):
        yield from checker._validate_reference(ref=name, instance=value)
        return
    key = name, id(value)  # no part of the value is freed meanwhile, so ids stay unique
    if key in known:
        if known[key] is not None:
            yield _again(known[key])
        return
    for error in checker._validate_reference(ref=name, instance=value):
        if key not in known:
            known[key] = _again(error)
        yield error
    known.setdefault(key, None)


def _again(error: Any) -> Any:
    """Return a copy of an error without its context: that of alternatives is known already."""
    from jsonschema import ValidationError

    fitted_none = error.validator == "oneOf" and error.context
    return ValidationError(
        error.message,
        validator="anyOf" if fitted_none else error.validator,
        path=tuple(error.relative_path),
        instance=error.instance,
        schema=error.schema,
        validator_value=error.validator_value,
    )


def _error(message: str, *path: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message, path=path)


_KEYWORDS = {
    "$ref": _reference,
    "additionalProperties": _additional_properties,
    "dependentRequired": _dependent_required,
    "multipleOf": _multiple_of,
    "pattern": _pattern_of,
    "patternProperties": _pattern_properties,
    "required": _required,
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated_properties,
    "uniqueItems": _unique_items,
}
