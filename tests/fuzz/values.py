r"""Random JSON as servers send it: with the names that rules look for, spelled in every way.

A tree is what is written: objects as pairs, so that a name can come twice, and scalars as they are
spelled.
"""

import json
from typing import TypeAlias

from msgspec import Struct

from tests.fuzz.dice import Dice

Tree: TypeAlias = "Members | list[Tree] | str"


class Members(Struct):
    """An object: its members in order."""

    pairs: list[tuple[str, "Tree"]]


NAMES = ("id", "title", "body", "n", "tags", "user", "login", "meta", "text", "log", "total")
ODD_NAMES = ("", "a.b", "items", "é", "pagination", "_abridged", "truncation", "x y", "a\u2028b")
NUMBERS = ("0", "1", "2", "17", "40", "-0", "1.10", "1.0", "-0.0", "2.50", "1e400", "1E5", "1e-7")
LARGE = ("12345678901234567890123", "18446744073709551616", "-9007199254740993", "9" * 400)
WORDS = (
    *("open", "closed", "a/b.md", "c.png", "kind: bug", "token=abc&x=1", "2024-01-02", ""),
    *("null",),
)
SIGNS = (
    *("é", "漢字", "😀", "\u2028", "\x85", "\t", '"', "\\", "\n", "\r\n", "\x00", "\x7f", "…", "a"),
    *(" ",),
)
LONE = ('"\\ud800"', '"x\\uDFFFy"', '"\\udc00\\ud800"', '"\\uDbFf"')
PLANE_16 = ("\U0010f123", "\U0010ffff")


def document(dice: Dice) -> Tree:
    """Return the document of an answer: mostly records in one of the forms that they come in."""
    kind = dice.below(20)
    if kind < 10:
        return overview(dice)
    if kind < 13:
        return [record(dice) for _ in range(rows(dice))]
    if kind < 15:
        return Members([("items", table(dice)), ("total", number(dice))])
    if kind < 16:
        return nested(dice, dice.within(1, 900) if dice.one_in(8) else dice.within(1, 40))
    return anything(dice, 4)


def overview(dice: Dice) -> Members:
    """Return an object with the members that the rules of `rulefiles` work on."""
    pairs: list[tuple[str, Tree]] = [
        ("items", [record(dice) for _ in range(rows(dice))]),
        ("total", number(dice)),
        ("log", embedded(dice) if dice.one_in(10) else string(dice, long=True)),
        ("text", string(dice, long=dice.one_in(3))),
        ("meta", Members([("page", number(dice)), ("rows", [scalar(dice)] * dice.below(9))])),
        ("user", record(dice)),
    ]
    if dice.one_in(3):
        pairs = [pair for pair in pairs if not dice.one_in(3)]
    if dice.one_in(4):
        pairs.append((dice.pick(ODD_NAMES), anything(dice, 2)))
    if dice.one_in(30) and pairs:
        pairs.append((dice.pick(pairs)[0], anything(dice, 1)))
    if dice.one_in(6):
        dice.shuffle(pairs)
    return Members(pairs)


def embedded(dice: Dice) -> str:
    """Return a string that is itself JSON, as it is spelled."""
    log = dice.pick(LONE) if dice.one_in(3) else string(dice)
    inner = Members([("log", log), ("user", record(dice)), ("items", [record(dice)])])
    return spelled(dice, write(dice, inner))


def rows(dice: Dice) -> int:
    return dice.below(300) if dice.one_in(25) else dice.below(9)


