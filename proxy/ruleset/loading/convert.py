"""Converts nodes to the types that frozen Structs declare; reports each value that does not fit.

The Structs are the only description of the contents of a rule file: both the loader and the schema
for editors are based on them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from proxy.document.paths import Path
from proxy.document.patterns import Expression, Pattern
from proxy.document.sizes import size
from proxy.errors import AbridgeError, OptionError, OptionErrors, Problem, did_you_mean, nearest
from proxy.ruleset.loading.jmespath_lint import mistake
from proxy.ruleset.loading.yaml_errors import MAX_PROBLEMS, SourceError, quote, too_many
from proxy.ruleset.loading.yaml_nodes import Node, plain_value
from proxy.transforms import TRANSFORMS

BAD: Any = object()
"""Marks a value whose problem was reported."""

Reader = Callable[["NodeConverter", Node, str], Any]


def _expression(text: str) -> Expression:
    expression = Expression(text)
    wrong = mistake(expression)
    if wrong:
        raise AbridgeError(wrong)
    return expression


# Types that are written as a text: the name of each, and the function that reads it.
TEXTS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    str: ("a text", str),
    Path: ("a path", Path.parse),
    Pattern: ("a regular expression", Pattern),
    Expression: ("a JMESPath expression", _expression),
}
# Wrong words that resemble no known word, and the words they are meant as.
MEANT = {
    "preflight": "guard",
    "transforms": "response",
    "max_length": "max_chars",
    "max_chars": "max_length",
}
LISTS = (tuple, list, Sequence)
MAPS = (dict, Mapping)
UNIONS = (Union, UnionType)


class NodeConverter:
    """Reads the values of one file, and collects the problems.

    `readers` maps types with a notation of their own to the functions that read them. Every reader
    takes a label, the prefix of messages about the value, and returns BAD if it reported.
    """

    def __init__(self, file: str, readers: Mapping[Any, Reader]) -> None:
        self.file = file
        self.readers = readers
        self._problems: dict[Problem, None] = {}

    @property
    def problems(self) -> list[Problem]:
        """The problems reported so far, each once, in the order of the text."""
        return sorted(self._problems)

    def report(self, node: Node, message: str) -> Any:
        """Report a problem at `node`, and return BAD; raises SourceError if there are too many."""
        self._note({Problem(self.file, node.line, node.column, message): None})
        return BAD

    def _note(self, problems: dict[Problem, None]) -> None:
        self._problems |= problems
        if len(self._problems) >= MAX_PROBLEMS:
            raise too_many()

    def unknown(self, node: Node, what: str, known: Iterable[str], of: str = "") -> Any:
        """Report that the word at `node` is not a known `what`, and the most similar known word."""
        if node.invalid:
            return BAD
        words = list(known)
        meant = MEANT.get(node.value)
        advice = f"; did you mean {meant!r}?" if meant in words else did_you_mean(node.value, words)
        if node.value in TRANSFORMS and "response" in words:
            advice = f"; it is a step: response: [{{{node.value}: ...}}]"
        advice = advice or f"; known: {', '.join(words)}"
        return self.report(node, f"unknown {what} {found(node)}{of}{advice}")

    def value(self, node: Node, kind: Any, label: str) -> Any:
        """Read `node` as a value of the type `kind`."""
        if node.invalid:
            return BAD
        if kind in self.readers:
            return self.readers[kind](self, node, label)
        if kind is Any:
            return plain_value(node)
        shape = get_origin(kind)
        if shape is Annotated:
            return self._bounded(node, get_args(kind), label)
        if shape in UNIONS:
            return self._either(node, get_args(kind), label)
        if not fits(node, kind) and not (shape in LISTS and fits(node, get_args(kind)[0])):
            return self._unfit(node, (kind,), label)
        if shape in LISTS:
            # A single value stands for a list of one.
            nodes = node.value if isinstance(node.value, list) else [node]
            read = [self.value(each, get_args(kind)[0], label) for each in nodes]
            return BAD if BAD in read else tuple(read)
        if shape in MAPS:
            return self._mapping(node, get_args(kind), label)
        if kind in TEXTS:
            try:
                return TEXTS[kind][1](node.value)
            except AbridgeError as error:
                return self.report(node, f"{label}: {error}")
            except RecursionError:
                return self.report(node, f"{label}: {found(node)} is nested too deeply")
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self.made(node, kind, self.members(node, kind, label), label)
        return node.value

    def members(
        self, node: Node, kind: type[Struct], label: str, what: str = "option"
    ) -> dict[str, Any]:
        """Read each member of a mapping as the field that has its name in YAML."""
        known = fields(kind)
        values: dict[str, Any] = {}
        meant: set[str | None] = set()
        for word, member in node.value.items():
            if word in known:
                values[word] = self.value(member, known[word].type, word)
            else:
                values[word] = self.unknown(node.keys[word], what, known, f" of {label}")
                meant.add(nearest(word, known))
        for word, field in known.items():
            # A misspelt word is not reported as missing too.
            if field.required and word not in values:
                missing = f"{label}: {word!r} is missing"
                values[word] = BAD if word in meant else self.report(node, missing)
        return values

    def made(self, node: Node, kind: type[Struct], values: dict[str, Any], label: str) -> Any:
        """Make the Struct with these values, which were read from `node`."""
        if BAD in values.values():
            return BAD
        known = fields(kind)
        try:
            return kind(**{known[word].name: value for word, value in values.items()})
        except OptionErrors as errors:
            for each in errors.wrong:
                self.report(led(node, each), f"{label}: {each.message}")
            return BAD
        except (ValueError, AbridgeError) as error:
            named = re.match(r"'?(\w+)'?:?", str(error))
            place = node.value.get(named[1]) if named and isinstance(node.value, dict) else None
            return self.report(place or node, f"{label}: {error}")

    def _mapping(self, node: Node, kinds: tuple[Any, ...], label: str) -> Any:
        name, kind = kinds
        names = [self.value(key, name, label) for key in node.keys.values()]
        values = [self.value(node.value[word], kind, word or label) for word in node.keys]
        return BAD if BAD in names or BAD in values else dict(zip(names, values, strict=True))

    def _either(self, node: Node, kinds: tuple[Any, ...], label: str) -> Any:
        fitting = [kind for kind in kinds if fits(node, kind)] or [
            kind for kind in kinds if get_origin(kind) in LISTS and fits(node, get_args(kind)[0])
        ]
        if not fitting:
            return self._unfit(node, kinds, label)
        attempts: list[tuple[int, int, NodeConverter]] = []
        for kind in fitting:
            attempt = NodeConverter(self.file, self.readers)
            try:
                value = attempt.value(node, kind, label)
            except SourceError:
                value = BAD
            if value is not BAD:
                return value
            attempts.append((-_known(node, kind), len(attempt._problems), attempt))
        # Of several mappings, the intended one knows the most words.
        known, _, likely = min(attempts, key=lambda each: each[:2])
        if known and [each[0] for each in attempts].count(known) > 1:
            expected = " or ".join(map(described, fitting))
            words = ", ".join(node.value)
            return self.report(node, f"{label}: expected {expected}, found {{{words}}}")
        self._note(likely._problems)
        return BAD

    def _bounded(self, node: Node, kinds: tuple[Any, ...], label: str) -> Any:
        kind, *marks = kinds
        value = self.value(node, kind, label)
        if value is BAD:
            return BAD
        for mark in marks:
            for name, (broken, words) in _LIMITS.items():
                limit = getattr(mark, name) if isinstance(mark, Meta) else None
                if limit is not None and broken(value, limit):
                    return self.report(node, f"{label}: {words.format(found(node), limit)}")
        return value

    def _unfit(self, node: Node, kinds: tuple[Any, ...], label: str) -> Any:
        # That null is allowed too does not help the author.
        wanted = [kind for kind in kinds if kind is not NoneType] or kinds
        expected = " or ".join(dict.fromkeys(described(kind) for kind in wanted))
        advice = next(filter(None, (_advice(node.value, kind) for kind in kinds)), "")
        return self.report(node, f"{label}: expected {expected}, found {found(node)}{advice}")


def sized(notes: NodeConverter, node: Node, label: str) -> Any:
    """Read a number of bytes, or a text like `8kB`."""
    if node.invalid:
        return BAD
    if type(node.value) is int:
        return node.value
    try:
        return size(str(node.value))
    except ValueError:
        wanted = f"{label}: expected a size such as 8kB, 256MB or 1GiB, found {found(node)}"
        return notes.report(node, wanted)


def led(node: Node, wrong: OptionError) -> Node:
    """Return the node of a mistake inside `node`, or the nearest node around it."""
    place = node
    for depth, word in enumerate(wrong.at, 1):
        # A single value may stand for a list of one.
        if isinstance(place.value, dict) and word in place.value:
            key, place = place.keys[str(word)], place.value[word]
            if wrong.of_key and depth == len(wrong.at):
                return key
        elif isinstance(place.value, list) and isinstance(word, int):
            place = place.value[word]
    return place


@lru_cache
def fields(kind: type[Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """Return the fields of a Struct by their names in YAML."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def fits(node: Node, kind: Any) -> bool:
    """Return True if `node` has the outer shape of the type `kind`, whatever it holds."""
    value, shape = node.value, get_origin(kind)
    if kind is Any:
        return True
    if shape is Annotated:
        return fits(node, get_args(kind)[0])
    if shape in UNIONS:
        return any(fits(node, each) for each in get_args(kind))
    if shape is Literal:
        return any(value == each and type(value) is type(each) for each in get_args(kind))
    if shape in LISTS:
        return isinstance(value, list)
    if shape in MAPS:
        return isinstance(value, dict)
    if kind in TEXTS:
        return isinstance(value, str)
    if kind in _PLAIN:
        return type(value) is kind or (kind is float and type(value) is int)
    return isinstance(value, dict) if issubclass(kind, Struct) else True


