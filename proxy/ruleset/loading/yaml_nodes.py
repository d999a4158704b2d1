"""Parses YAML into nodes with their positions, and collects every problem.

Scalars follow the core schema of YAML 1.2, so `on`, `no`, `12:30` and dates are texts and `010` is
ten. Size, depth and the expansion of aliases are bounded for any text.
"""

import re
from collections.abc import Iterator
from math import isinf
from typing import Any

import yaml
from msgspec import Struct
from yaml.reader import ReaderError

from proxy.errors import Problem
from proxy.ruleset.loading.yaml_errors import (
    MOST_DEPTH,
    Composer,
    InvalidScalar,
    Slips,
    SourceError,
    at,
    explained,
)

MOST_BYTES = 256 * 1024
MOST_VALUES = 100_000
# int() takes quadratic time, and refuses more than 4,300 digits.
MOST_DIGITS = 1_000

Scalar = str | int | float | bool | None


class Node(Struct, eq=False):
    """A value of a YAML file and its position; line and column count from 1.

    `value` is a scalar, a list of Nodes, or a dict of Nodes; `keys` holds the positions of a dict's
    keys. The problem of a `spoiled` scalar is already reported; its value is not used.
    """

    value: Any
    line: int
    column: int
    keys: dict[str, "Node"] = {}
    spoiled: bool = False
    size: int = 1
    depth: int = 1


def read(file: str, raw: bytes) -> tuple[Node | None, list[Problem]]:
    """Read the bytes of one YAML file.

    Returns the root, or None if the text is no usable YAML, and every problem. `file` is the name
    of the file in problems.
    """
    try:
        text = _decoded(raw)
    except SourceError as stop:
        return None, [Problem(file, stop.line, stop.column, str(stop))]
    root, slips = None, Slips()
    try:
        composer = Composer(text)
        slips = composer.slips
        source = composer.get_single_node()
        if source is None:
            raise SourceError("an empty file; a rule file begins with 'version: 1'")
        root = _Tree(slips).node(source)
    except yaml.MarkedYAMLError as error:
        slips.append(explained(error, text))
    except ReaderError as error:
        message = f"{text[error.position]!r} cannot stand in YAML"
        slips.append(_placed(text, error.position, message))
    except SourceError as stop:
        slips.extend([stop])
    return root, [Problem(file, slip.line, slip.column, str(slip)) for slip in slips]


def _decoded(raw: bytes) -> str:
    if len(raw) > MOST_BYTES:
        raise SourceError(f"more than {MOST_BYTES} bytes, the most a rule file may have")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode(errors="replace")
        message = f"byte {raw[error.start]:#04x} is not UTF-8; save the file in that encoding"
        raise _placed(before, len(before), message) from None


def _placed(text: str, position: int, message: str) -> SourceError:
    before = text[:position]
    return SourceError(message, before.count("\n") + 1, position - before.rfind("\n"))


def unwrapped(node: Node) -> Any:
    """Return the plain value of `node`: dicts, lists and scalars."""
    if isinstance(node.value, dict):
        return {key: unwrapped(value) for key, value in node.value.items()}
    if isinstance(node.value, list):
        return [unwrapped(value) for value in node.value]
    return node.value


def _joined(text: str) -> str:
    r"""Join the two escapes that JSON writes for one character (`"\ud83d\ude00"`)."""
    if text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class _Tree:
    """Converts the nodes of the YAML library to Nodes, each once for any number of aliases."""

    def __init__(self, slips: Slips) -> None:
        self.slips = slips
        self.merged = 0
        self.made: dict[int, Node] = {}
        self.open: set[int] = set()

    def node(self, source: yaml.Node) -> Node:
        made = self.made.get(id(source))
        if made is None:
            if id(source) in self.open:
                raise at(source.start_mark, "this anchor holds an alias of itself")
            self.open.add(id(source))
            made = self.made[id(source)] = self._new(source)
            if made.depth > MOST_DEPTH:
                raise at(source.start_mark, f"nested more than {MOST_DEPTH} levels deep")
            if made.size > MOST_VALUES:
                raise at(source.start_mark, f"over {MOST_VALUES} values, every alias counted")
        return made

    def _new(self, source: yaml.Node) -> Node:
        node = Node(None, source.start_mark.line + 1, source.start_mark.column + 1)
        if isinstance(source, yaml.ScalarNode):
            node.spoiled = isinstance(source.value, InvalidScalar)
            plain = source.style is None and not node.spoiled
            node.value = self._scalar(source) if plain else _joined(str(source.value))
        elif isinstance(source, yaml.SequenceNode):
            node.value = [self.node(element) for element in source.value]
        else:
            node.value = self._members(source, node.keys)
        children: list[Node] = []
        if isinstance(node.value, list):
            children = node.value
        elif isinstance(node.value, dict):
            children = [*node.value.values()]
        node.size += sum(child.size for child in children)
        node.depth += max((child.depth for child in children), default=0)
        return node

    def _members(self, source: yaml.Node, keys: dict[str, Node]) -> dict[str, Node]:
        members: dict[str, Node] = {}
        merged: dict[str, tuple[Node, Node]] = {}
        for key, value in source.value:
            if not isinstance(key, yaml.ScalarNode):
                self.slips.append(at(key.start_mark, "a key is a word or a quoted text"))
                continue
            if key.value == "<<" and key.style is None:
                for name, place, member in self._merged(value):
                    merged.setdefault(name, (place, member))
                continue
            name = _joined(str(key.value))
            place = Node(name, key.start_mark.line + 1, key.start_mark.column + 1)
            if name in keys:
                message = f"duplicate key {name!r}; the first stands in line {keys[name].line}"
                self.slips.append(at(key.start_mark, message))
                continue
            keys[name], members[name] = place, self.node(value)
        for name, (place, member) in merged.items():
            if name not in keys:
                keys[name], members[name] = place, member
        return members

    def _merged(self, source: yaml.Node) -> Iterator[tuple[str, Node, Node]]:
        value = self.node(source)
        for part in value.value if isinstance(value.value, list) else [value]:
            if isinstance(part.value, dict):
                self.merged += len(part.value)
                if self.merged > MOST_VALUES:
                    raise at(source.start_mark, f"over {MOST_VALUES} values merged by '<<'")
                for name, member in part.value.items():
                    yield name, part.keys[name], member
            elif not part.spoiled:
                self.slips.append(at(source.start_mark, "'<<' merges a mapping, or a list of them"))

    def _scalar(self, source: yaml.ScalarNode) -> Scalar:
        """Resolve a plain scalar by section 10.3.2 of YAML 1.2."""
        text = str(source.value)
        if text in _WORDS:
            return _WORDS[text]
        if text[:1] not in _NUMERIC or not (found := _NUMBER.fullmatch(text)):
            return text
        if len(text) > MOST_DIGITS:
            self.slips.append(at(source.start_mark, f"a number of {len(text)} digits; quote it"))
            return text
        if found["decimal"]:
            return int(text)
        if found["based"]:
            return int(text, 0)
        number = float(text)
        if isinf(number):
            self.slips.append(at(source.start_mark, f"{text} is too large a number; quote it"))
        return number


_WORDS: dict[str, Scalar] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMERIC = frozenset("0123456789+-.")
_NUMBER = re.compile(
    r"(?P<decimal>[-+]?[0-9]+)|(?P<based>0o[0-7]+|0x[0-9a-fA-F]+)"
    r"|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
)
