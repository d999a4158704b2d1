"""A response as the client gets it, read as each kind of client shows it to its model."""

import json
from contextlib import suppress
from typing import Any

from msgspec import Raw, Struct

from proxy.document import message
from proxy.document.tree import Number, level, text
from proxy.errors import DocumentError
from proxy.ruleset.rule import Rule
from proxy.shaping.result.blocks import text_of
from proxy.shaping.result.frame import Copy
from proxy.shaping.result.locate import LocatedDocument
from proxy.shaping.result.locate import read as read_result
from proxy.shaping.result.parse import failed
from proxy.shaping.result.visible import VisibleSize, visible


class ClientView(Struct, frozen=True):
    """The content of a response: a result's `texts` and `structured` content, or an `error` text.

    `failed` is True for results with `isError` and for error responses.
    """

    line: bytes
    texts: tuple[str, ...] = ()
    structured: Raw | None = None
    visible_size: VisibleSize = VisibleSize(None, 0)
    failed: bool = False
    error: str | None = None

    @property
    def said(self) -> str:
        """All texts of the result, or the error text."""
        return "\n".join(self.texts) if self.error is None else self.error


def read(line: bytes) -> ClientView:
    """Read a response. Raises DocumentError if `line` is not a response.

    >>> read(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}]}}').texts
    ('a',)
    """
    held = message.outer_members(line)
    if "error" in held:
        return ClientView(line, failed=True, error=_words(held["error"]))
    if "result" not in held:
        raise DocumentError("a response has a result or an error")
    raw = message.members(held["result"])
    blocks = level(raw["content"]) if "content" in raw else []
    if not isinstance(blocks, list):
        raise DocumentError("content is no array")
    structured = raw.get("structuredContent")
    if structured is not None:
        structured = None if bytes(structured) == b"null" else structured
    texts = tuple(said for block in blocks if (said := text_of(block)) is not None)
    return ClientView(line, texts, structured, visible(raw, blocks), failed(raw))


def reading(line: bytes, rule: Rule) -> LocatedDocument | None:
    """Return the document of a response as the steps of `rule` get it; None if there is none.

    Raises DocumentError if the line cannot be read.
    """
    held = message.members(line)
    if "result" not in held:
        return None
    raw = message.members(held["result"])
    found = read_result(raw, rule.document)
    if found is None and rule.max_bytes is not None:
        found = read_result(raw, "blocks")
    return found


def document(answer: ClientView, before: LocatedDocument | None) -> Any:
    """Return the document of an answer as a plain value: JSON if it is JSON, else a text.

    `before` is the document as the server sent it, and determines its place. Raises DocumentError
    if there is no document in that place.
    """
    if before is None:
        found = [value(said) for said in answer.texts]
        if answer.structured is not None:
            return _lenient(bytes(answer.structured))
        if len(found) != 1:
            raise DocumentError(f"the answer has no document, but {len(found)} texts")
        return found[0]
    every = copies(answer, before)
    if not every:
        raise DocumentError("the answer does not hold the document that the server's held")
    return every[0]


def copies(answer: ClientView, before: LocatedDocument) -> list[Any]:
    """Return the document from each place of the answer that held the server's document."""
    found = (_copy(answer, before, copy) for copy in before.frame.copies)
    return [value for value in found if value is not _NOWHERE]


_NOWHERE: Any = object()


def _copy(answer: ClientView, before: LocatedDocument, copy: Copy) -> Any:
    structured = answer.structured
    if copy.where == "structured":
        return _NOWHERE if structured is None else _lenient(bytes(structured))
    if copy.where == "member":
        held = {} if structured is None else message.members(structured)
        said = text(held.get(copy.member))
        return _NOWHERE if said is None else value(said)
    blocks = before.frame.blocks
    rank = sum(text_of(block) is not None for block in blocks[: copy.blocks[0]])
    texts = answer.texts[rank:]
    if not texts:
        return _NOWHERE
    if copy.each and len(texts) > 1:
        return [value(said) for said in texts]
    if copy.quoted:
        inner = _lenient(texts[0])
        return value(inner) if isinstance(inner, str) else inner
    return value(texts[0])


def value(said: str) -> Any:
    """Return the object or array that a text spells, else the text."""
    if said.lstrip()[:1] not in ("{", "["):
        return said
    try:
        return _lenient(said)
    except DocumentError:
        return said


def _lenient(raw: str | bytes) -> Any:
    """Decode JSON, which may hold lone surrogates. Raises DocumentError."""
    try:
        return json.loads(raw, parse_float=Number, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"not JSON: {error}") from error


def _refused(spelling: str) -> None:
    raise ValueError(f"{spelling} is no JSON")


def _words(error: Raw) -> str:
    said = None
    with suppress(DocumentError):
        said = text(message.members(error).get("message"))
    return bytes(error).decode(errors="replace") if said is None else said
