"""Converts nodes to the types that frozen Structs declare; reports each value that does not fit."""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.document.paths import Path
from mcp_abridge.document.sizes import size
from mcp_abridge.errors import (
    AbridgeError,
    OptionError,
    OptionErrors,
    Problem,
    did_you_mean,
    did_you_mean_or_known,
    nearest,
)
from mcp_abridge.query.patterns import Expression, Pattern
from mcp_abridge.ruleset.loading import yaml_nodes
from mcp_abridge.ruleset.loading.jmespath_lint import read_expression
from mcp_abridge.ruleset.loading.yaml_errors import MAX_PROBLEMS, SourceError, quote, too_many
from mcp_abridge.ruleset.loading.yaml_nodes import Node, plain_value
from mcp_abridge.transforms import TRANSFORMS

INVALID: Any = object()
"""Marks a value whose problem was reported."""

Reader = Callable[["NodeConverter", Node, str], Any]


# Types that are written as a text: the name of each, and the function that reads it.
TEXTS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    str: ("a text", str),
    Path: ("a path", Path.parse),
    Pattern: ("a regular expression", Pattern),
    Expression: ("a JMESPath expression", read_expression),
}
LISTS = (tuple, list, Sequence)
MAPS = (dict, Mapping)
UNIONS = (Union, UnionType)


