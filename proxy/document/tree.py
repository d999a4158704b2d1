r"""The value inside a tool result, opened one level at a time along the paths a rule looks at.

Whatever is not opened stays the bytes that upstream sent, so that a kept value is spelled as it
came (`1.0`, `1e400`, 23 digits, `-0`, `\/`) and is not paid for.
"""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from proxy.document.fuel import Fuel
from proxy.document.surrogates import mask, maskable, unmask
from proxy.errors import DocumentError

_LARGE = 256 << 10  # bytes
_TIMES = 8  # bytes of memory at most, nearly always, for each byte of a document


def have_room(size: int) -> None:
    """Raise MemoryError where so large a document is likely to be too much; `size` is in bytes.

    >>> have_room(1000)
    """
    if size < _LARGE:
        return
    try:
        import mmap

        private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANON} if hasattr(mmap, "MAP_ANON") else {}
        # Address space alone: nothing is ever written to it.
        mmap.mmap(-1, _TIMES * size, **private).close()
    except (ImportError, OSError, OverflowError, ValueError):
        raise MemoryError(f"for a document of {size} bytes") from None


# A plain tree. Members are Raw until something looks inside; numbers stay Raw for good; a list of
# Structs with Raw fields is what `rows` makes of an array of objects.
Value = Any

# What a Struct field of type Raw holds where its member is absent (`Raw | None` decodes wrongly).
ABSENT = Raw()

_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_ARRAY = msgspec.json.Decoder(list[Raw])
_OBJECTS = msgspec.json.Decoder(list[dict[str, Raw] | None])
_STRING = msgspec.json.Decoder(str)
_ANY = msgspec.json.Decoder(Raw)
_LARGE = 256 << 10  # bytes
_PAUSE = 30.0  # seconds that the garbage collector may be put off
_collected = monotonic()
_WORDS: dict[bytes, Value] = {b"null": None, b"true": True, b"false": False}


class Pieces(list[Value]):
    """An array that stands for a text cut into pieces; joined again before it is written."""


class Slot:
    """A place in a document: a member of an object, an element of an array, or the root."""

    __slots__ = ("document", "key", "parent")

    def __init__(self, document: "Document", parent: Any, key: str | int) -> None:
        self.document = document
        self.parent = parent
        self.key = key

    def get(self) -> Value:
        """Return what stands here as it is, opened or not."""
        return self.parent[self.key]

    def open(self) -> Value:
        """Return what stands here with its outermost level decoded.

        Objects and arrays are stored back opened (their members Raw); strings, booleans and null
        are returned decoded and stay as they were; a number is returned as Raw. Raises
        DocumentError for bytes that are no JSON.
        """
        value = self.parent[self.key]
        document = self.document
        if document.ready is not None and value is document.source:
            found, document.ready = document.ready, None
        else:
            found = opened(value)
        if found is not value and isinstance(found, dict | list):
            self.parent[self.key] = found
        return found

    def set(self, value: Value) -> None:
        """Put `value` here."""
        self.parent[self.key] = value
        self.document.changed = True

    def remove(self) -> None:
        """Take this member or element away."""
        del self.parent[self.key]
        self.document.changed = True

    def rename(self, name: str) -> None:
        """Give this member of an object another name, where it stands; an old holder of it goes."""
        members = dict(self.parent)
        self.parent.clear()
        for key, value in members.items():
            if key == self.key:
                self.parent[name] = value
            elif key != name:
                self.parent[key] = value
        self.key = name
        self.document.changed = True

    def child(self, key: str | int) -> "Slot":
        """Return the place of a member or element of what stands here, which must be opened."""
        return Slot(self.document, self.parent[self.key], key)

    def children(self) -> Iterator["Slot"]:
        """Yield the places of all members or elements, none where this is no object or array."""
        value = self.open()
        if isinstance(value, dict):
            for name in list(value):
                yield Slot(self.document, value, name)
        elif isinstance(value, list):
            for position in range(len(value)):
                yield Slot(self.document, value, position)


