"""Literals of a view, each as one sign, while what is around them is read or rewritten.

Without it, a pipe or a word inside of quotes would count as one of the language.
"""

import re

SIGN = "[\ue000-\uf8ff]"
"""A literal that is set aside."""


def masked(text: str, pattern: re.Pattern[str]) -> tuple[str, dict[str, str]]:
    """Return a text with a sign in place of each match, and the matches by these signs.

    >>> masked("a 'b|c' | d", re.compile("'[^']*'"))
    ('a \ue000 | d', {'\ue000': "'b|c'"})
    """
    literals: dict[str, str] = {}

    def mask(match: re.Match[str]) -> str:
        sign = chr(0xE000 + len(literals))
        literals[sign] = match[0]
        return sign

    return pattern.sub(mask, text), literals


def unmasked(text: str, literals: dict[str, str]) -> str:
    """Return a text with the literals again in place of their signs."""
    return re.sub(SIGN, lambda match: literals.get(match[0], match[0]), text)


def raw_text(text: str) -> str:
    """Return a text in single quotes, as views have it."""
    return "'" + text.replace("'", "\\'") + "'"
