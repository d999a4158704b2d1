r"""Views as commands of a shell: grep, head, tail, sed, wc and uniq, and their pipes.

Without it, `grep ERROR | grep -v timeout` is a search for the text `ERROR | grep -v timeout`.
"""

import re

from mcp_abridge.query.literals import masked, raw_text, unmasked
from mcp_abridge.query.nearby import literal

_OPTIONS = r"(?:\s+-[cinovwEFPrRhsABC]+(?:\s*\d+)?(?=\s|$))*"
_GREP = re.compile(
    rf"""(?:[ef]?grep|rg)(?P<options>{_OPTIONS})\s+(?P<quote>['"]?)(?P<pattern>(?!-).+?)"""
    rf"""(?P=quote)(?P<more>{_OPTIONS})"""
)
_SLASHES = re.compile(r"/(.+)/(i?)")
_LINES = re.compile(r"(?:lines\s*\(?|sed\s+-n\s)\s*'?(\d+)(?:\s*[-:,]\s*|\s+)(\d+)\s*(?:\)|p'?)?")
_PART = re.compile(r"(head|tail)(?:\s+(?:-n\s*)?-?(\d+))?")
_COUNT = re.compile(r"wc(?:\s+-[lc])*")
_SORT, _UNIQ = re.compile(r"sort(?:\s+-\w+)*"), re.compile(r"uniq(?:\s+-[cd]+)?")
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*\"""")
_PIPE = re.compile(r"\s*\|\s*(?=(?:[ef]?grep|rg|head|tail|wc|sort|uniq)(?:\s|$))|\s+\|\s+")
_COMMANDS = (_GREP, _PART, _COUNT, _SORT, _UNIQ)
_FEW = 10  # lines that `head` and `tail` give without a number


def from_shell(view: str) -> str | None:
    r"""Return a view that is a command, or a pipe of commands, as a view; None if it is none.

    >>> from_shell("grep -ci crash"), from_shell("log | tail -5")
    ("grep('(?i)crash') | length(@)", 'log | tail(`5`)')
    >>> print(from_shell("grep ERROR | grep -v time | wc -l"))
    text | split(@, '\n')[?matches(@, 'ERROR') && !matches(@, 'time')] | length(@)
    """
    if match := _SLASHES.fullmatch(view):
        return f"grep({raw_text('(?i)' * bool(match[2]) + match[1])})"
    if match := _LINES.fullmatch(view):
        return f"lines(`{match[1]}`, `{match[2]}`)"
    stages, before, greps = _stages(view), list[str](), list[re.Match[str]]()
    while stages and not any(command.fullmatch(stages[0]) for command in _COMMANDS):
        before.append(stages.pop(0))  # an expression, of which a command gets the value
    of = " | ".join(each for each in before if each != "cat")
    while stages and (grep := _GREP.fullmatch(stages[0])):
        greps.append(grep)
        del stages[0]
    lines = [each for each in stages if not (_SORT.fullmatch(each) or _UNIQ.fullmatch(each))]
    if greps:
        if "c" in _letters(greps[-1]) and not stages:
            stages = ["wc"]
        start = _search(f"{of} | " * bool(of), greps)
    elif any(map(_UNIQ.fullmatch, stages)):
        start, stages = f"{of} | uniq()".removeprefix(" | "), lines
    elif len(stages) == 1 and _COUNT.fullmatch(stages[0]):
        return f"{of or 'text'} | outline().text"
    elif stages and all(part and part[2] for part in map(_PART.fullmatch, stages)):
        start = of
    else:
        return None
    for stage in stages:
        part = _PART.fullmatch(stage)
        if _COUNT.fullmatch(stage):
            start += " | length(@)"
        elif part and not (part[1] == "head" and len(greps) == 1):
            start = f"{start} | {part[1]}(`{part[2] or _FEW}`)".removeprefix(" | ")
        elif not part:
            return None
    return start


def _stages(view: str) -> list[str]:
    """Return the commands between pipes that stand in no quotes."""
    plain, quoted = masked(view, _QUOTED)
    return [unmasked(stage, quoted).strip() for stage in _PIPE.split(plain)]


def _letters(grep: re.Match[str]) -> str:
    return grep["options"] + grep["more"]


def _search(before: str, greps: list[re.Match[str]]) -> str:
    """Return the search of one grep, or the lines that several, or its opposite, leave."""
    letters = [*map(_letters, greps)]
    if len(greps) == 1 and "v" not in letters[0]:
        context = re.search(r"[ABC]\s*(\d+)", letters[0])
        lines = f", `{context[1]}`" if context else ""
        return f"{before}grep({_pattern(greps[0])}{lines})"
    signs = ("!" * ("v" in each) for each in letters)
    tests = (f"{sign}matches(@, {_pattern(grep)})" for sign, grep in zip(signs, greps, strict=True))
    return rf"{before or 'text | '}split(@, '\n')[?{' && '.join(tests)}]"


def _pattern(grep: re.Match[str]) -> str:
    letters = _letters(grep)
    text = literal(grep["pattern"]) if "F" in letters else grep["pattern"]
    if not {"E", "F", "P"} & {*letters}:
        text = text.replace(r"\|", "|")
    text = rf"\b(?:{text})\b" if "w" in letters else text
    return raw_text("(?i)" * ("i" in letters) + text)
