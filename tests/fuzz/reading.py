"""Reads JSON for the oracles by tokens, as they are spelled, and as any other reader might.

Nothing is decoded but the names of members, so that no number is too much.
"""

import json
import re
from collections.abc import Iterator
from functools import cached_property

from mcp_abridge.document import message
from mcp_abridge.document.message import Message
from mcp_abridge.document.tree import ABSENT
from mcp_abridge.errors import DocumentError
from msgspec import Raw, Struct

OURS = re.compile(rb"abridge-[0-9a-f]{24}-")  # the ids of the proxy's own requests
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SPACE = re.compile(r"[ \t\r\n]*")
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)
_ID = re.compile(rb'(?i)"id"\s*:\s*("(?:[^"\\]|\\.)*"|\[[^\]]*\]|\{[^}]*\}|[^\s,}\]]+)')

_CALL = re.compile(rb'(?i)"method"\s*:\s*"tools\\?/call"')
_NAME = re.compile(rb'(?i)"name"\s*:\s*"(\w+)"')
_LIMIT = re.compile(rb'(?i)"limit"\s*:\s*(\d+)')


class Response(Struct, frozen=True, dict=True):
    """A response line, split; of several members with one name the last counts."""

    line: str

    @classmethod
    def of(cls, raw: bytes) -> "Response":
        return cls(raw.decode("utf-8", "surrogatepass"))

    @cached_property
    def envelope(self) -> dict[str, str]:
        return members(self.line)

    @cached_property
    def result(self) -> dict[str, str]:
        return members(self.envelope.get("result", "{}"))

    @cached_property
    def blocks(self) -> list[str]:
        return elements(self.result.get("content", "[]"))

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the text blocks and embedded text resources."""
        return [text for block in self.blocks if (text := _text_of(block)) is not None]

    @property
    def others(self) -> list[str]:
        return [block for block in self.blocks if _text_of(block) is None]

    @property
    def structured(self) -> str | None:
        value = self.result.get("structuredContent")
        return None if value == "null" else value

    @property
    def failed(self) -> bool:
        return "error" in self.envelope or self.result.get("isError") == "true"


def _text_of(block: str) -> str | None:
    fields = members(block)
    if fields.get("type") == '"resource"':
        fields = members(fields.get("resource", "{}"))
    elif fields.get("type") != '"text"':
        return None
    text = fields.get("text", "")
    return json.loads(text) if text[:1] == '"' else None


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def bare(text: str) -> str:
    return "".join(tokens(text))


def numbers(text: str) -> list[str]:
    """Return the numbers in JSON as they are spelled, without those in its strings."""
    return [token for token in tokens(text) if _NUMBER.fullmatch(token)]


def members(text: str) -> dict[str, str]:
    """Return the members of an object by name, as they are spelled; none if it is no object."""
    return {json.loads(name): value for name, value in pairs(text)}


def elements(text: str) -> list[str]:
    return [value for _, value in pairs(text, "[")]


def pairs(text: str, opening: str = "{") -> list[tuple[str, str]]:
    """Return the members of an object, or the elements of an array, as they are spelled.

    The names are JSON too, and empty before elements. A text that is neither has none.
    """
    try:
        return list(_pairs(text, opening))
    except (ValueError, IndexError, RecursionError):
        return []


def _pairs(text: str, opening: str) -> Iterator[tuple[str, str]]:
    at = _past(text, 0)
    if text[at : at + 1] != opening:
        return
    at = _past(text, at + 1)
    while text[at] not in "}]":
        name = ""
        if opening == "{":
            end = _SCANNER.raw_decode(text, at)[1]
            name, at = text[at:end], _past(text, _past(text, end) + 1)
        end = _SCANNER.raw_decode(text, at)[1]
        yield name, text[at:end]
        at = _past(text, end)
        at = _past(text, at + 1) if text[at] == "," else at


def _past(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def valid(text: str) -> bool | None:
    """Return True if a text is JSON; None if it is nested too deeply to tell."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=refuse)
    except RecursionError:
        return None
    except ValueError:
        return False
    return True


# Messages, as the proxy reads them


def envelope(raw: bytes) -> Message | None:
    """Return a message; None for a line that the proxy cannot read."""
    try:
        line = message.read(raw)
    except DocumentError:
        return None
    return line if isinstance(line, Message) else None


def method_and_tool(read: Message) -> tuple[str, str]:
    """Return the method of a message and the tool that it calls; empty if there is none."""
    tool = None if read.params is ABSENT else message.string_at(read.params, "name")
    return read.verb, tool or ""


# Messages, as other readers may read them


def leniently(raw: bytes) -> Message | None:
    """Return a message that only other readers than the proxy may take for one."""
    line = envelope(raw)
    if line is None and valid(raw.decode("utf-8", "replace")):
        fields = {name: Raw(value.encode()) for name, value in Response.of(raw).envelope.items()}
        names = Message.__struct_fields__
        line = Message(**{name: fields[name] for name in names if name in fields})
    return line


def ids(raw: bytes) -> set[bytes]:
    """Return the ids that some reader of a line might find in it, null among them."""
    return {b"null", *map(message.id_key, _ID.findall(raw))}


def called_tools(raw: bytes) -> set[str]:
    """Return every tool that some reader of a line might find called in it."""
    return {name.decode() for name in _NAME.findall(raw)} if _CALL.search(raw) else set()


def limits(raw: bytes) -> list[int]:
    """Return every `limit` that some reader of a call might find in it."""
    return [int(digits) for digits in _LIMIT.findall(raw)]
