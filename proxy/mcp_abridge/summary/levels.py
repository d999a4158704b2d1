"""The levels that a log gives its lines: without them, `DEBUG … evicted 3 keys` is a failure."""

import re
from itertools import islice

_BEGINNING = 1 << 14  # characters that show whether the lines have levels
_HEAD = 100  # characters of a line in which its level stands
_QUIET = "TRACE|VERBOSE|DEBUG|INFO|NOTICE"
_BAD = "ERROR|ERR|CRITICAL|CRIT|FATAL|SEVERE|ALERT|EMERG|PANIC"
_WORDS = (*_QUIET.split("|"), *_BAD.split("|"), "WARN")
_ANY = rf"(?:({_QUIET})|({_BAD})|WARN(?:ING)?)"
_LEVEL = re.compile(
    rf"(?:^|[\s\[(<|:,/]){_ANY}(?=[\s\])>|:,/]|$)"
    rf"""|(?i:\b(?:level|lvl|severity)["']?[=:] ?["']?{_ANY}\b|\[{_ANY}\])"""
)


def have_levels(text: str) -> bool:
    """Return True if most lines of a text have a level near their beginning."""
    lines = [line for line in text[:_BEGINNING].split("\n") if line[:1] not in ("", " ", "\t")]
    leveled = filter(None, map(_level_of, lines))
    return next(islice(leveled, len(lines) // 2, None), None) is not None


def loudness(line: str) -> int:
    """Return 1 if the level of a line is that of an error, -1 of one below a warning, else 0.

    >>> [loudness(f"10:12:13 {level} [cache] 3 keys") for level in ("ERROR", "INFO", "WARN", "")]
    [1, -1, 0, 0]
    """
    level = _level_of(line)
    if level is None:
        return 0
    return any(level.group(2, 4, 6)) - any(level.group(1, 3, 5))


def _level_of(line: str) -> re.Match[str] | None:
    """Find the level of a line: without a look for the words first, it takes ten times as long."""
    head = line[:_HEAD]
    return _LEVEL.search(head) if any(map(head.upper().__contains__, _WORDS)) else None