class Document:
    """A root value, whether anything in it was changed, and what must be undone before writing.

    >>> document = Document.read(b'{"a": [1.0, {"b": "x"}], "c": 1e400}')
    >>> document.root.child("a").remove() if document.root.open() else None
    >>> document.encode()
    b'{"c":1e400}'
    """

    __slots__ = ("cell", "changed", "closers", "masked", "ready", "source")

    def __init__(self, value: Value, *, masked: bool = False) -> None:
        self.cell = [value]
        # Steps change an array that is given opened where it stands.
        self.source = value.copy() if type(value) is list else value
        self.ready: dict[str, Raw] | None = None  # the source's outermost level, once decoded
        self.masked = masked
        self.changed = False
        self.closers: list[Callable[[], None]] = []

    @classmethod
    def read(cls, raw: bytes) -> "Document":
        """Take `raw`, one JSON value. Raises DocumentError where it is none."""
        try:
            return cls._read(raw)
        except msgspec.DecodeError as error:
            if maskable(raw, error):
                try:
                    found = cls._read(mask(raw))
                except (msgspec.DecodeError, RecursionError) as again:
                    raise DocumentError(f"not JSON: {again}") from again
                found.masked = True
                return found
            raise DocumentError(f"not JSON: {error}") from error
        except RecursionError as error:
            raise DocumentError("nested too deeply") from error

    @classmethod
    def _read(cls, raw: bytes) -> "Document":
        # Nearly every step opens an object, and opening it says as well whether it is one.
        if raw[:1] != b"{":
            return cls(_ANY.decode(raw))
        document = cls(Raw(raw))
        document.ready = _OBJECT.decode(raw)
        return document

    @property
    def root(self) -> Slot:
        """The place of the whole document."""
        return Slot(self, self.cell, 0)

    @property
    def textual(self) -> bool:
        """True where the whole document is a text (or a text read as lines or records)."""
        value = self.cell[0]
        if type(value) is Raw:
            return bytes(memoryview(value)[:1]) == b'"'
        return isinstance(value, str | Pieces)

    @property
    def kind(self) -> str:
        """The JSON type of the whole document; unopened parts and rows stay as they are.

        >>> Document.read(b'{"a": 1}').kind, Document.read(b"[1]").kind, Document("x").kind
        ('object', 'array', 'string')
        """
        value = self.cell[0]
        if self.textual:
            return "string"
        head = memoryview(value)[:1].tobytes() if type(value) is Raw else b""
        if head == b"{" or isinstance(value, dict | msgspec.Struct):
            return "object"
        if head == b"[" or isinstance(value, list):
            return "array"
        return "null" if value is None or head == b"n" else "scalar"

    def close(self) -> None:
        """Undo what steps opened for others (texts read as structure), the last one first."""
        while self.closers:
            self.closers.pop()()

    def encode(self) -> bytes:
        """Return the document as compact JSON; kept values are spelled as they came."""
        raw = compact(encode(self.cell[0]))
        return unmask(raw) if self.masked else raw


def level(value: Raw) -> Value:
    """Decode the outermost level of `value`: dict or list of Raw, str, bool, None, Raw numbers."""
    raw = memoryview(value)
    head = raw[0]
    try:
        # Decoded from the Raw itself: what is kept of it would keep the view of it too, which
        # takes several times as much memory.
        if head == 0x7B:
            return _OBJECT.decode(value)
        if head == 0x5B:
            return _ARRAY.decode(value)
        if head == 0x22:
            return _STRING.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DocumentError(f"not JSON: {error}") from error
    return _WORDS.get(bytes(raw), value) if len(raw) < 6 else value


def opened(value: Value) -> Value:
    """Return `value` with its outermost level decoded, whatever form it has; see `Slot.open`."""
    if type(value) is Raw:
        return level(value)
    if isinstance(value, msgspec.Struct):
        return _as_object(value)
    if isinstance(value, list) and _typed(value):
        return [_as_object(row) for row in value]
    return value


def text(value: Value) -> str | None:
    """Return `value` as a string where it is one, else None."""
    if type(value) is Raw:
        value = level(value) if memoryview(value)[0] == 0x22 else None
    return value if isinstance(value, str) else None


def encode(value: Value, *, ordered: bool = False) -> bytes:
    """Return `value` as JSON; Raw parts are embedded as they are. `ordered`: members by name."""
    # Not its `encode`, which crashes where the output finds no memory to grow into.
    written = bytearray()
    (_ORDERED if ordered else _ENCODER).encode_into(value, written)
    return bytes(written)


def compact(raw: bytes) -> bytes:
    """Return JSON without white space between its tokens; every token stays as it was spelled."""
    return msgspec.json.format(raw, indent=-1)


def raw(value: Value) -> Raw:
    """Return `value` encoded as one Raw."""
    return value if type(value) is Raw else Raw(encode(value))


class Number(float):
    """A number that remembers how it was spelled."""

    def __new__(cls, spelling: str) -> "Number":
        number = super().__new__(cls, spelling)
        number.spelling = spelling
        return number

    spelling: str


# jmespath tells types by the name of the class.
Number.__name__ = "float"


def _spelled(value: object) -> Raw:
    if isinstance(value, Number):
        return Raw(value.spelling.encode())
    raise NotImplementedError


_ENCODER = msgspec.json.Encoder(enc_hook=_spelled)
_ORDERED = msgspec.json.Encoder(enc_hook=_spelled, order="sorted")


