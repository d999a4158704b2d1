r"""The value inside a tool result, decoded one level at a time along the paths that a rule reads.

Unopened parts stay the bytes that the upstream sent, so that a kept value keeps its spelling
(`1.0`, `1e400`, 23 digits, `-0`, `\/`) and costs nothing.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from struct import Struct as Bytes
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.garbage import uncollected
from mcp_abridge.document.surrogates import replace_lone
from mcp_abridge.errors import DocumentError
from mcp_abridge.system import platform

if TYPE_CHECKING:
    from mcp_abridge.document.measure import TextWriteback

TOO_DEEP = "nested too deeply"
"""The reason why JSON of some hundred levels is not read."""

LARGE = 256 << 10
"""The bytes of JSON from which time and memory need care."""
_MANY = 1024  # elements, of which one of so many is looked at:
_STEP = 64
_TIMES = 8  # bytes of memory for each byte of a document, nearly always at most


def have_room(size: int) -> None:
    """Raise MemoryError if a document of `size` bytes is likely to exceed the memory."""
    if size < LARGE:
        return
    try:
        platform.reserve(_TIMES * size)
    except (ImportError, OSError, OverflowError, ValueError):
        raise MemoryError(f"for a document of {size} bytes") from None


# A plain tree. Members are Raw until they are opened; numbers stay Raw. `rows` turns an array of
# objects into a list of Structs with Raw fields.
Value = Any

# The value of a Struct field of type Raw if its member is absent (`Raw | None` decodes wrongly).
ABSENT = Raw()

_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_ARRAY = msgspec.json.Decoder(list[Raw])
_STRING = msgspec.json.Decoder(str)
_ANY = msgspec.json.Decoder(Raw)
UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
head = Bytes("B").unpack_from  # the first byte in a tuple, in half the time of a memoryview
OBJECT, ARRAY, STRING = (0x7B,), (0x5B,), (0x22,)
_LEVELS: dict[Any, Any] = {OBJECT: _OBJECT, ARRAY: _ARRAY, STRING: _STRING}
_KINDS = {'"': "string", "{": "object", "[": "array", "n": "null"}
_WORDS: dict[bytes, Value] = {b"null": None, b"true": True, b"false": False}


class Pieces(list[Value]):
    """The pieces that a text was cut into; they are joined before it is written."""


class Slot(msgspec.Struct, eq=False):
    """A place in a document: a member of an object, an element of an array, or the root."""

    document: "Document"
    parent: Any
    key: str | int

    def get(self) -> Value:
        return self.parent[self.key]

    def open(self) -> Value:
        """Return the value at this place with its outermost level decoded; a number stays Raw.

        Objects and arrays are stored back opened, their members Raw; the stored form of any other
        value stays unchanged. Raises DocumentError if the bytes are no JSON.
        """
        value = self.parent[self.key]
        document = self.document
        if document.ready is not None and value is document.source:
            content, document.ready = document.ready, None
        else:
            content = opened(value)
        if content is not value and isinstance(content, dict | list):
            self.parent[self.key] = content
        return content

    def set(self, value: Value) -> None:
        self.parent[self.key] = value
        self.document.changed = True

    def rename(self, name: str) -> None:
        """Rename this member of an object in place; another member of that name is removed."""
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
        """Return the place of a member or element of the value here, which must be opened."""
        return Slot(self.document, self.parent[self.key], key)

    def children(self) -> Iterator["Slot"]:
        """Yield the places of all members or elements; none if this is no object or array."""
        value = self.open()
        if isinstance(value, dict):
            for name in list(value):
                yield Slot(self.document, value, name)
        elif isinstance(value, list):
            for position in range(len(value)):
                yield Slot(self.document, value, position)


class Document:
    """A root value, a flag for changes in it, and what writes parsed texts back.

    `compact`: no unopened part of it has white space between its tokens.
    """

    __slots__ = ("cell", "changed", "closers", "compact", "ready", "source")

    def __init__(self, value: Value, *, compact: bool = False) -> None:
        self.cell = [value]
        self.compact = compact
        # Steps change an array in place if it is given opened.
        self.source = value.copy() if type(value) is list else value
        self.ready: Value = None  # the source's outermost level, once decoded
        self.changed = False
        self.closers: list[TextWriteback] = []

    @classmethod
    def read(cls, raw: bytes) -> "Document":
        """Decode one JSON value; a lone surrogate becomes U+FFFD. Raises DocumentError."""
        try:
            return cls._read(raw)
        except msgspec.DecodeError as error:
            repaired = replace_lone(raw)
            if repaired is not raw:
                return cls.read(repaired)
            raise DocumentError(f"not JSON: {error}") from error
        except RecursionError as error:
            raise DocumentError("nested too deeply") from error

    @classmethod
    def _read(cls, raw: bytes) -> "Document":
        # Nearly every step opens an object, or rows, and to open it also checks that it is one.
        rows = raw.startswith(b"[{") and raw.endswith(b"]")
        if not (rows or raw.startswith(b"{")):
            return cls(_ANY.decode(raw))
        document = cls(Raw(raw))
        document.ready = (_ARRAY if rows else _OBJECT).decode(raw)
        return document

    @property
    def root(self) -> Slot:
        return Slot(self, self.cell, 0)

    @property
    def textual(self) -> bool:
        """True if the whole document is a text (or a text read as lines or records)."""
        return self.kind == "string"

    @property
    def kind(self) -> str:
        """The JSON type of the whole document; unopened parts and rows stay as they are."""
        value = self.cell[0]
        if type(value) is Raw:
            return _KINDS.get(chr(memoryview(value)[0]), "scalar")
        if isinstance(value, str | Pieces):
            return "string"
        if isinstance(value, dict | msgspec.Struct):
            return "object"
        return "array" if isinstance(value, list) else "null" if value is None else "scalar"

    def close(self) -> None:
        """Write back the texts that steps read as structure for later steps, the last one first."""
        while self.closers:
            self.closers.pop().write(self)

    def encode(self) -> bytes:
        """Return the document as compact JSON; kept values keep their spelling."""
        return compact(encode(self.cell[0]))

    def json_of(self, value: Value) -> Raw:
        """Return a value that parts of this document are in as compact JSON, itself if it is."""
        whole = raw(value)
        content = whole if self.compact else compact(whole)
        return whole if len(memoryview(content)) == len(memoryview(whole)) else Raw(content)


def level(value: Raw) -> Value:
    """Decode the outermost level of `value`: dict or list of Raw, str, bool, None, Raw numbers."""
    decoder = _LEVELS.get(head(value))
    if decoder is None:
        return _WORDS.get(bytes(value), value) if len(value) < 6 else value
    try:
        # Decoded from the Raw itself: parts decoded from a view would keep the view alive, which
        # takes several times as much memory.
        return decoder.decode(value)
    except UNREADABLE as error:
        raise DocumentError(f"not JSON: {error}") from error


def opened(value: Value) -> Value:
    """Return `value`, of any form, with its outermost level decoded; see `Slot.open`."""
    if type(value) is Raw:
        return level(value)
    if isinstance(value, msgspec.Struct):
        return _as_object(value)
    if isinstance(value, list):
        first = next((row for row in value if row is not None), None)
        if isinstance(first, msgspec.Struct):
            return [_as_object(row) for row in value]
    return value


def text(value: Value) -> str | None:
    """Return `value` as a string if it is one, else None."""
    if type(value) is Raw:
        value = level(value) if head(value) == STRING else None
    return value if isinstance(value, str) else None


def to_text(value: Value) -> str:
    """Return `value` itself if it is a string, else its compact JSON."""
    string = value if isinstance(value, str) else text(value)
    return compact(encode(value)).decode() if string is None else string


def encode(value: Value, *, ordered: bool = False) -> bytes:
    """Return `value` as JSON; Raw parts are embedded unchanged. `ordered`: members by name."""
    encoder = _ORDERED if ordered else _ENCODER
    return bytes(value if type(value) is Raw else _buffer_of(value, encoder))


def encode_lines(values: list[Value]) -> list[bytes]:
    """Return each of the values as JSON, which has no line ends unless Raw parts have some."""
    return _ENCODER.encode_lines(values).splitlines()


def compact(raw: bytes) -> bytes:
    """Return JSON without white space between its tokens; every token keeps its spelling."""
    return msgspec.json.format(raw, indent=-1)


def raw(value: Value) -> Raw:
    """Return `value` encoded as one Raw."""
    return value if type(value) is Raw else Raw(_buffer_of(value, _ENCODER))


def _buffer_of(value: Value, encoder: msgspec.json.Encoder) -> bytearray:
    # Not the encoder's `encode`, which crashes if there is no memory for the output to grow.
    output = bytearray(_about(value))
    encoder.encode_into(value, output)
    return output


def _about(value: Value) -> int:
    """Estimate the bytes of many elements: a buffer that grows moves, and leaves holes behind."""
    if isinstance(value, dict):
        return sum(_about(e) for e in islice(value.values(), _STEP) if type(e) is not Raw)
    if not isinstance(value, list) or len(value) < _MANY:
        return 0
    return len(encode(value[::_STEP])) * (_STEP + 1)


class Number(float):
    """A number that keeps its spelling."""

    __slots__ = ("spelling",)

    def __init__(self, spelling: str) -> None:
        self.spelling = spelling


# jmespath identifies types by the name of the class.
Number.__name__ = "float"


def _spelled(value: object) -> Raw:
    if isinstance(value, Number):
        return Raw(value.spelling.encode())
    raise NotImplementedError


_ENCODER = msgspec.json.Encoder(enc_hook=_spelled)
_ORDERED = msgspec.json.Encoder(enc_hook=_spelled, order="sorted")


def plain(value: Value, row: type[msgspec.Struct] | None = None, fuel: Fuel | None = None) -> Any:
    """Return `value` fully decoded; numbers that Python would spell differently become `Number`.

    With `row`, an unopened object has just the members of `row`. Raises DocumentError if the bytes
    are no JSON, OutOfFuel if decoding takes more fuel than there is.
    """
    members = one_row(value, row)
    output = encode(value if members is None else members)
    if fuel is not None:
        fuel.burn(len(output) >> 6)
    return loads(output)


def loads(data: bytes) -> Any:
    """Decode JSON fully; see `plain`."""
    if len(data) < LARGE:
        return _loads(data)
    with uncollected():
        return _loads(data)


def has_minus_zero(data: bytes) -> bool:
    """Return True if JSON has the integer -0, whose sign the quick decoder drops."""
    if b"-0" not in data:
        return False
    import re

    return re.search(rb"-0(?<![^\[:,\s]-0)(?![.eE\d])", data) is not None


def _loads(data: bytes) -> Any:
    try:
        # The quick decoder refuses too long an integer, too.
        if not has_minus_zero(data):
            return _PLAIN.decode(data)
    except msgspec.ValidationError:
        pass
    except RecursionError:
        raise DocumentError(TOO_DEEP) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DocumentError(f"not JSON: {error}") from error
    import json

    try:
        return json.loads(data, parse_float=Number, parse_int=_integer, parse_constant=_no_constant)
    except RecursionError:
        raise DocumentError(TOO_DEEP) from None
    except ValueError as error:
        raise DocumentError(f"not JSON: {error}") from error


def _integer(spelling: str) -> int | Number:
    return Number(spelling) if spelling == "-0" or len(spelling) > 4000 else int(spelling)


def _no_constant(spelling: str) -> float:
    raise ValueError(f"{spelling} is no JSON")


_PLAIN = msgspec.json.Decoder(float_hook=Number)


def rows(
    value: Value, row: type[msgspec.Struct] | None, of_float: Callable[[str], Any] | None = None
) -> list[msgspec.Struct | None] | None:
    """Decode an unopened array of objects and nulls to Structs; None if it is anything else.

    None without a `row` too. `of_float` makes the floats in fields that are no Raw.
    """
    if row is None:
        return None
    kind: Any = list[row | None]  # type: ignore[valid-type]
    return decoded(value, 0x5B, kind, of_float)  # type: ignore[no-any-return]


def one_row(value: Value, row: type[msgspec.Struct] | None) -> msgspec.Struct | None:
    """Decode an unopened object straight to a Struct; None as for `rows`."""
    return None if row is None else decoded(value, 0x7B, row)


def decoded(
    value: Value, head: int, kind: Any, of_float: Callable[[str], Any] | None = None
) -> Any:
    """Decode an unopened value that begins with the byte `head`; None if it is of another kind."""
    if type(value) is not Raw or memoryview(value)[0] != head:
        return None
    try:
        if of_float is not None:
            return msgspec.json.Decoder(kind, float_hook=of_float).decode(value)
        return msgspec.json.decode(value, type=kind)
    except UNREADABLE:
        return None


def _as_object(row: msgspec.Struct | Value) -> Value:
    if not isinstance(row, msgspec.Struct):
        return row
    values = zip(row.__struct_encode_fields__, msgspec.structs.astuple(row), strict=True)
    return {name: value for name, value in values if value is not UNSET}