def unreadable(kind: Any, within: frozenset[Any] = frozenset()) -> Any:
    """Return the part of the type `kind` that no rule file value can be read as, or None.

    >>> unreadable(dict[str, int | None]), unreadable(tuple[set[str], ...])
    (None, set[str])
    """
    shape, inside = get_origin(kind), get_args(kind)
    if kind is Any or kind in TEXTS or kind in _PLAIN or shape is Literal or kind in within:
        return None
    if shape is Annotated:
        inside = inside[:1]
    elif shape is tuple and inside[1:] != (Ellipsis,):
        return kind
    elif isinstance(kind, type) and issubclass(kind, Struct):
        inside = tuple(field.type for field in fields(kind).values())
    elif shape not in (*LISTS, *MAPS, *UNIONS):
        return kind
    parts = (unreadable(each, within | {kind}) for each in inside if each is not Ellipsis)
    return next((found for found in parts if found is not None), None)


_PLAIN = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "nothing"}
_LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (lambda value, limit: value < limit, "{} is less than the minimum of {}"),
    "gt": (lambda value, limit: value <= limit, "{} is not more than {}"),
    "le": (lambda value, limit: value > limit, "{} is greater than the maximum of {}"),
    "lt": (lambda value, limit: value >= limit, "{} is not less than {}"),
    "min_length": (lambda value, limit: len(value) < limit, "{} has a length of less than {}"),
    "max_length": (lambda value, limit: len(value) > limit, "{} has a length of more than {}"),
}