def plain(value: Value, row: type[msgspec.Struct] | None = None, fuel: Fuel | None = None) -> Any:
    """Return `value` fully decoded, as dict, list, str, int, float, bool and None.

    Of an unopened object only the members of `row`, where that is given. Numbers that would be
    written differently come as `Number`, which `encode` spells as they came. Raises DocumentError
    for bytes that are no JSON, Spent where decoding takes more than the fuel there is.
    """
    held = None if row is None else one_row(value, row)
    written = encode(value if held is None else held)
    if fuel is not None:
        fuel.burn(len(written) >> 6)
    return loads(written)


def piecemeal(held: Raw) -> Any:
    """Return `plain(held)`, decoded in parts: no other thread waits for more than one of them."""
    if len(memoryview(held)) < _LARGE:
        return loads(bytes(held))
    opened = level(held)
    if isinstance(opened, dict):
        return {name: piecemeal(value) for name, value in opened.items()}
    return [piecemeal(value) for value in opened] if isinstance(opened, list) else opened


def loads(data: bytes) -> Any:
    """Decode JSON fully; see `plain`."""
    if len(data) < _LARGE:
        return _loads(data)
    with uncollected():
        return _loads(data)


@contextmanager
def uncollected() -> Iterator[None]:
    """Put the garbage collector off: it would look again and again through what is only growing.

    It has its turn first where it had none for long: what is put off often enough never happens.
    """
    global _collected
    if not gc.isenabled():
        yield
        return
    if monotonic() > _collected + _PAUSE:
        gc.collect()
        _collected = monotonic()
    gc.disable()
    try:
        yield
    finally:
        # What there is now counts as old: else all of it would be looked through at once.
        gc.freeze()
        gc.unfreeze()
        gc.enable()


def _loads(data: bytes) -> Any:
    import json
    import re

    try:
        # An integer of minus zero loses its sign in the quick decoder; too long a one is refused.
        if b"-0" not in data or re.search(rb"-0(?![.eE\d])", data) is None:
            return _PLAIN.decode(data)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DocumentError(f"not JSON: {error}") from error
    try:
        return json.loads(data, parse_float=Number, parse_int=_integer, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"not JSON: {error}") from error


def _integer(spelling: str) -> int | Number:
    return Number(spelling) if spelling == "-0" or len(spelling) > 4000 else int(spelling)


def _no_constant(spelling: str) -> float:
    raise ValueError(f"{spelling} is no JSON")


_PLAIN = msgspec.json.Decoder(float_hook=Number)


def row_type(
    fields: Iterable[str],
    inner: Mapping[str, type[msgspec.Struct]] | None = None,
    *,
    strict: bool = False,
) -> type[msgspec.Struct]:
    """Make a Struct with one optional Raw field per name, in this order, for `rows`.

    The fields are called `f0`, `f1` and so on. A name in `inner` holds an object of that type, an
    array of such objects and nulls, or null. `strict`: an object has all of these and no others.
    """
    names = {f"f{index}": name for index, name in enumerate(fields)}
    kinds: dict[str, Any] = {
        name: UnsetType | None | row | list[row | None]  # type: ignore[valid-type]
        for name, row in (inner or {}).items()
    }
    return msgspec.defstruct(
        "Row",
        [
            (field, Raw) if strict else (field, kinds.get(name, Raw), UNSET)
            for field, name in names.items()
        ],
        rename=names,
        forbid_unknown_fields=strict,
        omit_defaults=True,
        gc=False,
    )


def rows(value: Value, row: type[msgspec.Struct]) -> list[msgspec.Struct | None] | None:
    """Decode an unopened array of objects straight to Structs, skipping every other member.

    Nulls among the objects stay. Returns None where `value` is opened already or holds anything
    else: use the tree then.
    """
    if type(value) is not Raw or memoryview(value)[0] != 0x5B:
        return None
    try:
        return msgspec.json.decode(value, type=list[row | None])  # type: ignore[valid-type]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def objects(value: Value) -> list[dict[str, Value] | None] | None:
    """Decode an unopened array of objects with their outermost level at once; None as for `rows`.

    Nulls among the objects stay.
    """
    if type(value) is not Raw or memoryview(value)[0] != 0x5B:
        return None
    try:
        return _OBJECTS.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def one_row(value: Value, row: type[msgspec.Struct]) -> msgspec.Struct | None:
    """Decode an unopened object straight to a Struct; None as for `rows`."""
    if type(value) is not Raw or memoryview(value)[0] != 0x7B:
        return None
    try:
        return msgspec.json.decode(value, type=row)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _typed(value: list[Value]) -> bool:
    """Return True if an array was decoded to Structs; nulls may stand among them."""
    first = next((row for row in value if row is not None), None)
    return isinstance(first, msgspec.Struct)


def _as_object(row: msgspec.Struct | Value) -> Value:
    if not isinstance(row, msgspec.Struct):
        return row
    values = zip(row.__struct_encode_fields__, msgspec.structs.astuple(row), strict=True)
    return {name: value for name, value in values if value is not UNSET}
