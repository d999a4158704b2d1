"""Masking of lone surrogate escapes (`\\ud800`), so that a strict decoder accepts them.

JSON allows an escaped surrogate without its other half; UTF-8 and strict decoders do not. `mask`
writes each lone escape as a single character of plane 16, `unmask` restores the escape. Lower-case
and upper-case escapes have separate ranges, so that the spelling is kept.
"""

from proxy.errors import DocumentError

_FIRST = 0x10F000  # 0x10F000..: \ud800..\udfff, 0x10F800..: \uD800..\uDFFF
_SPAN = 0x800
_LEAD = b"\xf4\x8f"  # how every character of both ranges begins in UTF-8

_PAIR = rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
# Pairs and escaped backslashes are matched so that no part of them counts as a lone surrogate.
# With the backslash in front of the group, the engine jumps from one backslash to the next.
_ESCAPED = (
    rb"\\(?:" + _PAIR + rb"(?:\\" + _PAIR + rb")*|u([dD][89a-fA-F][0-9a-fA-F]{2})|\\(?:\\\\)*)"
)
# A text without lone surrogates: matched in one go, for texts of megabytes.
_NONE = rb"(?:[^\\]++|\\(?:[^u]|u(?:[^dD]|[dD][0-7])|" + _PAIR + rb"))*+"

# Messages of msgspec that no escape causes, such as for NaN or for a second value.
_OTHERS = ("invalid character (", "trailing characters (")


def mask(raw: bytes) -> bytes:
    r"""Return `raw` with each lone surrogate escape written as one private character.

    Without any, the result is the object `raw` itself.

    >>> unmask(mask(rb'["\ud800", "\uD83D\uDE00"]')) == rb'["\ud800", "\uD83D\uDE00"]'
    True

    Raises DocumentError if the private characters already occur, or if an escape mixes cases and
    could not be restored unchanged.
    """
    import re

    if re.match(_NONE, raw, re.DOTALL)[0] == raw:  # type: ignore[index]
        return raw
    lone = False

    def escape(found: "re.Match[bytes]") -> bytes:
        nonlocal lone
        digits = found[1]
        if digits is None:
            return found[0]
        lone = True
        offset = int(digits, 16) - 0xD800
        if digits == digits.lower():
            return chr(_FIRST + offset).encode()
        if digits == digits.upper():
            return chr(_FIRST + _SPAN + offset).encode()
        raise DocumentError(f"a lone surrogate spelled {found[0].decode()!r} cannot be carried")

    masked = re.sub(_ESCAPED, escape, raw)
    if not lone:
        return raw
    distinct(raw)
    return masked


def distinct(raw: bytes) -> None:
    """Check that `raw` can be put beside masked text before `unmask` processes both.

    Raises DocumentError if `raw` has characters that `unmask` would take for masked surrogates.
    """
    if _taken(raw):
        raise DocumentError("lone surrogates beside characters of plane 16 cannot be carried")


def masks(raw: bytes) -> bool:
    """Return True if `raw` may have masked surrogates, by a quick check; False is certain.

    >>> masks(mask(rb'"\\ud800"')), masks(rb'"\\ud800"')
    (True, False)
    """
    return _LEAD in raw


def _taken(raw: bytes) -> bool:
    import re

    if masks(raw):
        return True
    # The same characters as escaped pairs: high surrogates dbfc to dbff. In JSON inside a JSON
    # text, each escape is escaped again.
    return re.search(rb"\\u[dD][bB][fF][c-fC-F]\\+u[dD][c-fC-F]", raw) is not None


def unmask(raw: bytes) -> bytes:
    """Return `raw` with the private characters of `mask` restored to their escapes."""
    if not masks(raw):
        return raw
    import re

    def restore(found: "re.Match[bytes]") -> bytes:
        offset = ord(found[0].decode()) - _FIRST
        if offset < _SPAN:
            return b"\\u%x" % (0xD800 + offset)
        return b"\\u%X" % (0xD800 + offset - _SPAN)

    return re.sub(rb"\xf4\x8f[\x80-\xbf][\x80-\xbf]", restore, raw)


def maskable(raw: bytes, error: Exception) -> bool:
    """Return True if a lone surrogate escape in `raw` may have caused `error`, by a quick check.

    False is certain.
    """
    said = str(error)
    if any(word in said for word in _OTHERS) or b"\\" not in raw:
        return False
    leads = [lead for lead in (b"\\ud", b"\\uD") if lead in raw]
    if len(leads) != 1:
        return bool(leads)
    half = False  # the previous escape is the first half of a pair
    for rest in raw.split(leads[0])[1:]:
        digit = rest[:1]
        if (digit in b"cdefCDEF") != half:
            return True
        half = digit in b"89abAB"
        if half and len(rest) != 3:
            return True
    return half
