"""Describes in plain words how a value violates a JSON Schema: the value, and the expected one."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from msgspec import Struct

from proxy.document.fuel import Fuel
from proxy.document.tree import Number
from proxy.errors import did_you_mean
from proxy.schema import keywords

MOST = 1000  # violations reported of one value

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

_LONGEST = 60  # characters of a value that are shown


class Violation(Struct, frozen=True):
    """A place in a value that does not fit a schema: the keyword that it breaks, and how."""

    path: tuple[str | int, ...]
    keyword: str
    how: str

    @property
    def said(self) -> str:
        """The path and what is wrong there; of upstream text, never more than a short excerpt.

        >>> Violation(("jobs", 3, "job_id"), "required", "is missing").said
        'jobs[3].job_id: is missing'
        """
        return f"{_spelled(self.path)}: {self.how}"


def violations(checker: Any, value: Any, fuel: Fuel | None = None) -> Iterator[Violation]:
    """Yield the violations that `checker`, a library validator, finds in a value; at most MOST.

    The value is plain. Patterns burn `fuel`; raises OutOfFuel if there is not enough.

    >>> from proxy.schema.keywords import checker
    >>> [each.said for each in violations(checker({"required": ["a"]}), {"b": 1})]
    ['a: is missing']
    """
    for error in islice(keywords.errors(checker, value, fuel), MOST):
        yield _violation(keywords.meant(error))


def _violation(error: Any) -> Violation:
    path, keyword = tuple(error.absolute_path), error.validator or "false"
    context = error.context or ()
    if context and all(each.validator == "type" and not each.path for each in context):
        wanted = [word for each in context for word in _listed(each.validator_value)]
        return Violation(path, "type", _of_type(wanted, error.instance))
    return Violation(path, keyword, _WORDS[keyword](error.validator_value, error))


def _of_type(wanted: Any, value: Any) -> str:
    words = dict.fromkeys(TYPES.get(word, word) for word in _listed(wanted))
    return f"expected {' or '.join(words)}, found {_shown(value)}"


def _one_of(wanted: list[Any], value: Any) -> str:
    texts = [each for each in wanted if isinstance(each, str)]
    advice = did_you_mean(value, texts) if isinstance(value, str) else ""
    shown = ", ".join([*map(_shown, wanted[:10]), *(["…"] if len(wanted) > 10 else [])])
    few = f"one of {shown}" if len(wanted) > 1 else shown
    return f"expected {few}, found {_shown(value)}{advice}"


Words = Callable[[Any, Any], str]


def _own(limit: Any, error: Any) -> str:
    message: str = error.message
    return message


def _found(words: str) -> Words:
    return lambda limit, error: words.format(_shown(error.instance), limit)


def _count(what: str, than: str) -> Words:
    def say(limit: Any, error: Any) -> str:
        size = len(error.instance)
        return f"has {size or 'no'} {what[: -1 if size == 1 else None]}, {than} than {limit}"

    return say


# The messages for a value that breaks a keyword, from the keyword's value and the library's error.
_WORDS: dict[str, Words] = {
    "additionalItems": _found("nothing more may stand in this array"),
    "additionalProperties": _own,
    "anyOf": _found("{} fits none of the alternatives"),
    "const": lambda wanted, error: _one_of([wanted], error.instance),
    "contains": _found("too few or too many elements are such as 'contains' asks for"),
    "dependencies": _found("a member is missing that another one asks for"),
    "dependentRequired": _own,
    "enum": lambda wanted, error: _one_of(wanted, error.instance),
    "exclusiveMaximum": _found("{} is not less than {}"),
    "exclusiveMinimum": _found("{} is not more than {}"),
    "false": _found("nothing may stand here, found {}"),
    "format": _found("{} is not of the format {!r}"),
    "items": _found("nothing more may stand in this array"),
    "maxContains": _found("more than {1} elements are such as 'contains' asks for"),
    "maxItems": _count("elements", "more"),
    "maxLength": _count("characters", "more"),
    "maxProperties": _count("members", "more"),
    "maximum": _found("{} is greater than the maximum of {}"),
    "minContains": _found("fewer than {1} elements are such as 'contains' asks for"),
    "minItems": _count("elements", "fewer"),
    "minLength": _count("characters", "fewer"),
    "minProperties": _count("members", "fewer"),
    "minimum": _found("{} is less than the minimum of {}"),
    "multipleOf": _found("{} is not a multiple of {}"),
    "not": _found("{} is what it must not be"),
    "oneOf": lambda wanted, error: (
        f"{_shown(error.instance)} fits "
        f"{'none' if error.context else 'more than one'} of the alternatives"
    ),
    "pattern": _found("{} does not match {!r}"),
    "required": _own,
    "type": lambda wanted, error: _of_type(wanted, error.instance),
    "unevaluatedItems": _found("has elements that no schema takes"),
    "unevaluatedProperties": _found("has members that no schema takes"),
    "uniqueItems": _found("has an element twice"),
}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _shown(value: Any) -> str:
    """Show a value briefly and on one line."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST else repr(value[:_LONGEST]) + "…"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    said = value.spelling if isinstance(value, Number) else str(value)
    return said if len(said) <= _LONGEST else said[:_LONGEST] + "…"


def _spelled(path: tuple[str | int, ...]) -> str:
    """Spell a path as the path language does."""
    said = ""
    for step in path:
        if isinstance(step, int):
            said += f"[{step}]"
        else:
            clear = step.replace("-", "_").isidentifier() and len(step) <= _LONGEST
            said += ("." if said else "") + (step if clear else _shown(step))
    return said or "the document"
