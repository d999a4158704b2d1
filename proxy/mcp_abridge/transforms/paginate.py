"""Returns one page of an array; later calls get the others."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Raw, Struct, field

from mcp_abridge.document.measure import encoded_size, member, size, writeback_at
from mcp_abridge.document.own_names import claim
from mcp_abridge.document.paths import ROOT, Name, Path, Step
from mcp_abridge.document.sizes import Size
from mcp_abridge.document.tree import Pieces, Slot, Value, compact, encode, level, text
from mcp_abridge.errors import ShapeMismatch
from mcp_abridge.query.call import Call, Notice
from mcp_abridge.schema.derive import relaxed
from mcp_abridge.transforms.base import Parameter, Schema, WindowTransform

Word = Literal["total", "offset", "limit", "returned", "hasMore", "nextOffset"]
Holder = dict[str, Value]

_WORDS: tuple[Word, ...] = ("total", "offset", "limit", "returned", "hasMore", "nextOffset")


class Window(Struct, frozen=True):
    """An array to page: its place, its value, the rule's path to it."""

    slot: Slot
    value: list[Value]
    path: Path

    def metadata(self, offset: int, limit: int, returned: int, next_offset: int | None) -> Holder:
        values = len(self.value), offset, limit, returned, next_offset is not None, next_offset
        return dict(zip(_WORDS, values, strict=True))


