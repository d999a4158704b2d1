"""Edits of YAML as text: without it, Goose's and Continue's files would lose comments and layout.

The places of values come from the nodes of PyYAML. What an edit could break elsewhere (an anchor)
is refused; an alias has no value here, so that no file can grow by it.
"""

import json
import re
from functools import lru_cache
from typing import Any

import yaml

from mcp_abridge.cli.wrap.text import EntryPath, NotPossible, Span, Syntax, SyntaxProblem, key_of
from mcp_abridge.ruleset.loading.yaml_errors import explain

_MOST = 500_000  # characters; some seconds
_ALIAS = "alias"
_TYPED = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?", re.IGNORECASE)
_REST_OF_LINE = re.compile(r"[ \t]*(?:\r?\n|\Z)")


class _Loader(yaml.BaseLoader):
    """Composes nodes; an alias becomes a scalar, and the places of anchors and aliases are kept."""

    anchor_marks: list[int]

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        start, anchor = event.start_mark, event.anchor
        if anchor is not None:
            self.anchor_marks.append(start.index)
        if not isinstance(event, yaml.AliasEvent):
            return super().compose_node(parent, index)
        self.get_event()  # type: ignore[no-untyped-call]
        return yaml.ScalarNode(_ALIAS, f"*{anchor}", start, start)


class Yaml(Syntax):
    """Reads and edits YAML; scalars are read as version 1.2 does, whose `yes` is a text."""

    def read(self, text: str) -> Any:
        node = _compose(text)[0]
        return {} if node is None else _value(node)

    def locate(self, text: str, path: EntryPath) -> Span:
        (_, parent), (key, node) = _nodes(text, path)[-2:]
        start = node.start_mark.index
        if start == node.end_mark.index:
            raise NotPossible(f"its {path[-1]} has no value: remove it, or give it one")
        return (key or node).start_mark.index, start, _end(node), bool(parent.flow_style)

    def text_of(self, value: Any, path: EntryPath) -> str:
        whole = value if isinstance(value, list) else {path[-1]: value}
        return yaml.safe_dump(whole, allow_unicode=True, sort_keys=False, width=10_000)

    def remove(self, text: str, path: EntryPath) -> str:
        start, _, end, has_commas = self.locate(text, path)
        line = text.rfind("\n", 0, start) + 1
        if text[line:start].strip() or has_commas:
            raise NotPossible(f"its {path[-1]} has no line of its own: write its members in lines")
        rest = _REST_OF_LINE.match(text, end)
        return text[:line] + text[rest.end() :] if rest else text[:start] + text[end:].lstrip(" ")

    def alone(self, text: str, path: EntryPath) -> str:
        return self.literal(_value(_nodes(text, path)[-1][1]))


@lru_cache(8)
def _compose(text: str) -> tuple[Any, list[int]]:
    if len(text) > _MOST:
        raise ValueError(f"{len(text)} characters of YAML are more than {_MOST}")
    try:
        loader = _Loader(text)
        loader.anchor_marks = []
        return loader.get_single_node(), loader.anchor_marks
    except yaml.MarkedYAMLError as error:
        problem = explain(error, text)
        raise SyntaxProblem(problem.line, problem.column, str(problem)) from None
    except yaml.YAMLError as error:  # a character that no YAML may have
        raise ValueError(str(error).partition("\n")[0]) from None


def _value(node: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {key.value: _value(each) for key, each in node.value if key.id == "scalar"}
    if isinstance(node, yaml.SequenceNode):
        return [_value(each) for each in node.value]
    if node.tag == _ALIAS or (node.style is None and node.value in ("", "~")):
        return None
    is_typed = node.style is None and _TYPED.fullmatch(node.value)
    return json.loads(node.value.lower()) if is_typed else node.value


def _nodes(text: str, path: EntryPath) -> list[tuple[Any, Any]]:
    """Return the node of each name in a path, after that of its key; the root is the first.

    Raises LookupError without one, NotPossible if an edit could change what stands elsewhere.
    """
    root, anchor_marks = _compose(text)
    nodes = [(None, root)]
    for name in path:
        _, node = nodes[-1]
        if isinstance(node, yaml.SequenceNode):
            nodes.append((None, node.value[key_of(_value(node), name)]))
        else:  # the last of equal keys counts
            nodes.append([pair for pair in node.value if pair[0].value == name][-1])
    entry = nodes[-2][1]
    starts = {node.start_mark.index for _, node in nodes}
    inside = range(entry.start_mark.index, entry.end_mark.index)
    if any(mark in starts or mark in inside for mark in anchor_marks):
        raise NotPossible("its entry has an anchor or an alias of YAML; edit it by hand")
    return nodes


def _end(node: Any) -> int:
    """Return the end of a value; to the library, a block ends at the start of the next thing."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        return _end(last[-1] if isinstance(last, tuple) else last)
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        raise NotPossible(f"a text after {node.style} has no clear end: write it in quotes")
    return int(node.end_mark.index)
