"""The text of a tree of rich text, in its order: ADF, ProseMirror, Slate, Notion, Quill.

Without it, the description of an issue is a tree of paragraphs, of which nobody reads the text.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from mcp_abridge.document.tree import level, loads

_LEAVES = ("plain_text", "text", "content", "value", "insert")  # members that hold a node's text
_BREAKS = frozenset(("br", "break", "hardBreak", "hard_break", "linebreak"))

_NODES = ("content", "children")  # members that hold the nodes below
_SHARE = 5  # bytes of a tree for each character of its text, at most


def tree_text(raw: Raw, members: dict[str, Raw]) -> str:
    """Return the text of an object if it is a tree of typed nodes, and much of it is text."""
    nodes = next((members[name] for name in _NODES if name in members), None)
    if "type" not in members or nodes is None or memoryview(nodes)[0] != 0x5B:
        return ""
    elements = level(nodes)
    if not all(memoryview(each)[0] == 0x7B and "type" in level(each) for each in elements[:3]):
        return ""
    text = text_of(loads(bytes(raw))) if elements else ""
    return text if len(text) * _SHARE >= len(memoryview(raw)) else ""


def text_of(value: Any) -> str:
    """Return the text of a tree, a block a line.

    >>> text_of([{"content": [{"text": "a "}, {"text": "b"}]}, {"content": [{"text": "c"}]}])
    'a b\\nc'
    """
    return "\n".join(filter(None, _texts(value)))


def _texts(node: Any) -> Iterator[str]:
    """Yield the blocks of a tree of rich text."""
    if isinstance(node, list):
        blocks = ["\n".join(_texts(each)) for each in node]
        inline = any(isinstance(each, dict) and _leaf(each) is not None for each in node)
        yield from ["".join(blocks)] if inline else blocks
    elif isinstance(node, dict):
        if (text := _leaf(node)) is not None:
            yield text
        elif node.get("type") in _BREAKS:
            yield "\n"
        else:
            for member in node.values():
                if isinstance(member, list | dict):
                    yield from _texts(member)
    elif isinstance(node, str):
        yield node


def _leaf(node: dict[str, Any]) -> str | None:
    return next((text for name in _LEAVES if isinstance(text := node.get(name), str)), None)