class NodeConverter(Struct):
    """Converts the values of one file, and collects the problems.

    `readers` are for types with a notation of their own: each takes a label, the prefix of messages
    about the value, and returns INVALID if it reported.
    """

    file: str
    readers: Mapping[Any, Reader]
    problems: dict[Problem, None] = {}

    def report(self, node: Node, message: str) -> Any:
        """Report a problem at `node`, and return INVALID; raises SourceError if too many."""
        self._add({Problem(self.file, node.line, node.column, message): None})
        return INVALID

    def _add(self, problems: dict[Problem, None]) -> None:
        self.problems |= problems
        if len(self.problems) >= MAX_PROBLEMS:
            raise too_many()

    def report_unknown(self, node: Node, noun: str, names: Iterable[str], of: str = "") -> Any:
        """Report that the word at `node` is none of `names`, and the most similar name."""
        names = list(names)
        if node.value in TRANSFORMS and "response" in names:
            advice = f"; it is a step: response: [{{{node.value}: ...}}]"
        else:
            advice = did_you_mean_or_known(node.value, names)
        return self.report(node, f"unknown {noun} {value_text(node)}{of}{advice}")

    def convert(self, node: Node, kind: Any, label: str) -> Any:
        if kind in self.readers:
            return self.readers[kind](self, node, label)
        if kind is Any:
            return plain_value(node)
        origin = get_origin(kind)
        if origin is Annotated:
            return self._bounded(node, get_args(kind), label)
        if origin in UNIONS:
            return self._union(node, get_args(kind), label)
        if not (fits(node, kind) or _fits_element(node, kind)):
            return self._report_type(node, (kind,), label)
        if origin in LISTS:
            # A single value stands for a list of one.
            nodes = node.value if isinstance(node.value, list) else [node]
            values = [self.convert(each, get_args(kind)[0], label) for each in nodes]
            return INVALID if INVALID in values else tuple(values)
        if origin in MAPS:
            of_key, of_value = get_args(kind)
            keys = [self.convert(key, of_key, label) for key in node.keys.values()]
            values = [self.convert(node.value[key], of_value, key or label) for key in node.keys]
            return INVALID if INVALID in (*keys, *values) else dict(zip(keys, values, strict=True))
        if kind in TEXTS:
            return self.read_text(node, TEXTS[kind][1], label)
        if _is_struct(kind):
            return self.build(node, kind, self.members(node, kind, label), label)
        if kind in _PLAIN or origin is Literal:
            return node.value
        # A class that a rule file names may declare any type.
        raise TypeError(f"no rule file can hold a value of the type {kind}")

    def read_text(self, node: Node, read: Callable[[str], Any], label: str) -> Any:
        """Convert a text with `read`; reports the AbridgeError that it raises."""
        try:
            return read(node.value)
        except AbridgeError as error:
            return self.report(node, f"{label}: {error}")
        except RecursionError:
            return self.report(node, f"{label}: {value_text(node)} is nested too deeply")

    def members(
        self, node: Node, kind: type[Struct], label: str, noun: str = "option"
    ) -> dict[str, Any]:
        """Convert each member of a mapping to the type of the field with its name in YAML."""
        options = fields(kind)
        values: dict[str, Any] = {}
        misspelt: set[str | None] = set()
        previous: tuple[str, Node] | None = None
        for key, member in node.value.items():
            if key in options:
                values[key] = self.convert(member, options[key].type, key)
                previous = key, member
            elif (
                member.value is None and previous and isinstance(previous[1].value, str | int)
            ) and nearest(key, options) is None:
                # {a: b, c} in YAML is {a: b, c: null}.
                several = f"{previous[0]}: [{previous[1].value}, {key}]"
                message = f"{key!r} is no {noun} of {label}; a list has brackets: {several}"
                values[key] = self.report(node.keys[key], message)
            else:
                values[key] = self.report_unknown(node.keys[key], noun, options, f" of {label}")
                misspelt.add(nearest(key, options))
        for key, option in options.items():
            if option.required and key not in values:
                values[key] = INVALID
                # A misspelt key is not reported as missing too.
                if key not in misspelt:
                    self.report(node, f"{label}: {key!r} is missing")
        return values

    def mappings(self, node: Node, expected: str) -> list[Node]:
        """Return the mappings in a list, or the single one; reports everything else."""
        nodes = node.value if isinstance(node.value, list) else [node]
        for each in nodes:
            if not isinstance(each.value, dict):
                self.report(each, f"expected {expected}, found {value_text(each)}")
        return [each for each in nodes if isinstance(each.value, dict)]

    def build(self, node: Node, kind: type[Struct], values: dict[str, Any], label: str) -> Any:
        if INVALID in values.values():
            return INVALID
        options = fields(kind)
        try:
            return kind(**{options[key].name: value for key, value in values.items()})
        except OptionErrors as errors:
            for each in errors.wrong:
                self.report(node_at(node, each), f"{label}: {each.message}")
            return INVALID
        except (ValueError, AbridgeError) as error:
            # A message that begins with the name of an option is reported at that option.
            match = re.match(r"'?(\w+)'?:?", str(error))
            option = node.value.get(match[1]) if match and isinstance(node.value, dict) else None
            return self.report(option or node, f"{label}: {error}")

    def _union(self, node: Node, kinds: tuple[Any, ...], label: str) -> Any:
        fitting = [kind for kind in kinds if fits(node, kind)]
        fitting = fitting or [kind for kind in kinds if _fits_element(node, kind)]
        if not fitting:
            return self._report_type(node, kinds, label)
        attempts: list[tuple[int, int, dict[Problem, None]]] = []
        for kind in fitting:
            attempt = NodeConverter(self.file, self.readers)
            try:
                value = attempt.convert(node, kind, label)
            except SourceError:
                value = INVALID
            if value is not INVALID:
                return value
            own = set(node.value) & fields(kind).keys() if _is_struct(kind) else ()
            attempts.append((-len(own), len(attempt.problems), attempt.problems))
        # Of several mappings, the intended one has most of the keys.
        self._add(min(attempts, key=lambda each: each[:2])[2])
        return INVALID

    def _bounded(self, node: Node, kinds: tuple[Any, ...], label: str) -> Any:
        kind, *marks = kinds
        value = self.convert(node, kind, label)
        limits = ((mark, name) for mark in marks for name in _LIMITS)
        for mark, name in limits if value is not INVALID else ():
            breaks, text = _LIMITS[name]
            limit = getattr(mark, name, None)
            if limit is not None and breaks(value, limit):
                return self.report(node, f"{label}: {text.format(value_text(node), limit)}")
        return value

    def _report_type(self, node: Node, kinds: tuple[Any, ...], label: str) -> Any:
        # That null is allowed too does not help the author.
        useful = [kind for kind in kinds if kind is not NoneType] or kinds
        expected = " or ".join(dict.fromkeys(map(type_text, useful)))
        advice = next(filter(None, (_advice(node.value, kind) for kind in kinds)), "")
        return self.report(node, f"{label}: expected {expected}, found {value_text(node)}{advice}")


def read_file(
    file: str,
    raw: bytes,
    readers: Mapping[Any, Reader],
    expected: str,
    load: Callable[[NodeConverter, Node], Any],
) -> tuple[Any, tuple[Problem, ...], bool]:
    """Read the bytes of one file, a mapping, with `load`, without the keys that begin with `x-`.

    Returns the result, or None if there are problems; the problems; and True if it is YAML.
    """
    root, problems = yaml_nodes.read(file, raw)
    if root is None:
        return None, tuple(problems), False
    converter = NodeConverter(file, readers)
    result = None
    try:
        if isinstance(root.value, dict):
            own = {key: node for key, node in root.value.items() if not key.startswith("x-")}
            result = load(converter, replace(root, value=own))
        else:
            converter.report(root, f"expected {expected}, found {value_text(root)}")
    except SourceError as error:
        problems.append(Problem(file, error.line, error.column, str(error)))
    problems = sorted({*problems, *converter.problems})
    return (None if problems else result), tuple(problems), True