def _known(node: Node, kind: Any) -> int:
    """Count the members of a mapping whose names a Struct knows."""
    if not (isinstance(kind, type) and issubclass(kind, Struct) and isinstance(node.value, dict)):
        return 0
    return len(fields(kind).keys() & node.value.keys())


def described(kind: Any) -> str:
    """Return a description of a value of the type `kind`."""
    shape, inside = get_origin(kind), get_args(kind)
    if shape is Annotated:
        return described(inside[0])
    if shape in UNIONS:
        return " or ".join(map(described, inside))
    if shape is Literal:
        return ("one of " if len(inside) > 1 else "") + ", ".join(map(repr, inside))
    if kind in TEXTS:
        return TEXTS[kind][0]
    if shape in LISTS:
        return f"{described(inside[0])} or a list" if inside[0] in TEXTS else "a list"
    if shape is None and isinstance(kind, type) and issubclass(kind, Struct):
        return f"{{{', '.join(fields(kind))}}}" if len(fields(kind)) < 4 else "a mapping of options"
    return _PLAIN.get(kind, "a mapping")


def found(node: Node) -> str:
    """Return a description of the value of `node`."""
    value = node.value
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:60] + "…")
    return "nothing" if value is None else repr(value).lower()


_YES = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def _advice(value: Any, kind: Any) -> str:
    """Return advice on what to write in place of `value`, empty if that is not plain."""
    if get_origin(kind) in (Annotated, *LISTS):
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal and isinstance(value, str):
        return did_you_mean(value, [each for each in get_args(kind) if isinstance(each, str)])
    if kind in TEXTS and isinstance(value, bool | int | float):
        return f"; quote it: {quote(str(value).lower())}"
    if kind is bool and isinstance(value, str) and value.lower() in {*_YES, "true", "false"}:
        return f"; write {_YES.get(value.lower(), value.lower())}"
    if kind in (int, float) and isinstance(value, str):
        digits = value.replace("_", "")
        return f"; write {digits}" if digits.lstrip("+-").isdecimal() and digits.isascii() else ""
    return ""
