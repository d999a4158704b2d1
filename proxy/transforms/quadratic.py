"""Finds regular expressions that take quadratic time to find all matches in a text.

One search of RE2 is linear. But while a match may still become a longer or an earlier one, the
engine must read on; if it reads to the end of the text for each of many matches, in vain, the sum
is quadratic. `a(.*b)?` does so in `aaaa`.

A positive result is certain, since it is measured with the engine itself: in a text that repeats
one word, many matches change if only the far end of the text changes. Not every such expression is
found: the words tried are made from the parts of the expression.
"""

import re
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from proxy.document.fuel import Fuel
from proxy.document.patterns import Pattern
from proxy.errors import OutOfFuel

_SIGNS = "x0 -\n"
_MOST_SIGNS = 4
_MOST_WORDS = 24
_LONGEST = 48  # characters of a word
_FEW = 12  # repetitions of a word in the text of the first test
_SECOND = 1_000_000  # units
_MOST_TEXT = 10_000  # characters of an expression
_FAR = 4_000  # more characters than a bounded repetition of RE2, at most 1000, sees from its match


@lru_cache(maxsize=256)
def witness(text: str) -> tuple[str, str] | None:
    r"""Return a word and an end: the word, repeated before the end, takes quadratic time.

    None if no such word is found, or if the search would take more than a second.

    >>> witness(r"a(.*b)?"), witness(r"\s+(?:\s$)?|\d(\d*\.)?")
    (('a', ''), ('0', ''))
    >>> witness(r"\s+"), witness(r"(a+)+"), witness(r"a(.{0,99}b)?")
    (None, None, None)
    """
    if len(text) > _MOST_TEXT:
        return None
    try:
        return _witness(text, Fuel(_SECOND))
    except (re.error, RecursionError, OverflowError, OutOfFuel):
        return None


def _witness(text: str, fuel: Fuel) -> tuple[str, str] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # RE2 notations that Python warns will change meaning
        tree = _parser.parse(text)
    if not _wavers(tree):
        return None
    pattern, words = Pattern(text), _words(tree, _literals(tree)[:_MOST_SIGNS] + _SIGNS)
    ends = _shortest((word[at:] for word in (*words, *_SIGNS) for at in range(len(word))), 16)
    starts = _shortest((word[:at] for word in words for at in range(len(word) + 1)), 64)
    for word in _shortest((start + rest for rest in ("", *words) for start in starts), 128):
        if word and pattern.search(word * _FEW, fuel=fuel) is not None:
            for end in ends:
                for near, far in (("", end), (end, "")):
                    if _unsettled(pattern, word, near, far, fuel):
                        return word, near
    return None


_parser: Any = re._parser  # type: ignore[attr-defined]


def refusal(text: str) -> str | None:
    """Return why an expression cannot be used for all matches in a text; None if it can."""
    found = witness(text)
    if found is None:
        return None
    word, end = found
    return (
        f"{text!r} takes quadratic time, in {word * max(1, 4 // len(word)) + '…' + end!r} for one: "
        "at every match it reads on to the end for another; bound what repeats, as in {0,200}"
    )


