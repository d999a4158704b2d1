"""The shapes that a recast fills: constants, texts with captures and sources, merged."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import UNSET, Struct

from mcp_abridge.document.gather import values_at
from mcp_abridge.document.paths import Name, Step
from mcp_abridge.document.tree import Value, opened
from mcp_abridge.transforms.project import FromExpression, FromPath


class FromArgument(Struct, frozen=True):
    """`{argument, default}`: an argument of the call, and the value if the call has none."""

    argument: str
    """The name of the argument, or a dotted path into one."""
    default: Any = UNSET
    """The value if the call does not have it, or has null."""


Source = FromArgument | FromPath | FromExpression
SOURCES: tuple[type[Struct], ...] = (FromArgument, FromPath, FromExpression)
Part = FromArgument | FromPath | FromExpression | Any
"""A constant, a text with captures, a source; or a mapping or a list of such parts."""


class Leaf(Struct, frozen=True):
    """A part that is filled as a unit, and the keys and positions of its place in the options."""

    part: Any
    at: tuple[str | int, ...]


Shape = Leaf | dict[str, Any] | list[Any]
"""A part, split: the members of dicts and the elements of lists are shapes."""


def taken_apart(part: Any, at: tuple[str | int, ...]) -> Shape:
    """Return a part as a shape; `at` is its place in the options."""
    if isinstance(part, dict):
        return {word: taken_apart(member, (*at, word)) for word, member in part.items()}
    if isinstance(part, tuple | list):
        return [taken_apart(element, (*at, number)) for number, element in enumerate(part)]
    return Leaf(part, at)


def deep_merge(over: Shape, under: Shape) -> Shape:
    """Merge one shape over another: mappings are merged, anything else is replaced."""
    if not isinstance(over, dict) or not isinstance(under, dict):
        return over
    both = {word: deep_merge(over[word], under[word]) for word in over if word in under}
    return {**under, **over, **both}


def leaves(shape: Shape) -> Iterator[Leaf]:
    """Yield every leaf, in order."""
    if isinstance(shape, Leaf):
        yield shape
    else:
        for inner in shape.values() if isinstance(shape, dict) else shape:
            yield from leaves(inner)


@lru_cache(maxsize=1024)
def spelled(content: str) -> tuple[str, ...]:
    """Split a text at its names: every second part is a name. Raises ValueError."""
    parts, end = [""], 0
    for mark in re.finditer(r"\{\{|\}\}|\{(\w+)\}|[{}]", content):
        parts[-1] += content[end : mark.start()]
        end = mark.end()
        if mark[1] is not None:
            parts += [mark[1], ""]
        elif len(mark[0]) == 2:
            parts[-1] += mark[0][0]
        else:
            raise ValueError(
                f"{mark[0]!r} stands alone in {content!r}; a capture is '{{name}}', a brace "
                f"{2 * mark[0]!r}"
            )
    parts[-1] += content[end:]
    return tuple(parts)


def standing(shape: Shape, steps: tuple[Step, ...]) -> Iterator[tuple[Leaf, tuple[Step, ...]]]:
    """Yield the leaves at a path, and the sources on the way with the remaining steps."""
    if isinstance(shape, list):
        if not shape and not steps:
            yield Leaf([], ()), ()  # a list of words may be empty
        for element in shape:
            yield from standing(element, steps)
    elif isinstance(shape, Leaf):
        if not steps or isinstance(shape.part, Source):
            yield shape, steps
    elif not steps:
        # If words are expected, a mapping is wrong with all its members.
        yield Leaf({}, next((leaf.at for leaf in leaves(shape)), ("common",))), ()
    elif isinstance(steps[0], Name) and steps[0].text in shape:
        yield from standing(shape[steps[0].text], steps[1:])


def constant(leaf: Leaf, rest: tuple[Step, ...]) -> Any:
    """Return the value of a leaf that is known before any call, UNSET if none is."""
    if isinstance(leaf.part, Source):
        default = leaf.part.default
        return default if default is UNSET else values_at(default, rest)
    if not isinstance(leaf.part, str):
        return leaf.part
    try:
        literal, *names = spelled(leaf.part)
    except ValueError:
        return UNSET
    return UNSET if names else literal


def unknown_word(value: Value, words: tuple[str, ...]) -> Value:
    """Return the first value that is none of `words` or null, arrays included; else None."""
    inner = opened(value)
    if isinstance(inner, list):
        strangers = (unknown_word(each, words) for each in inner)
        return next((mark for mark in strangers if mark is not None), None)
    return None if inner is UNSET or inner is None or inner in words else inner
