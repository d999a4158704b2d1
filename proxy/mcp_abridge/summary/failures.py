"""Tells which lines of a log speak of a failure, by words; a count of zero or a name is none.

If the lines have levels and one has that of an error, a line of DEBUG or INFO is none. A word in
prose or in source code is none either, without a form that only messages have: a licence or a
manual speaks of errors and has none. Words only rank lines and count them: the line that matters
may have none of these, in any language, and is found because it is rare (summary/rare.py).
"""

import re
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.summary.levels import have_levels, loudness
from mcp_abridge.summary.prose import is_of_prose, is_prose, is_sentences

_MOST = 400  # lines with such a word that are read; a text may have a million
_MOST_QUIET = 4000  # of a low level, which are less work
_PART = 256 << 10  # characters that are searched at once
_LONGEST = 1000  # characters of a line that are read closely, before the word and after it
_COMMON = 20  # a word that one line of so many has is common, if so many lines have it

_NOUNS = "errors?|exceptions?|failures?|fail(?:s|ed|ing)?|timeouts?|unreachable|Fehler|erreurs?"
_COMMON_WORDS = (
    rf"{_NOUNS}|timed out|fatal|panic(?:s|ked)?|traceback|denied|refused|could not|cannot|unable to"
    r"|killed|aborted|evicted|crash(?:ed)?|terminated by signal|no such file|no space left|backoff"
    r"|error\(s\)|fehlgeschlagen|konnten? nicht|verweigert|échec|échoué|impossible|refusé|errore"
    r"|fallito|fall[oó]|no se pudo|denegado|falhou|falha|erro|fout|mislukt"
)
_FOREIGN = (
    "błąd|nie udało|ошибк|сбой|не удалось|отказано|错误|錯誤|失败|失敗|异常|無法|无法|超时"
    "|エラー|例外|できません|오류|실패"
)
_MARKS = r"npm ERR!|##\[error\]|[✕✗✖✘❌]|\bnot ok\b"
_SURE = (
    rf"{_MARKS}|<failure\b|<error\b|segfault|segmentation fault"
    r"|core dumped|CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOM[ -]?Kill|out of memory"
    r"|exit(?:ed)?(?: with)? ?(?:status|code)[:=]? *[1-9]|make.*: \*\*\* "
    r'|undefined (?:reference|symbol)|" 5\d\d |\b50[0234] (?:internal|bad|service|gateway)'
)
_CAPITALS = "ERROR|ERR|FATAL|FAIL(?:ED|URES?)?|CRITICAL|CRIT|EMERG|PANIC|SEVERE|KILLED|ABORTED"
_CLASSES = "Error|Exception|Failure|Timeout"
# No part of a path, of a name or of `error(x)`, and not after or before a zero.
_LEFT = r"(?:^|[^\w/.$@ \n-]|(?:^|[^0\n]|[\d=:]0) )"
_RIGHT = (
    r"""(?:$|[^\w/(.:="'\n-]|\.(?:$|[^\w\n])|["'](?:$|[^:=\n])"""
    r"""|["']? ?[:=] ?["']?(?:$|[^0 "'\n]|0\d))"""
)
_CAPITAL = rf"(?-i:(?:^|[^A-Za-z_\n])(?:{_CAPITALS})(?:$|[^A-Za-z_(\n]))"
_WORD = (
    rf"(?im)^.*?(?:{_LEFT}(?:{_COMMON_WORDS}){_RIGHT}|{_FOREIGN}|{_SURE}|{_CAPITAL}"
    r"""|\bstatus(?:_?code)?["']?[=:] ?["']?5\d\d\b"""
    rf"|(?-i:[a-z](?:{_CLASSES})s?(?:$|[^\w(.\n]|\.(?:$|[^\w\n]))))"
)
_SURELY = (
    rf"(?i){_CAPITAL}|(?-i:(?:^|[^\w/])[\w.$]*(?:{_CLASSES})(?:[:\]]|\s*$))|{_SURE}"
    r"|^\W*(?:error|fatal|panic|failed|failure)\b|\b(?:error|fatal|panic) ?[:\[]"
    r"""|\b(?:level|severity|status|lvl|result)["']? ?[=:] ?["']?(?:err|fatal|crit|fail)"""
)
# No number, or one that is allowed; what is done about it; what follows a sign of success.
_HARMLESS = (
    r"(?i)(?:^|[^\d.])(?:0|no|zero|without|keine?|aucune) (?:[\w-]+ ){0,2}"
    rf"(?:{_NOUNS}|error\(s\))\b"
    rf"""|(?:{_NOUNS}|oom[ -]?kill(?:ed)?)(?:["']? ?[:=]? ?|(?: \w+)? *[:=] *)["']?"""
    r"""(?:0+(?:\.0+)?(?:[^\w.]|$)|(?:none|null|nil|false)\b"""
    rf"""|<nil>|\[\]|"")|(?:{_NOUNS}) \w+ *[:=] *no\b|timeouts?["']?(?: *=| ?: ?["']?\d)"""
    rf"|#(?:{_NOUNS})\b|(?-i:On(?:{_CLASSES}))|^\W*on (?:{_NOUNS})\b"
    rf"|\b(?:max(?:imum)?|allowed|tolerated|permitted) (?:{_NOUNS})\b"
    rf"|\b(?:{_NOUNS}) (?:thresholds?|limits?|budgets?|mode|domains?|polic(?:y|ies)|criteria"
    r"|tolerance|handl(?:er|ing)|logging|detection|correction)\b"
    r"|\b(?:raise|except|catch|class|throws?|extends|instanceof|import)\b[\s({\w.,|]*"
    rf"(?:{_CLASSES})\w*|\b(?:def|fn|func|function) [\w.$]+\(.*|(?:^|\s)[✓✔√] .*"
)
_COMMENT = re.compile(r"\s*(?://|/\*|#[\s#!:])|\s+\* ")
_HIT = re.compile(r"(?=[^\s:]*[/\\.][A-Za-z])[^\s:]+:\d+:")  # of a search, or a finding
_ENDS_OF_CODE = (";", "{", "}", "*/")
_TRACEBACK = re.compile(  # of Python, with the same words before each line, if any; and its end
    r"([^\n]*?)Traceback \(most recent call last\):[ \t\r]*\n(?:\1[ \t][^\n]*\n){1,200}(\1\S[^\n]*)"
)
# A line of prose, or a hit, is a message only if it begins as one: `KeyError: 'x'`, `FAILED a.py`.
_MESSAGE = re.compile(
    rf"\s*(?:[-*>] )?(?:\S+[\]):] )?(?:[\w.$]*(?:{_CLASSES})|{_CAPITALS}|(?i:error|fatal|panic)"
    rf"|Traceback)(?:[\[(].*[\])])?(?::?$|: | \(most recent| \S*\w[/:.]\w)|\s*(?:{_MARKS})"
)


