"""Says whether steps that remove things have left anything of a document.

Nothing is null, an empty text, an empty object, and what holds nothing but those. An empty array is
an answer of its own: it says that there is none.
"""

from msgspec import UNSET, Raw, Struct
from msgspec.structs import astuple

from proxy.document import Document, Value, compact, encode, loads


def hollow(value: Value) -> bool:
    """Say whether `value` holds nothing; what no step has opened is not looked into.

    >>> hollow({"items": [{}, {"title": ""}]}), hollow({"items": []}), hollow(Raw(b"[{}]"))
    (True, False, False)
    """
    return _holds_nothing(value, set())


def emptied(document: Document) -> bool:
    """Say whether steps have left nothing of a document that held something.

    Inside of an object or array, what is null or empty is no sign of it where the document came
    with such values of its own: they may be what the rule means to leave.

    >>> document = Document.read(b'{"items": [{"id": 1}]}')
    >>> document.root.set({"items": [{}]})
    >>> emptied(document)
    True
    """
    root = document.cell[0]
    left: set[bytes] = set()
    if not _holds_nothing(root, left):
        return False
    came = compact(encode(document.source))
    if hollow(loads(came)):
        return False
    return root in (None, "", {}) or not any(spelling in came for spelling in left)


def _holds_nothing(value: Value, found: set[bytes]) -> bool:
    """Say whether `value` holds nothing, and note how that is spelled."""
    if isinstance(value, Struct):
        value = {at: each for at, each in enumerate(astuple(value)) if each is not UNSET}
    if isinstance(value, dict | list) and value:
        inner = value.values() if isinstance(value, dict) else value
        return all(_holds_nothing(each, found) for each in inner)
    spelling = bytes(memoryview(value)[:5]) if type(value) is Raw else _spelled(value)
    found.add(spelling)
    return spelling in _NOTHING


_NOTHING = (b"null", b'""', b"{}")


def _spelled(value: Value) -> bytes:
    empty = {str: b'""', dict: b"{}", type(None): b"null"}
    return b"" if value else empty.get(type(value), b"")
