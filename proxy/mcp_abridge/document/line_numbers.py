"""Numbers that a tool has put before each line of a file: with them, no line begins as it does.

Without it, source code that is read with its numbers is a table of two columns, or has no outline.
"""

import re

_NUMBER = re.compile(r"[ \t]*(\d{1,7})(?:[\t→]|:[ \t]|:?$| ?[|│])", re.MULTILINE)
_BEFORE = 3  # lines that say which file it is
_FEWEST = 5  # lines that are numbered
_FIRST = 12  # lines that are read
_BEGINNING = 4000  # characters


def are_numbered(text: str) -> bool:
    r"""Return True if the first lines begin with their numbers; those of a table have a head.

    >>> lines = "".join(f"{n:6}\tline {n}\n" for n in range(40, 50))
    >>> are_numbered(lines), are_numbered(f"The file a.py:\n{lines}")
    (True, True)
    >>> are_numbered(f"n\ta\n{lines}"), are_numbered(lines.replace("45", "54"))
    (False, False)
    >>> are_numbered("".join(f"{n}\t{n * 7}\t{n * 3}\n" for n in range(40)))
    False
    """
    lines = text[:_BEGINNING].split("\n")[: _BEFORE + _FIRST]
    matches = [_NUMBER.match(line) for line in lines]
    start = next((at for at, each in enumerate(matches) if each), len(lines))
    run = matches[start:-1][:_FIRST]  # the last line may be cut
    numbers = [int(each[1]) for each in run if each]
    tabs = {line.count("\t") for line in lines[start : start + len(run)]}
    if start > _BEFORE or "\t" in "".join(lines[:start]) or (len(tabs) == 1 and max(tabs) > 1):
        return False  # a table
    upwards = numbers == [*range(numbers[0], numbers[0] + len(run))] if numbers else False
    return upwards and len(run) >= _FEWEST


def without_numbers(text: str) -> str:
    r"""Return a text without the numbers before its lines, which are as many as before.

    >>> without_numbers("7→ a\n8→b")
    ' a\nb'
    """
    return "\n".join(
        line[match.end() :] if (match := _NUMBER.match(line)) else line for line in text.split("\n")
    )
