"""Reads JSON for the oracles in another way than the proxy does: by tokens, as they are spelled.

No depth and no number is too much for it, and nothing is decoded but the names of members.
"""

import json
import re
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from proxy.document.surrogates import replace_lone

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SPACE = re.compile(r"[ \t\r\n]*")
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)


class Response(Struct, frozen=True, dict=True):
    """A response line, taken apart; members come by name, the last of a name."""

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
        content = self.result.get("content", "[]")
        return elements(content) if content[:1] == "[" else []

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the text blocks and embedded text resources."""
        return [said for block in self.blocks if (said := text_of(block)) is not None]

    @property
    def others(self) -> list[str]:
        return [block for block in self.blocks if text_of(block) is None]

    @property
    def structured(self) -> str | None:
        """The structuredContent, spelled; None where there is none."""
        held = self.result.get("structuredContent")
        return None if held == "null" else held

    @property
    def failed(self) -> bool:
        """True for an error of any kind."""
        return "error" in self.envelope or self.result.get("isError") == "true"


def text_of(block: str) -> str | None:
    held = members(block)
    if held.get("type") == '"resource"':
        held = members(held.get("resource", "{}"))
    elif held.get("type") != '"text"':
        return None
    said = held.get("text", "")
    return json.loads(said) if said[:1] == '"' else None


def replaced(text: str) -> str:
    """Return JSON as a rule reads it: U+FFFD for each surrogate escape without its other half."""
    return replace_lone(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def bare(text: str) -> str:
    return "".join(tokens(text))


def numbers(text: str) -> list[str]:
    """Return the numbers in JSON, as they are spelled; not what stands in its strings."""
    return [token for token in tokens(text) if _NUMBER.fullmatch(token)]


def members(text: str) -> dict[str, str]:
    """Return the members of an object by name, as they are spelled; none where it is no object."""
    return {json.loads(name): value for name, value in _parts(text, "{") if name}


def elements(text: str) -> list[str]:
    return [value for _, value in _parts(text, "[")]


def _parts(text: str, opening: str) -> Iterator[tuple[str, str]]:
    """Yield what stands right below the outermost bracket, with the name before it."""
    try:
        # By the decoder of the standard library, which is quicker.
        return iter(list(_scanned(text, opening)))
    except RecursionError:
        return _counted(text, opening)
    except (ValueError, IndexError):
        return iter(())  # no JSON


def _scanned(text: str, opening: str) -> Iterator[tuple[str, str]]:
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
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _counted(text: str, opening: str) -> Iterator[tuple[str, str]]:
    depth, start, end, name = 0, -1, -1, ""
    for found in _TOKEN.finditer(text):
        token = found[0]
        if depth == 0:
            if token != opening:
                return
            depth = 1
            continue
        if depth == 1 and token in ",}]":
            if start >= 0:
                yield name, text[start:end]
            start, name = -1, ""
            if token != ",":
                return
            continue
        if depth == 1 and token == ":":
            name, start = text[start:end], -1
            continue
        if start < 0:
            start = found.start()
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
        end = found.end()


def valid(text: str) -> bool | None:
    """Say whether a text is JSON; None where it is nested too deeply to say."""
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refused)
    except RecursionError:
        return None
    except ValueError:
        return False
    return True


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON")
