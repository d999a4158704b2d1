r"""Lines of a log as rows: the time, the level, who wrote it, and the text.

Without it, no view counts the lines of a log by level, or says which service wrote most.
"""

import re

from mcp_abridge.summary.line_heads import by_form
from mcp_abridge.summary.rows import Rows

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_MOMENT = (
    rf"(?:19|20)\d\d[-/]\d\d[-/]\d\d[T ]{_CLOCK}(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?|"
    rf"(?:[A-Z][a-z]{{2}} )?[A-Z][a-z]{{2}} [ \d]\d {_CLOCK}(?: (?:19|20)\d\d)?|{_CLOCK}"
)
_TIME = rf"(?:{_MOMENT}|\d+\.\d{{3,6}}s)"
_LEVEL = (
    r"(?:(?:TRACE|DEBUG|INFO|LOG|NOTICE|WARN(?:ING)?|ERR(?:OR)?|CRIT(?:ICAL)?|ALERT|EMERG|FATAL"
    r"|SEVERE|PANIC)"
    r"|(?:trace|debug|info|notice|warn(?:ing)?|err(?:or)?|crit(?:ical)?|alert|emerg|fatal|panic))"
)
_SOURCE = r"[A-Za-z][\w.$/@:-]{0,60}"
_BEFORE = rf"(?:\[\d+\] +|\[?({_SOURCE})\]?(?:\[\d+\])?:? +(?:- +)?)?"
_THREAD = r"(?:[ \t]+\d+ ---)?[ \t|]*(?:- +)?(?:\[([\w.$ /@:,-]{1,60})\][ \t]*)?"
_AFTER = rf"(?:({_SOURCE}?)(?:\[\d+\]|:\d+)?(?: ?:[ \t]+| +- +))?"
_LEVELED = (
    rf"\[?({_TIME})\]?(?:[ \t:]+|(?=\[))(?:- +)?{_BEFORE}"
    rf"(?:\w+\.)?[\[<(]?({_LEVEL})[\])>]?:?(?=[ \t\[|]|$){_THREAD}{_AFTER}(.*)"
)
_DATED = rf"\[? *({_MOMENT}|\d+\.\d{{6}}(?=\]))(?:\][ \t:]*|[ \t:]+)(.*)"
_HOST = rf"({_TIME}) ([\w.-]+) "
_PROGRAM = r"([\w./@-]+)(?:\[\d+\])?: "
_BY_HOST = f"{_HOST}{_PROGRAM}(.*)"

LEVELED = re.compile(rf"\A(?:[^\n]*\n){{0,5}}?{_LEVELED}\n(?:[^\n]*\n){{0,9}}?{_LEVELED}\n")
"""Two lines with a level near the beginning of a text."""
DATED = re.compile(rf"\A(?:[^\n]*\n){{0,2}}?{_DATED}\n(?:[^\n]*\n){{0,2}}?{_DATED}\n")
"""Two lines with a time at the beginning of a text."""
BY_HOST = re.compile(rf"\A{_BY_HOST}\n{_BY_HOST}\n")
"""Two lines of a system's log at the beginning of a text: RFC 3164."""

_ONE_LEVELED, _ONE_BY_HOST = re.compile(_LEVELED), re.compile(f"{_HOST}(?:{_PROGRAM})?(.*)")
_WITH_TIME = re.compile(_DATED)
_OTHERS = 4  # lines that belong to one above, on average at most
_MOST = 0.6  # of the rows that have a part which all should have


def log(text: str) -> Rows | None:
    r"""Return the lines of a log with levels; a line without a time belongs to the one above.

    A line with a time, but without a level, is a row without one; so are all in some logs.

    >>> log("2026-11-02 10:00:01 INFO web: up\n2026-11-02 10:00:02 WARN db: slow\n  at x\n").rows[1]
    {'time': '2026-11-02 10:00:02', 'level': 'WARN', 'source': 'db', 'text': 'slow\n  at x'}
    """
    rows, others = list[dict[str, str]](), 0
    for line in text.splitlines():
        match = _ONE_LEVELED.fullmatch(line)
        if match is not None:
            time, before, level, thread, after, rest = match.groups()
            source = after or before or thread or ""
            rows.append({"time": time, "level": level, "source": source, "text": rest})
        elif (entry := _WITH_TIME.fullmatch(line)) is not None:
            rows.append({"time": entry[1], "text": entry[2]})
        elif rows and line.strip():
            rows[-1]["text"] += f"\n{line}"
            others += 1
    if others > _OTHERS * len(rows):
        return None
    sources = [row["source"] for row in rows if "source" in row]
    if sum(map(bool, sources)) < _MOST * len(sources):
        for row in rows:  # what stands there is part of some texts
            source = row.pop("source", "")
            row["text"] = f"{source}: {row['text']}" if source else row["text"]
    return Rows(rows, "a log", loses=True)


def system_log(text: str) -> Rows | None:
    r"""Return the lines of a system's log; a line without a time belongs to the one above.

    >>> system_log("Nov  2 10:00:01 h1 sshd[7]: up\nNov  2 10:00:02 h1 cron: ran\n").rows[0]
    {'time': 'Nov  2 10:00:01', 'host': 'h1', 'program': 'sshd', 'text': 'up'}
    """
    names = ("time", "host", "program", "text")
    rows = by_form(text, _ONE_BY_HOST, "a log", names)
    programs = sum("program" in row for row in rows.rows) if rows else 0
    return rows if 2 * programs > len(text.splitlines()) else None
