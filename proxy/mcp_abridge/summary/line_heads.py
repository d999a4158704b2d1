r"""Lines with a place, a speaker, a program or a tag at their head, as rows: hits, chats, logs.

Without it, a model counts by eye which file has most hits of `grep -rn`, or who wrote most.
"""

import re

from mcp_abridge.summary.rows import Rows

_PATH = r"(?:[A-Za-z]:(?=[\\/]))?(?=[^\s:]*[\\/.][A-Za-z])[^\s:\[\"<>|]+"
_AT_LINE = r"(?::(\d+):(?:(\d+)(?::| -))?|\((\d+)(?:,(\d+))?\):)[ \t]?(.*)"
_HIT = f"({_PATH}){_AT_LINE}"
_DAY = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[ \u202f]?[AaPp]\.?[Mm]\.?)?"
_TIME = rf"\u200e?(?:\[((?:{_DAY} )?{_CLOCK})\]|({_DAY} {_CLOCK}) -)"
_SAID = rf"{_TIME} (?:<([^>\n]+)> |([^:\n]{{1,60}}): )?(.*)"
_LEVEL = re.compile(
    r"(?:.*[. ])?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|CRITICAL|FATAL)"
)

_TAGGED = r"\[([A-Z]{2,12})\] +(.*\S)\s*"
_NUMBERED = r"([^\s:]*[/\\][^\s:/\\]*\.[A-Za-z]\w*):(\d+)"
_LOGGED = r"(?:([\w./@:-]+) +\||\[((?:pod/)?[\w.-]+/[\w.-]+)\]) ?(.*)"

HITS = re.compile(rf"\A(?:[^\n]*\n){{0,3}}?{_HIT}\n(?:[^\n]*\n){{0,4}}?{_HIT}\n")
"""Two hits near the beginning of a text."""
TALK = re.compile(rf"\A(?:[^\n]*\n){{0,3}}?{_SAID}\n(?:[^\n]*\n){{0,3}}?{_SAID}\n")
"""Two messages near the beginning of a text."""
JOINT = re.compile(rf"\A{_LOGGED}\n{_LOGGED}\n")
"""Two lines of programs at the beginning of a text."""
TAGGED = re.compile(rf"\A{_TAGGED}\n{_TAGGED}\n")
"""Two lines that begin with a word in brackets at the beginning of a text."""
NUMBERED = re.compile(rf"\A{_NUMBERED}\n{_NUMBERED}\n")
"""Two lines of a file and a number at the beginning of a text."""

_ONE_HIT, _ONE_SAID, _ONE_LOGGED = map(re.compile, (_HIT, _SAID, _LOGGED))
_ONE_TAGGED, _ONE_NUMBERED = re.compile(_TAGGED), re.compile(r"(.+):(\d+)")
_HIT_IN_ANY = re.compile(rf"([^\s:]+){_AT_LINE}")
_OTHERS = 4  # lines that belong to one above, on average at most


def hits(text: str) -> Rows | None:
    """Return the hits of a search, or the findings of a linter or compiler.

    Lines without a place belong to the one above.

    >>> hits("a/b.py:3: x = 1\\na/b.py:7:2: E1 no\\n  y\\n").rows[1]
    {'path': 'a/b.py', 'line': '7', 'column': '2', 'text': 'E1 no\\n  y'}
    """
    names = ("path", *("line", "column") * 2, "text")
    every = by_form(text, _HIT_IN_ANY, "hits", names, 0)  # Makefile:3: is one among others alone
    return every or by_form(text, _ONE_HIT, "hits", names)


def talk(text: str) -> Rows | None:
    """Return the messages of a chat; a line without a time belongs to the one above.

    >>> talk("01/06/2026, 09:15 - Ann: the pot?\\n01/06/2026, 09:16 - Bo: yes\\n").rows[1]
    {'time': '01/06/2026, 09:16', 'author': 'Bo', 'text': 'yes'}
    """
    rows = by_form(text, _ONE_SAID, "a chat", ("time", "time", "author", "author", "text"))
    authors = [row.get("author", "ERROR") for row in rows.rows] if rows is not None else []
    people = [each for each in authors if not _LEVEL.fullmatch(each)]  # else it is a log
    return rows if 2 * len(people) > len(authors) else None


def joint_log(text: str) -> Rows | None:
    """Return the lines of several programs in one log, as Docker Compose and kubectl write it.

    >>> joint_log("web-1  | ready\\ndb-1   | LOG: ready\\n").rows[1]
    {'source': 'db-1', 'text': 'LOG: ready'}
    """
    return by_form(text, _ONE_LOGGED, "a log of several programs", ("source", "source", "text"), 0)


def tagged(text: str) -> Rows | None:
    """Return lines with a tag, as of what a folder has; with a level, they are a log.

    >>> tagged("[DIR] a\\n[FILE] b.txt\\n").rows
    [{'type': 'DIR', 'text': 'a'}, {'type': 'FILE', 'text': 'b.txt'}]
    """
    rows = by_form(text, _ONE_TAGGED, "a log", ("level", "text"))
    if rows is None or all(_LEVEL.fullmatch(row["level"]) for row in rows.rows):
        return rows
    plain = by_form(text, _ONE_TAGGED, "lines with a tag", ("type", "text"), 0)
    return None if plain is None else plain._replace(loses=False)


def numbered(text: str) -> Rows | None:
    """Return how often a search found something in each file.

    >>> numbered("a/b.py:3\\na/c.py:0\\n").rows[1]
    {'path': 'a/c.py', 'number': '0'}
    """
    rows = by_form(text, _ONE_NUMBERED, "files with a number", ("path", "number"), 0)
    return None if rows is None else rows._replace(loses=False)


def by_form(
    text: str, form: re.Pattern[str], name: str, names: tuple[str, ...], most: int = _OTHERS
) -> Rows | None:
    """Return a row of these names for each line of a form; others belong to the one above.

    None if these are more than `most` for each row, on average.
    """
    rows, others = list[dict[str, str]](), 0
    for line in text.splitlines():
        if match := form.fullmatch(line):
            pairs = zip(names, match.groups(), strict=True)
            rows.append({name: cell for name, cell in pairs if cell is not None})
        elif rows and line.strip():
            rows[-1][names[-1]] += f"\n{line}"
            others += 1
    return Rows(rows, name, loses=True) if others <= most * len(rows) else None