@cache
def _patterns() -> tuple[Pattern, ...]:
    return Pattern(_WORD), Pattern(_SURELY), Pattern(_HARMLESS)


class Line(NamedTuple):
    """A line by its offset and its number (the first is 1).

    `end`: the offset where the first word of failure in it ends, or again that of the line.
    """

    at: int
    number: int
    end: int


class Failures(Struct, frozen=True):
    """The lines that speak of failure. `complete`: there are no others."""

    lines: list[Line]
    complete: bool


def failure(line: str, fuel: Fuel, word_end: int = 0) -> tuple[int, bool] | None:
    """Return where the first word of failure in a line ends, and whether it surely is one.

    `word_end`: where a search for such words has found the first one, harmless or not.

    >>> [failure(f"12 passed, {count} failed", Fuel()) for count in (0, 1)]
    [None, (19, False)]
    """
    word, sure, harmless = _patterns()
    if harmless.end_of_first(line):
        line, word_end = harmless.replace(line, " ", fuel), 0
    if end := sure.end_of_first(line):
        return end, True
    end = word_end or word.end_of_first(line)
    return (end, False) if end else None


def _in_prose_or_code(text: str, at: int, line: str) -> bool:
    """Return True if a line is code, or prose between other prose; equal lines around are none."""
    if _COMMENT.match(line) or line.rstrip().endswith(_ENDS_OF_CODE):
        return True
    if not is_prose(line):
        return False
    if is_sentences(line):
        return True
    before = text[max(text.rfind("\n", 0, max(at - 1, 0)), at - _LONGEST) + 1 : at].strip()
    end = text.find("\n", at)
    after = text[end : end + _LONGEST].lstrip("\n").partition("\n")[0] if end >= 0 else ""
    return before != after.strip() and (is_prose(before) or is_prose(after))


_Candidate = tuple[int, int, str, int]
"""The offset of a line, that of the part that is read, this part, and the end of the word in it."""


def _candidates(text: str, fuel: Fuel) -> tuple[list[_Candidate], bool, int]:
    """Return the lines with a word of failure, whether these are all, and the end of the search.

    If one has the level of an error, those of low levels are none.
    """
    leveled, bad, start = have_levels(text), False, 0
    loud, quiet, quiet_read = list[_Candidate](), list[_Candidate](), 0
    while start < len(text) and len(loud) < _MOST and quiet_read < _MOST_QUIET:
        stop = text.rfind("\n", start, start + _PART) + 1
        if not stop or start + _PART >= len(text):
            stop = min(start + _PART, len(text))
        for first, last in _patterns()[0].spans(text[start:stop], fuel):
            begin = start + max(first, last - _LONGEST)
            line = text[begin : begin + 2 * _LONGEST].partition("\n")[0]
            level = loudness(line) if leveled else 0
            bad |= level > 0
            if level >= 0:
                loud.append((start + first, begin, line, start + last - begin))
            elif len(quiet) < _MOST:
                quiet.append((start + first, begin, line, start + last - begin))
            quiet_read += level < 0
            if len(loud) == _MOST or quiet_read == _MOST_QUIET:
                break
        start = stop
    every = loud if bad else sorted(loud + quiet)[:_MOST]
    return every, len(every) < _MOST and quiet_read < _MOST_QUIET, start


def failures(text: str) -> Failures:
    """Find the lines that speak of failure; a word that is common in the text tells nothing."""
    fuel = Fuel()
    candidates, complete, stop = _candidates(text, fuel)
    prose = bool(candidates) and is_of_prose(text)
    sure, maybe = dict[int, int](), list[tuple[int, int, str]]()
    for at, begin, line, word_end in candidates:
        # How it ends says more than that it is one: of a class that may be called anything.
        if "Traceback" in line and (traceback := _TRACEBACK.match(text, at)):
            sure.setdefault(*traceback.span(2))
            continue
        if (prose or _HIT.match(line)) and not _MESSAGE.match(line):
            continue
        word = failure(line, fuel, word_end)
        if word is not None and word[1]:
            sure[at] = begin + word[0]
        elif word is not None:
            maybe.append((at, begin + word[0], line))
    if len(maybe) > _COMMON and len(maybe) > text.count("\n", 0, stop) // _COMMON:
        maybe = []
    sure |= {at: end for at, end, line in maybe if not _in_prose_or_code(text, at, line)}
    lines, number, counted = list[Line](), 1, 0
    for at, end in sorted(sure.items()):
        number, counted = number + text.count("\n", counted, at), at
        lines.append(Line(at, number, end))
    return Failures(lines, complete)