def _unsettled(pattern: Pattern, word: str, near: str, far: str, fuel: Fuel) -> bool:
    """Return True if matches in a text of one word change if it ends in `far`, not `near`."""
    few, many = word * _FEW, word * (_FAR // len(word) + 1)
    return _differ(pattern, few + near, few + far, 0, len(few), fuel) and all(
        _differ(pattern, many + near, many + far, start, len(few), fuel) for start in (0, len(few))
    )


def _differ(pattern: Pattern, text: str, other: str, start: int, near: int, fuel: Fuel) -> bool:
    """Return True if three matches from `start` on are near in `text` and differ in `other`."""
    position = start
    for _ in range(3):
        found = pattern.search(text, position, fuel)
        if found is None or found.end() - start >= near:
            return False
        elsewhere = pattern.search(other, position, fuel)
        if elsewhere is None or found.span() == elsewhere.span():
            return False
        position = found.end() + (found.end() == found.start())
    return True


def _shortest(words: Iterable[str], most: int) -> list[str]:
    return sorted(set(words), key=lambda word: (len(word), word))[:most]


def _wavers(tree: Any) -> bool:
    """Return True if a parsed expression may have to read on at a match.

    It may if an unbounded repetition is inside an alternative, or inside an optional or repeated
    part. Otherwise, all text after a match makes the match longer.
    """
    for code, argument in tree:
        if str(code) in _REPEATS and (_endless(argument[2]) or _wavers(argument[2])):
            return True
        if str(code) == "BRANCH" and any(map(_endless, argument[1])):
            return True
        if str(code) == "SUBPATTERN" and _wavers(argument[3]):
            return True
    return False


def _endless(tree: Any) -> bool:
    """Return True if a parsed expression contains an unbounded repetition."""
    return any(
        (str(code) in _REPEATS and (argument[1] is _parser.MAXREPEAT or _endless(argument[2])))
        or (str(code) == "BRANCH" and any(map(_endless, argument[1])))
        or (str(code) == "SUBPATTERN" and _endless(argument[3]))
        for code, argument in tree
    )


_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")


def _literals(tree: Any) -> str:
    """Return the literal characters of a parsed expression, each once."""
    found = ""
    for code, argument in tree:
        if str(code) == "LITERAL":
            found += chr(argument)
        elif str(code) == "BRANCH":
            found += "".join(map(_literals, argument[1]))
        elif str(code) == "SUBPATTERN":
            found += _literals(argument[3])
        elif str(code) in _REPEATS:
            found += _literals(argument[2])
    return "".join(dict.fromkeys(found))


def _words(tree: Any, signs: str) -> list[str]:
    """Return some short texts that an expression may match, by many ways through it.

    If several characters are possible, those in `signs` are tried first.
    """
    words = [""]
    for code, argument in tree:
        inner = _of(str(code), argument, signs)
        words = _thinned(before + word for before in words for word in inner)
    return words


def _of(code: str, argument: Any, signs: str) -> list[str]:
    if code == "LITERAL":
        return [chr(argument)]
    if code == "BRANCH":
        return _thinned(word for branch in argument[1] for word in _words(branch, signs))
    if code == "SUBPATTERN":
        return _words(argument[3], signs)
    if code in _REPEATS:
        least, most, inner = argument
        times = (least, least + 1) if most is _parser.MAXREPEAT or most > least else (least,)
        return _thinned(word * count for count in times for word in _words(inner, signs))
    if code == "ANY":
        return [sign for sign in signs if sign != "\n"][:_MOST_SIGNS]
    if code == "NOT_LITERAL":
        return [sign for sign in signs if sign != chr(argument)][:_MOST_SIGNS]
    if code == "IN":
        named = [each for name, each in argument if str(name) in ("LITERAL", "RANGE")]
        own = "".join(chr(each[0] if isinstance(each, tuple) else each) for each in named)
        return [sign for sign in own + signs if _among(argument, sign)][:_MOST_SIGNS]
    return [""]


def _among(members: Any, sign: str) -> bool:
    found = False
    for code, argument in members:
        name = str(code)
        if name == "LITERAL":
            found |= chr(argument) == sign
        elif name == "RANGE":
            found |= argument[0] <= ord(sign) <= argument[1]
        elif name == "CATEGORY":
            found |= _CATEGORIES[str(argument)](sign)
    return found != any(str(code) == "NEGATE" for code, _ in members)


_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_NOT_DIGIT": lambda sign: not sign.isdigit(),
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_NOT_SPACE": lambda sign: not sign.isspace(),
    "CATEGORY_WORD": lambda sign: sign.isalnum() or sign == "_",
    "CATEGORY_NOT_WORD": lambda sign: not (sign.isalnum() or sign == "_"),
}


def _thinned(words: Iterable[str]) -> list[str]:
    """Return at most _MOST_WORDS of `words`, evenly chosen, each of at most _LONGEST characters."""
    found = list(dict.fromkeys(word for word in words if len(word) <= _LONGEST))
    return found[:: len(found) // _MOST_WORDS + 1]
