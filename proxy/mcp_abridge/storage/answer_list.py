"""The list of a caller's stored answers, which a model gets by the view `kept`.

Without it, a model whose client has shortened their conversation runs each tool once more.
"""

from collections.abc import Iterable
from functools import cache
from json import JSONDecoder
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from mcp_abridge.document.tree import encode
from mcp_abridge.storage.snapshots import Snapshot

if TYPE_CHECKING:
    from mcp_abridge.storage.redaction import Redaction

MOST = 50
"""Answers in a list: those that were used last."""


class StoredAnswer(Struct, frozen=True):
    """A stored answer: the text of its call (see `text_of`), its bytes as JSON, and its age."""

    call: str
    size: int
    age: int


@cache
def _redaction() -> "Redaction":
    # Imported late: it loads regular expressions, and few sessions have such a list.
    from mcp_abridge.storage.redaction import SECRETS, Redaction

    return Redaction(SECRETS)


def text_of(call: str | None) -> str:
    """Return the call in a key as JSON of the tool and its arguments, without secrets.

    Of a long call, whose arguments are hashed, the tool alone.

    >>> text_of('["deploy",{"token":"a1","to":"b"}]{"limit":5}0000abcd')
    '["deploy",{"token":"***","to":"b","limit":5}]'
    >>> text_of('["deploy"]0000abcd')
    '["deploy"]'
    """
    parts, at, text = list[Any](), 0, call or ""
    try:
        while text[at : at + 1] in ("[", "{"):
            part, at = _DECODER.raw_decode(text, at)
            parts.append(part)
        [[tool, *arguments], *own] = parts
        for each in own:
            arguments = [arguments[0] | each] if arguments else []
        return _redaction().text(encode([tool, *arguments]).decode())
    except (ValueError, TypeError):
        return ""  # a key without a call


_DECODER = JSONDecoder()


def listing(answers: Iterable[StoredAnswer]) -> Snapshot:
    """Return the snapshot of a list of stored answers, which `read` reads.

    What is stored without a call, as of a server, is no answer.
    """
    return Snapshot(b"", encode([each for each in answers if each.call]))


def read(snapshot: Snapshot) -> list[StoredAnswer]:
    """Return the stored answers in the snapshot of a list."""
    return _LIST.decode(snapshot.raw)


_LIST = msgspec.json.Decoder(list[StoredAnswer])
