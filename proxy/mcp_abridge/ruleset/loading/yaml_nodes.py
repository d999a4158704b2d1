"""Parses YAML into nodes with their positions, and collects every problem.

Scalars follow the core schema of YAML 1.2, so `on`, `no`, `12:30` and dates are texts and `010` is
ten. Size, depth and the expansion of aliases are bounded for any text.
"""

from collections.abc import Iterable, Iterator
from math import isinf
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace
from yaml.reader import ReaderError

from mcp_abridge.errors import Problem
from mcp_abridge.ruleset.loading.yaml_errors import (
    MAX_DEPTH,
    Composer,
    SourceError,
    error_at,
    explain,
)
from mcp_abridge.summary.notations import scalar_kind

MAX_BYTES = 256 * 1024
MAX_VALUES = 100_000
# int() takes quadratic time, and refuses more than 4,300 digits.
MAX_DIGITS = 1_000


class Node(Struct, eq=False):
    """A value of a YAML file and its position; line and column count from 1.

    `value` is a scalar, a list of Nodes, or a dict of Nodes, whose keys are in `keys`, too.
    """

    value: Any
    line: int
    column: int
    keys: dict[str, "Node"] = {}
    size: int = 1
    depth: int = 1


def merged(under: Node, over: Node) -> Node:
    """Return the mapping `over` with the members of `under` that it does not have."""
    value, keys = {**under.value, **over.value}, {**under.keys, **over.keys}
    return replace(over, value=value, keys=keys)


def read(file: str, raw: bytes) -> tuple[Node | None, list[Problem]]:
    """Return the root of one YAML file, None if it is unusable, and every problem in it."""
    root, errors = None, []
    try:
        text = _decode(raw)
        try:
            composer = Composer(text)
            errors = composer.errors
            source = composer.get_single_node()
        except yaml.MarkedYAMLError as error:
            raise explain(error, text) from None
        except ReaderError as error:
            message = f"{text[error.position]!r} cannot stand in YAML"
            raise _error_after(text[: error.position], message) from None
        if source is None:
            raise SourceError("the file is empty; its first line is 'version: 1'")
        root = _NodeBuilder(composer).node(source)
    except SourceError as error:
        errors.append(error)
    return root, [Problem(file, error.line, error.column, str(error)) for error in errors]


def _decode(raw: bytes) -> str:
    if len(raw) > MAX_BYTES:
        raise SourceError(f"more than {MAX_BYTES} bytes, the most a rule file may have")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"byte {raw[error.start]:#04x} is not UTF-8; save the file in that encoding"
        raise _error_after(raw[: error.start].decode(errors="replace"), message) from None


def _error_after(text: str, message: str) -> SourceError:
    return SourceError(message, text.count("\n") + 1, len(text) - text.rfind("\n"))


def plain_value(node: Node) -> Any:
    """Return the value of `node` without positions: dicts, lists and scalars."""
    if isinstance(node.value, dict):
        return {key: plain_value(value) for key, value in node.value.items()}
    if isinstance(node.value, list):
        return [plain_value(value) for value in node.value]
    return node.value


class _NodeBuilder(Struct):
    """Converts the nodes of the YAML library to Nodes, each once for any number of aliases."""

    composer: Composer
    merged_count: int = 0
    nodes: dict[int, Node | None] = {}  # None while the node is being built

    def node(self, source: yaml.Node) -> Node:
        if id(source) not in self.nodes:
            self.nodes[id(source)] = None
            self.nodes[id(source)] = self._build(source)
        node = self.nodes[id(source)]
        if node is None:
            raise error_at(source.start_mark, "this anchor holds an alias of itself")
        return node

    def _build(self, source: yaml.Node) -> Node:
        node = Node(None, source.start_mark.line + 1, source.start_mark.column + 1)
        children: Iterable[Node] = ()
        if isinstance(source, yaml.ScalarNode):
            node.value = self._text(source) if source.style else self._scalar(source)
        elif isinstance(source, yaml.SequenceNode):
            children = node.value = [self.node(element) for element in source.value]
        else:
            node.value = self._members(source, node.keys)
            children = node.value.values()
        for child in children:
            node.size += child.size
            node.depth = max(node.depth, child.depth + 1)
        if node.depth > MAX_DEPTH:
            raise error_at(source.start_mark, f"nested more than {MAX_DEPTH} levels deep")
        if node.size > MAX_VALUES:
            raise error_at(source.start_mark, f"over {MAX_VALUES} values, every alias counted")
        return node

    def _members(self, source: yaml.Node, keys: dict[str, Node]) -> dict[str, Node]:
        members: dict[str, Node] = {}
        merged: dict[str, tuple[Node, Node]] = {}
        for key, value in source.value:
            if not isinstance(key, yaml.ScalarNode):
                self.report(key, "a key is a word or a quoted text")
            elif key.value == "<<" and key.style is None:
                for part in self._merged(value):
                    for name, member in part.value.items():
                        merged.setdefault(name, (part.keys[name], member))
            elif (name := self._text(key)) in keys:
                line = keys[name].line
                self.report(key, f"duplicate key {name!r}; the first stands in line {line}")
            else:
                keys[name] = Node(name, key.start_mark.line + 1, key.start_mark.column + 1)
                members[name] = self.node(value)
        for name, (name_node, member) in merged.items():
            if name not in keys:
                keys[name], members[name] = name_node, member
        return members

    def _merged(self, source: yaml.Node) -> Iterator[Node]:
        """Yield each mapping that `<<` adds."""
        node = self.node(source)
        for part in node.value if isinstance(node.value, list) else [node]:
            if not isinstance(part.value, dict):
                self.report(source, "'<<' merges a mapping, or a list of them")
                continue
            self.merged_count += len(part.value)
            if self.merged_count > MAX_VALUES:
                raise error_at(source.start_mark, f"over {MAX_VALUES} values merged by '<<'")
            yield part

    def report(self, source: yaml.Node, message: str) -> None:
        self.composer.report(source.start_mark, message)

    def _text(self, source: yaml.ScalarNode) -> str:
        raw = str(source.value).encode("utf-16", "surrogatepass")
        try:
            return raw.decode("utf-16")  # two escapes for one character are joined
        except UnicodeDecodeError:
            message = f"{source.value!r} has half a character in it: a surrogate by itself"
            self.report(source, message)
            return raw.decode("utf-16", "replace")

    def _scalar(self, source: yaml.ScalarNode) -> str | int | float | bool | None:
        text = str(source.value)
        kind = scalar_kind(text)
        if kind == "text":
            return text
        if kind in ("null", "boolean"):
            return None if kind == "null" else text.lower() == "true"
        if len(text) > MAX_DIGITS:
            self.report(source, f"a number of {len(text)} digits; quote it")
            return text
        if kind != "float":
            return int(text, 0 if kind == "based" else 10)
        number = float(text)
        if isinf(number):
            self.report(source, f"{text} is too large a number; quote it")
        return number