def read_defaults(
    converter: NodeConverter,
    node: Node,
    kind: type[Struct],
    own: Collection[str],
    of: str,
    others: Collection[str] = (),
) -> dict[str, Node]:
    """Return the members of a mapping that are options of `kind`, and report mistakes in them.

    `own` are the options without defaults; `others` are checked elsewhere.
    """
    options = {key: field for key, field in fields(kind).items() if key not in own}
    for key, member in node.value.items():
        if key in options:
            converter.convert(member, options[key].type, key)
        elif key in own:
            message = f"{key!r} has no default: each one has its own"
            converter.report(node.keys[key], message)
        elif key not in others:
            converter.report_unknown(node.keys[key], "key", (*others, *options), f" of {of}")
    return {key: member for key, member in node.value.items() if key in options}


def read_size(converter: NodeConverter, node: Node, label: str) -> Any:
    """Read a number of bytes, or a text like `8kB`."""
    if type(node.value) is int:
        return node.value
    try:
        return size(str(node.value))
    except ValueError:
        example = "expected a size such as 8kB, 256MB or 1GiB"
        return converter.report(node, f"{label}: {example}, found {value_text(node)}")


def node_at(node: Node, error: OptionError) -> Node:
    """Return the node of a mistake inside `node`, or the nearest node around it."""
    inner = node
    for depth, step in enumerate(error.at, 1):
        # A single value may stand for a list of one.
        if isinstance(inner.value, dict) and step in inner.value:
            key, inner = inner.keys[str(step)], inner.value[step]
            if error.of_key and depth == len(error.at):
                return key
        elif isinstance(inner.value, list) and isinstance(step, int):
            inner = inner.value[step]
    return inner


@lru_cache
def fields(kind: type[Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """Return the fields of a Struct by their names in YAML."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def fits(node: Node, kind: Any) -> bool:
    """Return True if `node` has the outer shape of the type `kind`, whatever it holds."""
    value, origin = node.value, get_origin(kind)
    if kind is Any:
        return True
    if origin is Annotated:
        return fits(node, get_args(kind)[0])
    if origin in UNIONS:
        return any(fits(node, each) for each in get_args(kind))
    if origin is Literal:
        return any(value == each and type(value) is type(each) for each in get_args(kind))
    if origin in LISTS:
        return isinstance(value, list)
    if origin in MAPS:
        return isinstance(value, dict)
    if kind in TEXTS:
        return isinstance(value, str)
    if kind in _PLAIN:
        return type(value) is kind or (kind is float and type(value) is int)
    return isinstance(value, dict) or not _is_struct(kind)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _fits_element(node: Node, kind: Any) -> bool:
    return get_origin(kind) in LISTS and fits(node, get_args(kind)[0])


_PLAIN = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "nothing"}
_LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.lt, "{} is less than the minimum of {}"),
    "gt": (operator.le, "{} is not more than {}"),
    "le": (operator.gt, "{} is greater than the maximum of {}"),
    "lt": (operator.ge, "{} is not less than {}"),
    "min_length": (lambda value, limit: len(value) < limit, "{} has a length of less than {}"),
    "max_length": (lambda value, limit: len(value) > limit, "{} has a length of more than {}"),
}


def type_text(kind: Any) -> str:
    """Return a description of a value of the type `kind`."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_text(inner[0])
    if origin in UNIONS:
        return " or ".join(map(type_text, inner))
    if origin is Literal:
        return ("one of " if len(inner) > 1 else "") + ", ".join(map(repr, inner))
    if kind in TEXTS:
        return TEXTS[kind][0]
    if origin in LISTS:
        return f"{type_text(inner[0])} or a list" if inner[0] in TEXTS else "a list"
    if _is_struct(kind):
        return f"{{{', '.join(fields(kind))}}}" if len(fields(kind)) < 4 else "a mapping of options"
    return _PLAIN.get(kind, "a mapping")


def value_text(node: Node) -> str:
    """Return a description of the value of `node`."""
    value = node.value
    if isinstance(value, dict | list):
        noun = "mapping" if isinstance(value, dict) else "list"
        return f"a {noun}" if value else f"an empty {noun}"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:60] + "…")
    return "nothing" if value is None else repr(value).lower()


_YES = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_YES |= {"true": "true without quotes", "false": "false without quotes"}


def _advice(value: Any, kind: Any) -> str:
    if get_origin(kind) in (Annotated, *LISTS):
        kind = get_args(kind)[0]
    if kind in TEXTS and isinstance(value, bool | int | float):
        return f"; quote it: {quote(str(value).lower())}"
    if get_origin(kind) is Literal and isinstance(value, str):
        return did_you_mean(value, [each for each in get_args(kind) if isinstance(each, str)])
    if kind is int and str(value).isdecimal():
        return f"; write {value} without quotes"
    return f"; write {_YES[str(value)]}" if kind is bool and str(value) in _YES else ""
