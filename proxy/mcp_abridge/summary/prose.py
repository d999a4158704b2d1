"""Tells prose from the lines of a log: without it, a manual that explains errors has failures."""

import re
from collections import Counter

_WORDS = 6  # of a line of prose, or more
_OF_SENTENCES = 20  # of a line with more than one sentence, or more
_PARTS = 4  # of a text that are looked at
_PART = 1 << 14  # characters of each
_FEWEST = 8  # lines of prose
_SHARE = 4  # one of so many characters stands in such lines, or more
_COLUMNS = slice(2, 6)  # of words: in a log that has sentences, most lines share one
_SAME = 5  # one line of so many may have the same word there
_SIGNS = "-*+>#\"'( \t"  # before a line of prose
_COMMITS = re.compile(r"(?:[^\n]*\n){0,2}?\W*commit:? '?[0-9a-f]{7,64}\b", re.IGNORECASE)
_NEXT = re.compile(r"[a-z)\"']\. [A-Z]")


def is_prose(line: str) -> bool:
    """Return True if a line is made of words, without a label such as a program's message has."""
    words = line.split()
    labels = any(word.endswith(":") for word in words[: min(_WORDS, len(words) - 1)])
    lower = sum(word.islower() and "=" not in word for word in words)
    return len(words) >= _WORDS and not labels and lower * 4 >= len(words) * 3


def is_sentences(line: str) -> bool:
    """Return True if a line has several sentences, as an abstract has."""
    return len(line.split()) >= _OF_SENTENCES and is_prose(line) and bool(_NEXT.search(line))


def is_of_prose(text: str) -> bool:
    """Return True if a good part of a text is prose, and no log of sentences that recur.

    A log of commits is prose, with what has been changed.

    >>> is_of_prose("the job is done and all of it is well\\n" * 99)
    False
    """
    if _COMMITS.match(text):
        return True
    lines = list[str]()
    for start in range(0, len(text), max(len(text) // _PARTS, _PART)):
        lines += text[start : start + _PART].split("\n")
    size = sum(len(line.strip()) for line in lines)
    beginnings = (line.replace("|", " ").lstrip(_SIGNS) for line in lines)  # of a table, too
    some = [line for line in beginnings if line[:1].isalpha() and is_prose(line)]
    if len(some) < _FEWEST or sum(map(len, some)) * _SHARE < size:
        return False
    columns = [*zip(*(line.split()[_COLUMNS] for line in some), strict=True)]
    return all(Counter(each).most_common(1)[0][1] * _SAME <= len(some) for each in columns)
