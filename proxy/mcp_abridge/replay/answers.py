"""A response as the client gets it, read as each kind of client shows it to its model."""

from typing import Any

from msgspec import Raw, Struct

from mcp_abridge.document import message, tree
from mcp_abridge.document.surrogates import replace_lone
from mcp_abridge.document.tree import level
from mcp_abridge.errors import DocumentError
from mcp_abridge.ruleset.clients import Shows
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.shaping.resources import as_tool_result
from mcp_abridge.shaping.result import frame
from mcp_abridge.shaping.result.frame import Copy, VisibleSize, text_of
from mcp_abridge.shaping.result.read import LocatedDocument, is_error, locate, locate_texts


class ClientView(Struct, frozen=True):
    """The content of a response: a result's `texts` and `structured` content, or an `error`."""

    line: bytes
    texts: tuple[str, ...] = ()
    structured: Raw | None = None
    visible_size: VisibleSize = VisibleSize(None, 0)
    failed: bool = False
    error: str | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.texts) if self.error is None else self.error

    def texts_for(self, shows: Shows) -> tuple[str, ...]:
        """Return the texts that the model of a client of this kind reads, without escapes."""
        structured = () if self.structured is None else (bytes(self.structured).decode(),)
        texts = self.texts if self.error is None else (self.error,)
        # Not known which copy it is: the one whose bytes count.
        size = self.visible_size
        if shows in ("text", "blocks") or (shows == "either" and size.to("text") == size.most):
            return texts
        twice = shows.startswith("once") and not self.visible_size.equal(shows)
        if twice or shows in ("both", "result"):
            return (*structured, *texts)
        return structured or texts


def read(line: bytes) -> ClientView:
    """Read a response. Raises DocumentError if `line` is not a response.

    >>> read(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}]}}').texts
    ('a',)
    """
    members = message.outer_members(as_tool_result(line))
    if "error" in members:
        error = members["error"]
        text = message.string_at(error, "message")
        text = bytes(error).decode(errors="replace") if text is None else text
        size = frame.size_of(None, (text,))
        return ClientView(line, visible_size=size, failed=True, error=text)
    if "result" not in members:
        raise DocumentError("a response has a result or an error")
    result = message.members(members["result"])
    blocks = level(result["content"]) if "content" in result else []
    if not isinstance(blocks, list):
        raise DocumentError("content is no array")
    structured = frame.structured_of(result)
    texts = tuple(text for block in blocks if (text := text_of(block)) is not None)
    return ClientView(line, texts, structured, frame.visible_size(result, blocks), is_error(result))


def located(line: bytes, rule: Rule) -> LocatedDocument | None:
    """Return the document of a response as the steps of `rule` get it. Raises DocumentError."""
    members = message.members(as_tool_result(line))
    if "result" not in members:
        return None
    result = message.members(members["result"])
    document = locate(result, rule.document)
    if document is None and rule.max_bytes is not None:
        document = locate_texts(result)
    return document


def document(answer: ClientView, before: LocatedDocument | None) -> Any:
    """Return the document of an answer as a plain value: JSON if it is JSON, else a text.

    It is in the place of the server's, `before`. Raises DocumentError if there is none.
    """
    if before is not None:
        for copy in before.frame.copies:
            if (content := _copy(answer, before, copy)) is not _ABSENT:
                return content
        raise DocumentError("the answer does not hold the document that the server's held")
    if answer.structured is not None:
        return tree.loads(bytes(answer.structured))
    if len(answer.texts) != 1:
        raise DocumentError(f"the answer has no document, but {len(answer.texts)} texts")
    return value(answer.texts[0])


_ABSENT: Any = object()


def _copy(answer: ClientView, before: LocatedDocument, copy: Copy) -> Any:
    if copy.where != "text":
        if answer.structured is None:
            return _ABSENT
        if copy.where == "structured":
            return tree.loads(bytes(answer.structured))
        member = message.members(answer.structured).get(copy.member)
        text = text_of(tree.level(member)[0]) if copy.as_block and member else tree.text(member)
        return _ABSENT if text is None else value(text)
    blocks = before.frame.blocks
    rank = sum(text_of(block) is not None for block in blocks[: copy.blocks[0]])
    texts = answer.texts[rank:]
    if not texts:
        return _ABSENT
    if copy.each and len(texts) > 1:
        return [value(text) for text in texts]
    if copy.quoted:
        inner = tree.loads(texts[0].encode())
        return value(inner) if isinstance(inner, str) else inner
    return value(texts[0])


def value(text: str) -> Any:
    """Return the object or array that a text spells, else the text."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return tree.loads(replace_lone(text.encode()))
    except DocumentError:
        return text
