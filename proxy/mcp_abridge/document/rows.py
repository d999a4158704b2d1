"""Arrays of objects, decoded in one go: types of their rows, and decoders of some members alone.

`tree.rows` decodes to such a type.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypedDict

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcp_abridge.document.tree import (
    ARRAY,
    OBJECT,
    UNREADABLE,
    Number,
    Value,
    decoded,
    has_minus_zero,
    head,
    level,
    loads,
)

_NONE = Raw(b"[]")
_OBJECT_OR_NULL = msgspec.json.Decoder(dict[str, Raw] | None)


class Spelling(str):
    """A number as it is written: to make one takes a fifth of the time of a Number."""

    __slots__ = ()


_OF_FIELDS = frozenset(('"', "\\", *map(chr, range(32)))).isdisjoint  # of the names of fields


def row_type(
    fields: Iterable[str],
    inner: Mapping[str, type[msgspec.Struct] | None] | None = None,
    *,
    strict: bool = False,
    kind: Any = Raw,
) -> type[msgspec.Struct] | None:
    """Make a Struct type with one optional Raw field per name, in this order, for `rows`.

    The fields are called `f0`, `f1` and so on. A name in `inner` holds an object of that type, an
    array of such objects and nulls, or null. Others are of a `kind`. `strict`: an object has all
    these members, and no others. None if a name is one that a Struct's field may not have, here or
    in `inner`.
    """
    return _row_type(tuple(fields), tuple((inner or {}).items()), strict=strict, kind=kind)


@lru_cache(maxsize=32)  # a tool answers in the same form again; to make a type takes 50 us
def _row_type(
    fields: tuple[str, ...],
    inner: tuple[tuple[str, type[msgspec.Struct] | None], ...],
    *,
    strict: bool,
    kind: Any,
) -> type[msgspec.Struct] | None:
    names = {f"f{index}": name for index, name in enumerate(fields)}
    if None in dict(inner).values() or not all(map(_OF_FIELDS, fields)):
        return None
    kinds: dict[str, Any] = {
        name: UnsetType | None | row | list[row | None]  # type: ignore[valid-type]
        for name, row in inner
    }
    return msgspec.defstruct(
        "Row",
        [
            (field, kind) if strict else (field, kinds.get(name, kind), UNSET)
            for field, name in names.items()
        ],
        rename=names,
        forbid_unknown_fields=strict,
        omit_defaults=True,
        gc=False,
    )


def objects(value: Value) -> list[dict[str, Value] | None] | None:
    """Decode an unopened array of objects and nulls with their outermost level; see `rows`."""
    return decoded(value, 0x5B, list[dict[str, Raw] | None])  # type: ignore[no-any-return]


def decoder_of(names: Collection[str], *, spelled: bool = True) -> Callable[[bytes], list[Any]]:
    """Return a function that decodes an array: its objects have just these members.

    Unless they are `spelled`, numbers lose their spelling, which takes most of the time to keep. If
    an element is neither an object nor null, or has a number that is not decoded quickly (see
    `tree.loads`), or for a name beyond ASCII, all is decoded.
    """
    if not all(map(str.isascii, names)):
        return loads  # msgspec finds no such name of a TypedDict
    kind: Any = TypedDict("Row", dict.fromkeys(names, Any), total=False)  # type: ignore[misc]
    hook = Number if spelled else None
    decoder = msgspec.json.Decoder[Any](list[kind | None], float_hook=hook)

    def decode(data: bytes) -> list[Any]:
        try:
            if not has_minus_zero(data):
                return decoder.decode(data)  # type: ignore[no-any-return]
        except UNREADABLE:
            pass
        return loads(data)  # type: ignore[no-any-return]

    return decode


def each_object(values: Iterable[Raw]) -> list[dict[str, Raw] | None] | None:
    """Decode unopened objects and nulls with their outermost level; None if any is another kind."""
    return _each(values, _OBJECT_OR_NULL)


def each_row(
    values: Iterable[Raw], row: type[msgspec.Struct] | None
) -> list[msgspec.Struct | None] | None:
    """Decode unopened objects and nulls to Structs; None if any is another kind. See `rows`."""
    return None if row is None else _each(values, msgspec.json.Decoder(row | None))


def rows_in(
    values: Iterable[Raw | None], row: type[msgspec.Struct] | None
) -> list[list[msgspec.Struct | None]] | None:
    """Decode the elements of each array to Structs; other values have none. See `each_row`."""
    arrays = [_NONE if each is None or head(each) != ARRAY else each for each in values]
    if row is None:
        return None
    kind: Any = list[row | None]  # type: ignore[valid-type]
    return _each(arrays, msgspec.json.Decoder(kind))


def arrays_in(values: Sequence[Raw], name: str) -> list[list[Raw]]:
    """Return the elements of the member `name` of each value; none if it is no array."""
    array: Any = list[Raw] | UnsetType | None
    rows: Any = each_row(values, row_type((name,), kind=array))
    if rows is not None:
        return [each.f0 or [] for each in rows if each is not None]
    members = (level(each).get(name) for each in values if head(each) == OBJECT)
    return [level(each) for each in members if each is not None and head(each) == ARRAY]


def members_in(values: Sequence[Raw | None], name: str) -> list[list[Raw | None]]:
    """Return the member `name` of each element of each array, None for one without it.

    Other values have no elements.
    """
    rows: Any = rows_in(values, row_type((name,)))
    if rows is not None:
        return [[None if e is None or e.f0 is UNSET else e.f0 for e in each] for each in rows]
    arrays = (level(each) if each is not None and head(each) == ARRAY else [] for each in values)
    opened = ([*map(level, each)] for each in arrays)
    return [[e.get(name) if isinstance(e, dict) else None for e in each] for each in opened]


def _each(values: Iterable[Raw], decoder: msgspec.json.Decoder[Any]) -> list[Any] | None:
    try:
        return [*map(decoder.decode, values)]
    except UNREADABLE:
        return None
