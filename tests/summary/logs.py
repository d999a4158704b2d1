"""Logs of many regular lines with one failure among them, from the templates of logs.yaml.

Those of blocks.yaml are blocks of lines.
"""

import random
import re
from pathlib import Path
from typing import Any

import yaml

LOGS, BLOCKS = (
    yaml.safe_load((Path(__file__).parent / name).read_text(encoding="utf-8"))
    for name in ("logs.yaml", "blocks.yaml")
)
_FIRST = ["ka", "lo", "mi", "nu", "re", "so", "ta", "vi", "zu", "pe", "bra", "cle"]
_LAST = ["dor", "lim", "nak", "pes", "rit", "sol", "tan", "vex"]
# Names of hexadecimal letters alone are there, too.
_WORDS = [a + b for a in _FIRST for b in _LAST] + ["cafe", "badge", "face", "deed"]


def log(row: dict[str, Any], count: int = 1000) -> str:
    """Return the text of a row: `{word}`, `{hex}`, `{n}` and digits are filled in at random."""
    dice = random.Random(row["name"])
    lines = [_filled(dice.choice(row["regular"]), dice) for _ in range(count)]
    lines.insert(dice.randrange(300, 850), row["failure"])
    return "\n".join(lines) + "\n"


def blocks(row: dict[str, Any], count: int = 40) -> str:
    """Return the text of a row of blocks, of which one is unlike the others."""
    dice = random.Random(row["name"])
    texts = [_filled(row["block"], dice) for _ in range(count)]
    for before, after in row.get("unlike", {}).items():
        texts[count // 2] = texts[count // 2].replace(before, after)
    return "".join(texts)


def _filled(line: str, dice: random.Random) -> str:
    def value(match: re.Match[str]) -> str:
        kind = match[1]
        if kind.lower() == "word":
            word = dice.choice(_WORDS)
            return word if kind == "word" else word.capitalize()
        if kind == "hex":
            return f"{dice.getrandbits(32):x}"
        if kind == "n":
            return str(int(10 ** (dice.random() * 3)))
        return str(dice.randrange(10 ** len(kind))).zfill(len(kind))

    return re.sub(r"\{([Ww]ord|hex|n+|d)\}", value, line)
