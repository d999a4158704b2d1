"""The text of rich text, in its order: of HTML, or of a tree (ADF, ProseMirror, Notion, Quill).

Without it, the description of an issue is a tree of paragraphs, and a mail is mostly tags, of which
nobody reads the text.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from mcp_abridge.document.tree import level, loads

_LEAVES = ("plain_text", "text", "content", "value", "insert")  # members that hold a node's text
_BREAKS = frozenset(("br", "break", "hardBreak", "hard_break", "linebreak"))

_NODES = ("content", "children")  # members that hold the nodes below
_IS_HTML = re.compile(r"(?i)<(?:!doctype|html|body|head|div|p|br|span|table|ul|ol|h[1-6])\b")
_BLOCK = re.compile(
    r"(?i)</?(?:address|article|blockquote|br|dd|div|dt|footer|h[1-6]|header|hr|li|ol|p|pre|section"
    r"|table|tr|ul)\b[^<>]*>"
)
_CELL = re.compile(r"(?i)</t[dh]\s*>")
_TAG = re.compile(r"<!--[^<>]*-->|</?[A-Za-z!][^<>]*>")
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_HIDDEN = ("head", "script", "style", "title")
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
    >>> text_of("<style>p {}</style><p>Tom &amp; Ann<br>at <b>6</b></p><td>1</td><td>2</td>")
    'Tom & Ann\\nat 6\\n1 2'
    """
    if isinstance(value, str):
        return _text_of_html(value) if _IS_HTML.search(value) else value
    return "\n".join(filter(None, _texts(value)))


def _text_of_html(html: str) -> str:
    from html import unescape  # its table takes some ms, and few sessions need it

    for name in _HIDDEN:
        html = _without(html, name)
    # Each pattern looks at a sign once: a tag has no other in it.
    lines = _TAG.sub("", _CELL.sub(" ", _BLOCK.sub("\n", " ".join(html.split()))))
    return _LINES.sub("\n", _BLANKS.sub(" ", unescape(lines))).strip()


def _without(html: str, name: str) -> str:
    """Return HTML without the elements of a name, with what is in them."""
    begin, finish = (re.compile(rf"(?i){each}{name}[\s>]") for each in ("<", "</"))
    parts, at = list[str](), 0
    while (start := begin.search(html, at)) and (end := finish.search(html, start.end())):
        parts.append(html[at : start.start()])
        at = html.find(">", end.end() - 1) + 1 or len(html)
    return "".join([*parts, html[at:]])


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
