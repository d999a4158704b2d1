"""Lone surrogate escapes (`\\ud800`), which JSON allows, but UTF-8 and strict decoders do not."""

from mcp_abridge.document.possessive import possessive

_DIGITS = "[0-9a-fA-F]{2}"
_PAIR = rf"\\u[dD][89abAB]{_DIGITS}\\u[dD][c-fC-F]{_DIGITS}"
_LONE = rf"\\u[dD][89a-fA-F]{_DIGITS}"
# Everything up to a lone surrogate, in one go: pairs and escaped backslashes are consumed whole, so
# that no part of them counts. It matches at every position, so the time is linear.
_PLAIN = possessive(rf"[^\\]++|{_PAIR}|(?!{_LONE})\\.?")
_UP_TO_LONE = f"({_PLAIN})({_LONE})?".encode()
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


def replace_lone(raw: bytes) -> bytes:
    """Return JSON with U+FFFD for each lone surrogate escape; `raw` itself if it has none."""
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return raw
    import re

    parts = re.findall(_UP_TO_LONE, raw, re.DOTALL)
    if not any(lone for _, lone in parts):
        return raw
    return b"".join(part + (_REPLACEMENT if lone else b"") for part, lone in parts)
