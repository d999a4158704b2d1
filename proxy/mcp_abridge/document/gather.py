"""Reading of the values at a path in a value, or in every element of an array, without opening it.

In an unopened value, the decoder skips every member that no path names.
"""

from collections.abc import Iterator
from functools import lru_cache

import msgspec
from msgspec import UNSET, Struct, UnsetType

from mcp_abridge.document.paths import Deep, Each, Index, Name, Path, Paths, Step, fits
from mcp_abridge.document.rows import row_type
from mcp_abridge.document.tree import Value, one_row, opened, rows


def row_type_for(paths: Paths) -> type[Struct] | None:
    """Return the row type that reads the members in `paths`; None unless all are plain names."""
    if not paths.plain or paths.ends:
        return None
    inner = {name: row_type_for(after) for name, after in paths.names.items() if not after.ends}
    return row_type(paths.names, inner)


def column_values(array: Value, path: Path) -> list[Value]:
    """Return the value at `path` in each element of an array, UNSET if an element has none."""
    row = _row(path)
    decoded = None if row is None else rows(array, row)
    return [values_at(each, path.steps) for each in (opened(array) if decoded is None else decoded)]


def values_at(value: Value, steps: tuple[Step, ...]) -> Value | UnsetType:
    """Return the value at `steps` below `value`; through arrays and patterns a list of values."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, Deep):
        return list(_deep(value, rest))
    if isinstance(step, Name) and not step.glob:
        row = value if isinstance(value, Struct) else one_row(value, _single(step.text))
        if row is not None:
            field = _fields(type(row)).get(step.text)
            member = UNSET if field is None else getattr(row, field)
            return member if member is UNSET else values_at(member, rest)
    inner = value if isinstance(value, list) else opened(value)
    if isinstance(inner, list):
        if isinstance(step, Index):
            at = step.position
            return values_at(inner[at], rest) if -len(inner) <= at < len(inner) else UNSET
        below, further = inner, rest if isinstance(step, Each) else steps
    elif not isinstance(inner, dict) or not isinstance(step, Name):
        return UNSET
    elif not step.glob:
        return values_at(inner[step.text], rest) if step.text in inner else UNSET
    else:
        below, further = [inner[name] for name in inner if fits(step, name)], rest
    return [part for each in below if (part := values_at(each, further)) is not UNSET]


def _deep(value: Value, steps: tuple[Step, ...]) -> Iterator[Value]:
    inner = opened(value)
    # A name steps into the elements of an array: the loop below visits them.
    if not (isinstance(inner, list) and steps and isinstance(steps[0], Name)):
        below_value = values_at(inner, steps)
        if below_value is not UNSET:
            yield below_value
    below = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
    for each in below:
        yield from _deep(each, steps)


@lru_cache(maxsize=64)
def _row(path: Path) -> type[Struct] | None:
    return row_type_for(Paths.of([path]))


@lru_cache(maxsize=256)
def _single(name: str) -> type[Struct] | None:
    return row_type((name,))


@lru_cache(maxsize=256)
def _fields(row: type[Struct]) -> dict[str, str]:
    return {field.encode_name: field.name for field in msgspec.structs.fields(row)}
