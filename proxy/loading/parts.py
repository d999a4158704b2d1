"""Reads the parts of the shapes that a recast fills: constants, with sources anywhere in them."""

from typing import Any

from msgspec import Struct

from proxy.loading.fields import BAD, Fields, fields
from proxy.loading.positions import Node
from proxy.spelling import nearest
from proxy.transforms.shapes import SOURCES, Part


def part(notes: Fields, node: Node, label: str) -> Any:
    """Read a part of a shape; see Recast."""
    if isinstance(node.value, list):
        elements = [notes.value(each, Part, label) for each in node.value]
        return BAD if any(each is BAD for each in elements) else tuple(elements)
    if not isinstance(node.value, dict):
        return node.value
    source = _meant(node)
    if source is not None:
        return notes.value(node, source, label)
    members = {word: notes.value(each, Part, word) for word, each in node.value.items()}
    return BAD if any(each is BAD for each in members.values()) else members


def _meant(node: Node) -> type[Struct] | None:
    """Return the source that a mapping is meant as, None where it is a part of the shape itself."""
    for kind in SOURCES:
        known = fields(kind)
        mark = next(iter(known))
        # A mapping or a list is no name, path or expression; a word like none of ours is no slip.
        named = mark in node.value and not isinstance(node.value[mark].value, dict | list)
        if named and all(word in known or nearest(word, known) for word in node.value):
            return kind
    return None
