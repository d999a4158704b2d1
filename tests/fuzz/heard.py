"""How a line may be read: as the proxy reads it, and as anyone might who reads otherwise."""

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Raw, Struct

from proxy.document import message
from proxy.document.message import Message
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError
from tests.fuzz.reading import Response, valid

OURS = re.compile(rb"abridge-[0-9a-f]{24}-")
_ID = re.compile(rb'(?i)"id"\s*:\s*("(?:[^"\\]|\\.)*"|\[[^\]]*\]|\{[^}]*\}|[^\s,}\]]+)')
_MARK = b"\xef\xbb\xbf"


class Request(Struct):
    """A request that is on its way to the server; `ours`: the proxy's own."""

    exchange: bytes
    id: str
    method: str
    tool: str
    ours: bool


def requests(raw: bytes, exchange: bytes) -> Iterator[Request]:
    for element in elements(raw):
        held = read(element)
        if held is None or held.method is ABSENT or held.key in (None, b"null"):
            continue
        id, ours = bytes(held.id), OURS.search(bytes(held.id)) is not None
        yield Request(exchange, id.decode("utf-8", "surrogatepass"), *named(held), ours)


def elements(raw: bytes) -> list[bytes]:
    """Return the messages of a batch; any other line is one."""
    try:
        held = message.read(raw)
    except DocumentError:
        return [raw]
    return [raw] if isinstance(held, Message) else [bytes(each) for each in held]


def read(raw: bytes) -> Message | None:
    """Return the envelope of a message, None for what the proxy cannot read."""
    try:
        held = message.read(raw)
    except DocumentError:
        return None
    return held if isinstance(held, Message) else None


def leniently(raw: bytes) -> Message | None:
    """Read a message that may be one only to other readers than the proxy."""
    found = read(raw)
    if found is None and valid(raw.decode("utf-8", "replace")):
        held = Response.of(raw).envelope
        words = {name: Raw(value.encode("utf-8", "surrogatepass")) for name, value in held.items()}
        names = Message.__struct_fields__
        found = Message(**{name: words[name] for name in names if name in words})
    return found


def named(held: Message) -> tuple[str, str]:
    """Return the method of a message and the tool it calls, empty where there is none."""
    verb = held.verb
    tool = None if held.params is ABSENT else message.string_at(held.params, "name")
    return verb, tool or ""


def ids(raw: bytes) -> set[bytes]:
    """Return the ids that some reader of a line might find in it, null among them."""
    return {b"null", *map(message.id_key, _ID.findall(raw))}


def called(raw: bytes) -> set[str]:
    """Name every tool that some reader of a line might find called in it."""
    found: set[str] = set()
    for each in _paired(raw):
        if "tools/call" in [word for word in _values(each, "method") if isinstance(word, str)]:
            names = [name for held in _values(each, "params") for name in _values(held, "name")]
            found |= {name for name in names if isinstance(name, str)}
    return found


def limits(raw: bytes) -> Iterator[float]:
    """Yield every `limit` that some reader of a call might find among its arguments."""
    for each in _paired(raw):
        for params in _values(each, "params"):
            for held in _values(params, "arguments"):
                for value in _values(held, "limit"):
                    if isinstance(value, float):
                        yield value


class _Pairs(list[Any]):
    """An object as the pairs that stand in it."""


def _paired(raw: bytes) -> list[Any]:
    """Return the messages of a line with their objects as pairs, none where it is no JSON."""
    try:
        held = json.loads(raw.removeprefix(_MARK), object_pairs_hook=_Pairs, parse_int=float)
    except (ValueError, RecursionError):
        return []
    return held if isinstance(held, list) and not isinstance(held, _Pairs) else [held]


def _values(held: Any, name: str) -> list[Any]:
    """Return what stands under a name, letter case aside, however often it does."""
    if not isinstance(held, _Pairs):
        return []
    return [value for key, value in held if key.casefold() == name]
