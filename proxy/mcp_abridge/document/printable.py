"""Text of others for people to read: a server or a project's file may hold words for a terminal."""

_INTERPRETED = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
# Tab, and the joiners that Persian, Hindi and emoji are written with.
_EXEMPT = "\t\u200c\u200d"


def printable(text: str, *, lines: bool = False, json: bool = False) -> str:
    """Escape what a terminal would interpret, or show in another order than it is.

    That is each control, format and private character, line separators and lone surrogates;
    newlines stay if `lines`. The escapes are those of JSON if `json`: such a text keeps its value.

    >>> printable("a\\x1b[31mb\\tc \\u202e d")
    'a\\\\x1b[31mb\\tc \\\\u202e d'
    >>> printable('{"a": "\\x9b"}', json=True)
    '{"a": "\\\\u009b"}'
    """
    if text.isprintable():
        return text
    import unicodedata  # not before it is needed: the wrapper's log imports this module
    from json import dumps

    exempt = _EXEMPT + "\n" if lines else _EXEMPT
    return "".join(
        (dumps(each)[1:-1] if json else each.encode("unicode_escape").decode())
        if unicodedata.category(each) in _INTERPRETED and each not in exempt
        else each
        for each in text
    )


def quoted(text: str, most: int = 40) -> str:
    """Return text of others for a sentence of our own: one line in quotes, `most` characters.

    >>> quoted('x"\\n' + "y" * 60)
    '"x\\\\"\\\\nyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…"'
    >>> print(quoted('x\\\\" y'))
    "x\\\\\\" y"
    """
    cut = text if len(text) <= most else text[: most - 1] + "…"
    for each, escape in (("\\", "\\\\"), ("\t", "\\t"), ('"', '\\"')):
        cut = cut.replace(each, escape)
    return f'"{printable(cut)}"'
