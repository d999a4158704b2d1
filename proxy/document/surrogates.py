"""Carries lone surrogate escapes (`\\ud800`) through a decoder that refuses them.

JSON admits an escaped surrogate without its other half; UTF-8 does not, and neither do strict
decoders. `mask` writes each one as a single character of plane 16, `unmask` restores the escape.
Lower-case and upper-case escapes have ranges of their own, so that the spelling survives.
"""

from proxy.errors import DocumentError

_FIRST = 0x10F000  # 0x10F000..: \ud800..\udfff, 0x10F800..: \uD800..\uDFFF
_SPAN = 0x800
_LEAD = b"\xf4\x8f"  # how every character of both ranges begins in UTF-8

_PAIR = rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
# Pairs and escaped backslashes are named only so that nothing inside them is taken for a lone one.
# With the backslash in front of all, the engine leaps from one to the next.
_ESCAPED = (
    rb"\\(?:" + _PAIR + rb"(?:\\" + _PAIR + rb")*|u([dD][89a-fA-F][0-9a-fA-F]{2})|\\(?:\\\\)*)"
)
# What has no lone one: found in one go, for texts of megabytes.
_NONE = rb"(?:[^\\]++|\\(?:[^u]|u(?:[^dD]|[dD][0-7])|" + _PAIR + rb"))*+"

# How msgspec says what no escape brings about: NaN, say, or one value after another.
_OTHERS = ("invalid character (", "trailing characters (")


def mask(raw: bytes) -> bytes:
    r"""Return `raw` with each lone surrogate escape written as one private character.

    Without any, `raw` itself comes back.

    >>> unmask(mask(rb'["\ud800", "\uD83D\uDE00"]')) == rb'["\ud800", "\uD83D\uDE00"]'
    True

    Raises DocumentError where the private characters are taken already, or where an escape mixes
    cases and could not be restored as it was.
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
    """See to it that what is `raw` can stand beside what is masked, when `unmask` goes over both.

    Raises DocumentError where it has characters that would be taken for masked ones.
    """
    if _taken(raw):
        raise DocumentError("lone surrogates beside characters of plane 16 cannot be carried")


def masks(raw: bytes) -> bool:
    """Say, quickly, whether there may be masked surrogates in `raw`; False is certain.

    >>> masks(mask(rb'"\\ud800"')), masks(rb'"\\ud800"')
    (True, False)
    """
    return _LEAD in raw


def _taken(raw: bytes) -> bool:
    import re

    if masks(raw):
        return True
    # The same characters as escaped pairs: high surrogates dbfc to dbff. In JSON that is a text in
    # its turn, each escape is escaped again.
    return re.search(rb"\\u[dD][bB][fF][c-fC-F]\\+u[dD][c-fC-F]", raw) is not None


def unmask(raw: bytes) -> bytes:
    """Return `raw` with the private characters of `mask` written as the escapes they stand for."""
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
    """Say, quickly, whether `error`, raised for `raw`, may come from a lone surrogate escape.

    False is certain.
    """
    said = str(error)
    if any(word in said for word in _OTHERS) or b"\\" not in raw:
        return False
    leads = [lead for lead in (b"\\ud", b"\\uD") if lead in raw]
    if len(leads) != 1:
        return bool(leads)
    half = False  # the first half of a pair stands right before
    for rest in raw.split(leads[0])[1:]:
        digit = rest[:1]
        if (digit in b"cdefCDEF") != half:
            return True
        half = digit in b"89abAB"
        if half and len(rest) != 3:
            return True
    return half
