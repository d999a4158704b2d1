"""Other spellings of a pattern: without them, what a model copies from an answer is not found.

Who copies a name writes no pattern (`Fix (#12)`), does not see which blanks and letters a text is
made of, and takes structure for JSON (`"state": "open"`).
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Any

from mcp_abridge.document.names import spelled
from mcp_abridge.query.letters import without_accents
from mcp_abridge.query.notation import constant

_SIGN = re.compile(r"[\\^$.?*+()\[\]{}|]")  # a character that a pattern does not match as it is
_BLANKS = re.compile(r"(\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])| +(?![*+?{])", re.DOTALL)
_IN_BRACKETS = re.compile(r"(\(\?i\))?(\[\w{2,}(?:[ .:/_-]\w{2,})*\])")
_WORDS = re.compile(r"(?:\(\?i\))?([^\\^$?*+()\[\]{}]*[^\W\d_][^\\^$?*+()\[\]{}]*)")
_PLACES = 1000  # places of a word that are looked at for its spelling
_STEP = re.compile(r'"(?:[^"\\]|\\.)*"|[^."]+')  # of a path
_PAIR = re.compile(r"""["']?([A-Za-z_@$][\w@$-]*)["']?\s*(?::|==?)\s*(.+?),?""")


def literal(text: str) -> str:
    r"""Return the pattern of a text as it is, but for `(?i)` before it.

    >>> literal("(?i)Fix (#12)")
    '(?i)Fix \\(#12\\)'
    """
    flag = "(?i)" * text.startswith("(?i)")
    return flag + _SIGN.sub(r"\\\g<0>", text.removeprefix(flag))


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


def accented(text: str, content: str) -> list[str]:
    """Return the words of a pattern without signs but `|` as a content spells them, with accents.

    >>> accented("koln|xx", "In K\xf6ln, KO\u0308LN und Koblenz")
    ['K\xf6ln', 'K\xd6LN']
    """
    words = _WORDS.fullmatch(text)
    content = unicodedata.normalize("NFC", content)
    plain = _without_accents(content)
    if words is None or len(plain) != len(content):
        return []
    spellings = dict[str, None]()
    for word in filter(None, unicodedata.normalize("NFC", words[1]).split("|")):
        places = re.finditer(re.escape(_without_accents(word)), plain)
        each = (content[place.start() : place.end()] for place in islice(places, _PLACES))
        spellings |= {spelling: None for spelling in each if spelling.lower() != word.lower()}
    return [*spellings]


def _without_accents(text: str) -> str:
    """Return a text in small letters without accents, each in its place."""
    for letter in filter(str.isalpha, {*text}):
        if not letter.isascii() and len(base := without_accents(letter)) == 1 and base.isascii():
            text = text.replace(letter, base)  # which are few: quicker than translate()
    return text.lower()


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
    every = [hit["path"] for hit in (*hits.get("names", ()), *hits["at"])]
    test = f"[?{spelled(name)}=={constant(value)}]"
    ways = [f"grep({constant(value)})"] if isinstance(value, str) else []
    ways += [f"{rows}{test}" for rows in _rows_with(name, every)]
    ways = [way for way in ways if "…" not in way and way.count("'") in (0, 2)]
    best = sorted(ways, key=lambda way: way.startswith("nodes("))[-1:]
    return "names and values are searched each for itself" + "".join(f": write {w}" for w in best)


def _rows_with(name: str, paths: list[str]) -> Iterator[str]:
    """Yield the arrays that have a member, or the objects if they stand at one place of a map.

    >>> [*_rows_with("n", ["a[2].b[1].b[7].n"])], [*_rows_with("n", ["a.x.get.n", "a.y.put.n"])]
    (['nodes(a, &b)'], ['a.*.*[] | '])
    """
    ends = f".{spelled(name)}"
    owners = dict.fromkeys(path.removesuffix(ends) for path in paths if path.endswith(ends))
    for owner in dict.fromkeys(re.sub(r"\[\d+\]", "[*]", owner) for owner in owners):
        top, *inner = owner.removesuffix("[*]").split("[*].")
        if (
            owner.endswith("[*]")
            and len({*inner}) == 1
            and (len(inner) > 1 or top.rpartition(".")[2] == inner[0])
        ):
            yield f"nodes({top or '@'}, &{inner[0]})"
        elif owner.endswith("[*]"):
            yield owner.removesuffix("[*]")
    steps = [_STEP.findall(owner) for owner in owners if "[" not in owner]
    if len(steps) > 1 and len({*map(len, steps)}) == 1:
        general = [each[0] if len({*each}) == 1 else "*" for each in zip(*steps, strict=True)]
        yield f"{'.'.join(general)}{'[]' * (general.count('*') - 1)} | "
