"""The names of the members that notices are: a server's member of such a name is marked as its own.

Without it, a server could speak in our voice: a model would follow its notices as ours. Invariant:
different names stay different, and a view finds a member by either name.
"""

import re
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from mcp_abridge.document.names import label

ABRIDGED = "_abridged"
OWN_NAMES = (ABRIDGED, "_dropped", "_elided", "pagination", "truncation")
"""The members that steps add beside what they cut."""

_MARK = "_of_server"
_NOTICE = re.compile(f"{ABRIDGED}(?:{_MARK})*")
_MARKED = re.compile(rf"\b({'|'.join(OWN_NAMES)})((?:{_MARK})*){_MARK}\b")


def _spellings(name: str) -> str:
    return "".join(rf"(?:{each}|\\u00(?i:{ord(each):02x}))" for each in name)


ESCAPE = r"\\u00(?:5[fF]|[67])"
"""A pattern of the escapes that may spell a letter of our name: most text has others, as of ö."""

_ESCAPE = re.compile(ESCAPE.encode())

# As a name in JSON: between its quote and its colon stands no letter.
_NAME = re.compile(rf'(?<!\\)"({_spellings(ABRIDGED)}(?:{_spellings(_MARK)})*)"(?=\s*:)'.encode())


def claim(members: Any, name: str, key: Any = None) -> Any:
    """Mark the member `name` of a server in an object, so that a notice can have its name.

    Return the name that the member `key` has from then on.

    >>> members = {"pagination": 1, "pagination_of_server": 2, "b": 3}
    >>> claim(members, "pagination", "pagination")
    'pagination_of_server'
    >>> members
    {'pagination_of_server': 1, 'pagination_of_server_of_server': 2, 'b': 3}
    """
    if not (isinstance(members, dict) and name in members):
        return key
    own = re.compile(f"{name}(?:{_MARK})*")
    marked = {each: f"{each}{_MARK * bool(own.fullmatch(each))}" for each in members}
    renamed = {marked[each]: members[each] for each in members}
    members.clear()
    members.update(renamed)
    return marked.get(key, key)


def server_name(name: str) -> str:
    """Return a server's name, marked if it is that of our notes."""
    return f"{name}{_MARK}" if _NOTICE.fullmatch(name) else name


def listed(name: str) -> str:
    """Return a server's name as a sentence of ours lists it, marked if it is that of our notes.

    >>> listed("_abridged"), listed("title")
    ('_abridged_of_server', 'title')
    """
    return label(server_name(name))


def marked(raw: Raw) -> Raw:
    """Return JSON with each member `_abridged` marked as the server's, however deep it is.

    >>> bytes(marked(Raw(rb'[{"_\\u0061bridged": "_abridged"}]')))
    b'[{"_\\\\u0061bridged_of_server": "_abridged"}]'
    """
    content = bytes(raw)
    escaped = b"\\" in content and _ESCAPE.search(content)  # one byte is found ten times as fast
    if not escaped and ABRIDGED.encode() not in content:
        return raw
    return Raw(_NAME.sub(rb'"\1%b"' % _MARK.encode(), content))


def unmarked(view: str, content: Callable[[], bytes]) -> str:
    """Return a view with the names that a server gave its members; `content` is the JSON of all.

    `_abridged` is marked wherever it is, any other name only beside a notice: a member that has
    the marked name itself is meant.

    >>> unmarked("_abridged_of_server.more", lambda: b"{}")
    '_abridged.more'
    >>> unmarked("pagination_of_server.total", lambda: b'{"pagination_of_server": {"total": 9}}')
    'pagination_of_server.total'
    """

    def name(match: re.Match[str]) -> str:
        own = match[1] != ABRIDGED and f'"{match[0]}"'.encode() in content()
        return match[0] if own else match[1] + match[2]

    return _MARKED.sub(name, view)