def record(dice: Dice) -> Tree:
    """Return one of many: an object, seldom something else."""
    if dice.one_in(25):
        return anything(dice, 1)
    pairs: list[tuple[str, Tree]] = [
        ("id", number(dice)),
        ("title", string(dice)),
        ("body", string(dice, long=dice.one_in(6))),
        ("n", scalar(dice)),
        ("gone", dice.pick(("true", "false", "null"))),
        ("tags", [Members([("name", string(dice))]) for _ in range(dice.below(3))]),
        ("user", Members([("login", string(dice)), ("id", number(dice))])),
    ]
    chance = dice.below(8)
    if chance == 0:
        pairs = [pair for pair in pairs if dice.one_in(2)]
    elif chance == 1:
        dice.shuffle(pairs)
    elif chance == 2:
        pairs[dice.below(len(pairs))] = (dice.pick(ODD_NAMES), anything(dice, 1))
    elif chance == 3 and dice.one_in(8):
        pairs.append((dice.pick(NAMES), scalar(dice)))
    return Members(pairs)


def table(dice: Dice) -> Tree:
    names = sorted({dice.pick(NAMES) for _ in range(3)})
    return [Members([(name, scalar(dice)) for name in names]) for _ in range(dice.below(12))]


def anything(dice: Dice, depth: int) -> Tree:
    kind = dice.below(6) if depth else 0
    if kind < 3:
        return scalar(dice)
    if kind < 5:
        return Members(
            [
                (dice.pick(NAMES + ODD_NAMES), anything(dice, depth - 1))
                for _ in range(dice.below(5))
            ]
        )
    return [anything(dice, depth - 1) for _ in range(dice.below(5))]


def nested(dice: Dice, depth: int) -> str:
    """Return a value at the bottom of so many levels, as it is written."""
    opened, closed = [], []
    for _ in range(depth):
        array = dice.one_in(2)
        opened.append("[" if array else f'{{"{dice.pick(NAMES)}":')
        closed.append("]" if array else "}")
    return "".join([*opened, scalar(dice), *reversed(closed)])


def scalar(dice: Dice) -> str:
    kind = dice.below(10)
    if kind < 4:
        return number(dice)
    return dice.pick(("null", "true", "false")) if kind == 4 else string(dice)


def number(dice: Dice) -> str:
    if dice.one_in(3):
        return str(dice.within(-5, 5000))
    return dice.pick(LARGE) if dice.one_in(12) else dice.pick(NUMBERS)


def string(dice: Dice, *, long: bool = False) -> str:
    if dice.one_in(200):
        return dice.pick(LONE)
    return spelled(dice, prose(dice) if long else word(dice))


def word(dice: Dice) -> str:
    kind = dice.below(10)
    if kind < 5:
        return dice.pick(WORDS)
    if kind < 7:
        return f"{dice.pick(WORDS)}-{dice.below(100)}"
    if kind == 7 and dice.one_in(60):
        return dice.pick(PLANE_16)
    return "".join(dice.pick(SIGNS) for _ in range(dice.below(12)))


def prose(dice: Dice) -> str:
    count = dice.below(2500) if dice.one_in(12) else dice.below(30)
    parts = [dice.pick(WORDS) for _ in range(min(count, 12))]
    parts += [word(dice), "\n" if dice.one_in(2) else " "]
    text = " ".join(parts)
    return text * (count // 12 + 1)


def spelled(dice: Dice, said: str) -> str:
    """Return a text as a JSON string, in one of the ways in which it may be written."""
    way = dice.below(8)
    if way < 5:
        return json.dumps(said, ensure_ascii=False)
    if way < 7:
        return json.dumps(said)
    written = json.dumps(said).replace("/", "\\/")
    return written.replace("a", "\\u0061") if dice.one_in(2) else written


def write(dice: Dice, tree: Tree, *, lines: bool = False) -> str:
    if lines:
        return _written(tree, dice.pick((",\n  ", "\r\n,", " ,\n")), " : ")
    return _written(tree, ", ", ": ") if dice.one_in(4) else _written(tree, ",", ":")


def _written(tree: Tree, comma: str, colon: str) -> str:
    if isinstance(tree, str):
        return tree
    if isinstance(tree, list):
        return "[" + comma.join([_written(each, comma, colon) for each in tree]) + "]"
    pairs = [json.dumps(name) + colon + _written(each, comma, colon) for name, each in tree.pairs]
    return "{" + comma.join(pairs) + "}"
