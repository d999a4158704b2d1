"""Random texts of tools: JSON in all its dresses, and texts that rules read as structure."""

import json
from typing import Any

from tests.fuzz import values
from tests.fuzz.dice import Dice

FENCE = "```"


def text(dice: Dice, written: str) -> str:
    """Return a text that holds, repeats or goes around `written`, a document as JSON."""
    kind = dice.below(24)
    if kind < 13:
        return written
    match kind:
        case 13:
            return f"found {dice.below(9)}\n{written}{dice.pick(('', chr(10), ' and more'))}"
        case 14:
            return f"# log\n{FENCE}{dice.pick(('json', 'yaml', ''))}\n{written}\n{FENCE}\nend"
        case 15:
            return python(dice, written)
        case 16:
            return yaml(dice, written)
        case 17:
            return "\n".join(values.word(dice) for _ in range(dice.below(40)))
        case 18:
            return records(dice)
        case 19:
            return json.dumps(written, ensure_ascii=dice.one_in(2))
        case 20:
            return f"{dice.pick((' ', chr(10), chr(9), chr(0xFEFF)))}{written}\n"
        case 21:
            return written[: dice.below(len(written) + 1)]
        case 22:
            return dice.pick(
                ("", "5", "null", "Indexing: 40%", "Database error: x", "{", "[1,", '"')
            )
        case _:
            return values.prose(dice)


def python(dice: Dice, written: str) -> str:
    return repr(_tupled(dice, _plain(written)))


def yaml(dice: Dice, written: str) -> str:
    """Return the outermost level as YAML, in a fenced block or alone."""
    value = _plain(written)
    lines = ["- page: 1"]
    if isinstance(value, dict):
        lines = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in value.items()]
    elif isinstance(value, list):
        lines = [f"- {json.dumps(each)}" for each in value]
    said = "\n".join(lines)
    return said if dice.one_in(2) else f"page\n\n{FENCE}yaml\n{said}\n{FENCE}\n"


def records(dice: Dice) -> str:
    """Return records apart by blank lines, or each beginning with the same word."""
    end = dice.pick(("\n", "\r\n"))
    parts = []
    for number in range(dice.below(12)):
        lines = [f"Commit: {number}", *(values.word(dice) for _ in range(dice.below(4)))]
        parts.append(end.join(lines) + end * dice.within(1, 3))
    return "".join(parts) + dice.pick(("", "the end"))


def _plain(written: str) -> Any:
    try:
        # Only so many digits are read as a number.
        return json.loads(written, parse_int=_integer)
    except (ValueError, RecursionError):
        return {}


def _integer(spelling: str) -> Any:
    return int(spelling) if len(spelling) < 100 else spelling


def _tupled(dice: Dice, value: Any) -> Any:
    if isinstance(value, list):
        inner = [_tupled(dice, each) for each in value[:50]]
        return tuple(inner) if dice.one_in(3) else inner
    return value