class Paginate(WindowTransform, frozen=True):
    """Return `limit` elements of the array at `at` from `offset` on, and how many there are.

    All paths of `at` share one `limit` and `offset`. Every page has, beside each array,
    `pagination: {total, offset, limit, returned, hasMore, nextOffset}`. `page_info` renames these
    metadata: to the left a path beside the array, to the right one of these words. Only then is an
    existing member of that name replaced; otherwise it becomes `pagination_of_server`. If several
    of the arrays are in one object, each has its own entry, under the array's name. A root array
    is wrapped as `{items: [...], pagination: ...}`, and `as` renames `items`; with `as: null` it
    stays an array, and the metadata are in a further text block. For a text read as lines or
    records, the page is a text again, with the metadata beside it; if all of it fits on the first
    page, it stays unchanged.

    Without `at`, a document that is an object stays unchanged, and a warning is logged.

    A page ends earlier if it would take more than `max_bytes` (its arrays and their metadata), or
    the document more than the rule's bound; never before its first element.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'{"files": ["a", "b", "c"], "vault": "v"}')
    >>> page = Paginate(at=Path.parse("files"), limit=2)
    >>> page(document.root, Call("list", {"offset": 2}))
    >>> document.encode().decode()
    '{"files":["c"],"vault":"v","pagination":{"total":3,"offset":2,"limit":2,"returned":1,"hasMore":false,"nextOffset":null}}'
    """

    name: ClassVar[str] = "paginate"
    shorthand: ClassVar[str | None] = "limit"
    words: ClassVar[tuple[str, str]] = ("limit", "offset")

    at: Path | tuple[Path, ...] = ROOT
    """The array, or several that one window moves; each at one place."""
    limit: Annotated[int, Meta(ge=1)] = 100
    """The number of elements of a page if the call does not ask for another."""
    max_limit: Annotated[int, Meta(ge=1)] | None = None
    """The greatest `limit` that a call may ask for; ten times `limit` by default."""
    max_offset: Annotated[int, Meta(ge=0)] | None = None
    """The greatest offset that a call may ask for."""
    max_bytes: Annotated[Size, Meta(ge=1)] | None = None
    """A page ends before the element that would take it over this many bytes."""
    as_: str | None = field(default="items", name="as")
    """The name of the array if the whole document is one; null: it stays an array."""
    page_info: Mapping[str, Word] | None = None
    """Places of metadata: a path beside the array, and the value to put there."""
    arguments: Mapping[Literal["limit", "offset"], str] = {}
    """Other names for the arguments; a name here wins over an argument of the server."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.most < self.limit:
            raise ValueError(f"'limit' {self.limit} is greater than 'max_limit' {self.most}")
        if not self.paths:
            raise ValueError("'at' names no array")
        if len(self.paths) > 1 and not all(path.steps for path in self.paths):
            raise ValueError("'at' names the whole document beside a part of it")
        for path in map(Path.parse, self.page_info or ()):
            if not path.plain or not path.steps:
                raise ValueError(f"'page_info' has {path.text!r}, which is no path of plain names")
            arrays = [_texts(array.steps)[-1] if array.steps else self.as_ for array in self.paths]
            if _texts(path.steps)[0] in arrays:
                raise ValueError(f"'page_info' has {path.text!r}, where the array itself stands")
        if self._shared and self.page_info is not None:
            raise ValueError(
                "'page_info' names one place beside each array, and several arrays of 'at' stand "
                "in one object; leave 'page_info' out, or page them by windows of their own"
            )

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.at if isinstance(self.at, tuple) else (self.at,)

    @property
    def most(self) -> int:
        return self.max_limit if self.max_limit is not None else 10 * self.limit

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        what = f"of {_listed(self._arrays)}" if self._arrays else "elements"
        return self.integers(
            (1, self.limit, self.most, f"How many {what} to return"),
            (0, 0, self.max_offset, f"How many {what} to skip"),
        )

    def sentence(self, display: Callable[[str], str]) -> str:
        limit, offset = map(display, self.names)
        first = f"If the result is a list, it comes in pages of {self.limit} elements"
        if self._arrays:
            first = f"Returns {_listed(self._arrays)} in pages of {self.limit}"
        words = {word: f"`{name}`" for name, word in self._metadata_names.items()}
        sign, following = "while there is more", " moved on by as many as came"
        if "nextOffset" in words:
            following = f" = {words['nextOffset']}"
            sign = f"while {words['nextOffset']} is not null"
        if "hasMore" in words:
            sign = f"while {words['hasMore']} is true"
        again = f"call again with `{offset}`{following}"
        return f"{first} (`{limit}`, at most {self.most}); {sign}, {again}."

    def __call__(self, root: Slot, call: Call) -> None:
        limit, offset = self.span(call, (self.limit, 0))
        windows, changed = list(self._windows(root, call)), root.document.changed
        if not windows:
            return
        if self.page_info is None:
            beside = (window.slot for window in windows if window.path.steps)
            # An array may have the name of the metadata itself.
            for slot in sorted(beside, key=lambda slot: slot.key != "pagination"):
                slot.key = claim(slot.parent, "pagination", slot.key)
        room = self._room(root, call, windows, limit, offset)
        count = limit if room is None else _count(root, windows, room, limit, offset)
        for window in windows:
            page = window.value[offset : offset + count]
            end = offset + len(page)
            more = end < len(window.value)
            if isinstance(window.value, Pieces) and not (window.path.steps or offset or more):
                window.slot.parent[window.slot.key] = window.value
                root.document.changed = changed
                continue
            if isinstance(window.value, Pieces):
                page = Pieces(page)
                closing = writeback_at(root.document, window.path)
                if closing is not None:
                    closing.more = more
            metadata = window.metadata(offset, limit, len(page), end if more else None)
            call.notices += self._write(window, page, metadata)

    def reshape(self, schema: Schema) -> Schema | None:
        """The arrays may be shorter, and the metadata are beside them."""
        names = [_texts(Path.parse(name).steps) for name in self.page_info or ()]
        return relaxed(schema, *(name for each in names for name in each))

    @property
    def _shared(self) -> bool:
        holders = [path.steps[:-1] for path in self.paths]
        return len(set(holders)) < len(holders)

    @property
    def _arrays(self) -> list[str]:
        return [f"`{path}`" for path in self.paths if path.steps]

    @property
    def _metadata_names(self) -> Mapping[str, Word]:
        if self._shared or (self.page_info is None and not self._arrays):
            return {word: word for word in _WORDS}
        holder = self.paths[0].steps[:-1] if len(self.paths) == 1 else ()
        before = "".join(f"{name}." for name in _texts(holder))
        if self.page_info is None:
            return {f"{before}pagination.{word}": word for word in _WORDS}
        return {before + name: word for name, word in self.page_info.items()}

    def _windows(self, root: Slot, call: Call) -> Iterator[Window]:
        for path in self.paths:
            slot = member(root, path)
            value = None if slot is None else slot.get()
            if slot is not None and not isinstance(value, list):
                value = slot.open()
            if slot is not None and isinstance(value, list):
                yield Window(slot, value, path)
            else:
                call.missing.append(str(path) or "[]")
                if not path.steps and isinstance(value, dict):
                    call.warn(
                        "paginate: an object", "the document is an object; `at` names its array"
                    )

    def _room(
        self, root: Slot, call: Call, windows: list[Window], limit: int, offset: int
    ) -> int | None:
        if self.max_bytes is None and call.bound is None:
            return None
        notice_size, metadata_size = 0, 0
        for window in windows:
            widest = window.metadata(offset, limit, limit, max(offset + limit, 1000))
            metadata_size += len(encode(widest)) + len('"pagination":,[]')
            empty = Pieces() if isinstance(window.value, Pieces) else []
            notices = self._write(window, empty, widest)
            notice_size += sum(len(encode(notice.value)) for notice in notices)
        rooms = []
        if call.bound is not None:
            rooms.append(call.bound - notice_size - size(root.document))
        if self.max_bytes is not None:
            rooms.append(self.max_bytes - metadata_size)
        return min(rooms)

    def _write(self, window: Window, page: list[Value], metadata: Holder) -> list[Notice]:
        slot = window.slot
        if window.path.steps:
            slot.set(page)
            self._add_metadata(slot.parent, metadata, str(slot.key))
            return []
        beside: Holder = {}
        self._add_metadata(beside, metadata, "")
        if isinstance(page, Pieces) or self.as_ is None:
            slot.set(page)
            value = beside if self.page_info is not None else metadata
            return [Notice("pagination", value, bare=True)]
        slot.set({self.as_: page, **beside})
        return []

    def _add_metadata(self, holder: Holder, metadata: Holder, array: str) -> None:
        if self.page_info is None and self._shared:
            entries = holder.get("pagination")
            entries = entries if isinstance(entries, dict) else {}
            holder["pagination"] = {**entries, array: metadata}
        elif self.page_info is None:
            holder["pagination"] = metadata
        else:
            for key, word in self.page_info.items():
                _set(holder, _texts(Path.parse(key).steps), metadata[word])


def _count(root: Slot, windows: list[Window], room: int, limit: int, offset: int) -> int:
    weights = [_weight(root, window) for window in windows]
    for position in range(limit):
        here = offset + position
        room -= sum(
            weight(window.value[here])
            for window, weight in zip(windows, weights, strict=True)
            if here < len(window.value)
        )
        if room < 0:
            return max(position, 1)
    return limit


def _weight(root: Slot, window: Window) -> Callable[[Value], int]:
    closing = writeback_at(root.document, window.path)
    if closing is None:
        return lambda element: encoded_size(element) + 1
    separator = closing.sources[0][2].separator
    if separator is None:
        return lambda element: encoded_size(compact(encode(element)).decode()) - 1
    return lambda element: encoded_size(f"{text(element)}{separator}") - 2


def _texts(steps: tuple[Step, ...]) -> list[str]:
    return [step.text for step in steps if isinstance(step, Name)]


def _listed(words: list[str]) -> str:
    return " and ".join([*([", ".join(words[:-1])] if words[:-1] else []), *words[-1:]])


def _set(holder: Holder, names: list[str], value: Value) -> None:
    first, *rest = names
    if not rest:
        holder[first] = value
        return
    inner = holder.get(first)
    inner = level(inner) if type(inner) is Raw else inner
    if inner is not None and not isinstance(inner, dict):
        raise ShapeMismatch(f"page_info names {'.'.join(names)}, but {first} is no object")
    holder[first] = inner = inner or {}
    _set(inner, rest, value)
