"""Other spellings of a pattern: without them, what a model copies from an answer is not found.

Who copies a name writes no pattern (`Fix (#12)`), does not see which blanks and letters a text is
made of, and takes structure for JSON (`"state": "open"`).
"""

import json
import re
import unicodedata
from typing import Any

from mcp_abridge.document.names import spelled
from mcp_abridge.query.notation import constant

_SIGN = re.compile(r"[\\^$.?*+()\[\]{}|]")  # a character that a pattern does not match as it is
_BLANKS = re.compile(r"(\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])| +(?![*+?{])", re.DOTALL)
_IN_BRACKETS = re.compile(r"(\(\?i\))?(\[\w{2,}(?:[ .:/_-]\w{2,})*\])")
_PAIR = re.compile(r"""["']?([A-Za-z_@$][\w@$-]*)["']?\s*(?::|==?)\s*(.+?),?""")


def literal(text: str) -> str:
    r"""Return the pattern of a text as it is.

    >>> literal("Fix (#12)")
    'Fix \\(#12\\)'
    """
    return _SIGN.sub(r"\\\g<0>", text)


def looser(text: str) -> str:
    r"""Return a pattern whose blanks match any, also line ends, and whose letters match both forms.

    >>> looser("two words[ .]"), ascii(looser("\xe9"))
    ('two[\\s\\p{Z}]+words[ .]', "'\\xe9|e\\u0301'")
    >>> looser("a *b")
    'a *b'
    """
    if r"\Q" in text:
        return text
    forms = dict.fromkeys(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    return "|".join(_BLANKS.sub(lambda match: match[1] or r"[\s\p{Z}]+", each) for each in forms)


def in_brackets(text: str) -> str | None:
    r"""Return the pattern of a text in brackets, which is written as a class of letters alone.

    >>> in_brackets("[error]"), in_brackets("(?i)[pool-1]"), in_brackets("(?i)[http-nio 80]")
    ('\\[error\\]', None, '(?i)\\[http-nio 80\\]')
    >>> in_brackets("[0-9]"), in_brackets("[A-Za-z]"), in_brackets("[xX]"), in_brackets("[^ab]")
    (None, None, None, None)
    """
    match = _IN_BRACKETS.fullmatch(text)
    if match is None or len({*match[2].casefold()}) < 4:
        return None
    return (match[1] or "") + literal(match[2])


def name_and_value(text: str) -> tuple[str, Any] | None:
    """Return the name and the value of a member that is written as in JSON; None of other texts.

    >>> name_and_value('"id": 5'), name_and_value("state=open"), name_and_value("a, b")
    (('id', 5), ('state', 'open'), None)
    """
    pair = _PAIR.fullmatch(text.strip())
    if pair is None:
        return None
    try:
        return pair[1], json.loads(pair[2])
    except ValueError:
        return pair[1], pair[2].strip("\"'")


def advice(name: str, value: Any, hits: dict[str, Any]) -> str:
    """Return how to find the members of a name, which are `hits`, by their value.

    >>> advice("id", 5, {"at": [{"path": "items[3].id"}]})
    'names and values are searched each for itself: write items[?id==`5`]'
    """
    every = (hit["path"] for hit in (*hits.get("names", ()), *hits["at"]))
    paths = dict.fromkeys(re.sub(r"\[\d+\]", "[*]", path) for path in every)
    ways = [f"grep({constant(value)})"] if isinstance(value, str) else []
    ends = f"[*].{spelled(name)}"
    at = (path.removesuffix(ends) for path in paths if path.endswith(ends))
    ways += [f"{rows}[?{spelled(name)}=={constant(value)}]" for rows in at]
    ways = [way for way in ways if "…" not in way and way.count("'") in (0, 2)][-1:]
    return "names and values are searched each for itself" + "".join(f": write {w}" for w in ways)
