"""Expressions that make or read far more than their value holds."""

from typing import Any

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.errors import OutOfFuel
from mcp_abridge.query.patterns import Expression


def piped(*steps: str | int) -> str:
    """Write steps that follow each other; a number before one says how often it stands there."""
    pipe: list[str] = []
    times = 1
    for step in steps:
        if isinstance(step, int):
            times = step
        else:
            pipe += [step] * times
            times = 1
    return " | ".join(pipe)


TWICE = piped(30, "[@, @]")
WIDE = piped(17, "[@, @]", "[]" * 16)  # 131,072 references to the value
LONG = piped("[0]", 20, "join('', [@, @])")  # a million times the text
SMALL = {"a": 1}
GREAT = 10**3990

# Each with the value that it is evaluated over.
EXPLOSIVE: dict[str, tuple[str, Any]] = {
    "the text of shared parts": (piped(TWICE, "to_string(@)"), SMALL),
    "the length of that text": (piped(TWICE, "length(to_string(@))"), [SMALL] * 99),
    "flattened": (piped(TWICE, 29, "[]"), SMALL),
    "compared": (f"({TWICE}) == ({TWICE})", SMALL),
    "told apart": (f"({TWICE}) != ({TWICE})", SMALL),
    "contained": (f"contains([{TWICE}], ({TWICE}))", SMALL),
    "looked for": (piped(WIDE, 99, "contains(@, 'x') && @ || @"), SMALL),
    "joined": (piped("[0]", 40, "join('', [@, @])"), ["x" * 100]),
    "joined by a text": (piped("[0]", 40, "join(@, ['', '', ''])"), ["é" * 100]),
    "sorted": (piped(WIDE, "map(&to_string(@), @)", 99, "sort(@)"), SMALL),
    "sorted by a text": (piped(WIDE, 9, "sort_by(@, &to_string(@))"), SMALL),
    "the greatest": (piped(WIDE, "map(&to_string(@), @)", 99, "[max(@)] && @"), SMALL),
    "the greatest by a text": (piped(WIDE, 9, "max_by(@, &to_string(@)) && @"), SMALL),
    "mapped": (piped(WIDE, 9, "map(&map(&[@, @], [@, @]), @)"), SMALL),
    "merged": (piped(25, "{a: @, b: @}", "merge(a, b, a)", "to_string(@)"), SMALL),
    "values of values": (piped(30, "{a: @, b: @}", "values(@)", 29, "map(&values(@), @)[]"), SMALL),
    "values": (piped(WIDE, 99, "map(&{a: @, b: @}, @)"), SMALL),
    "turned round": (piped(WIDE, 200, "reverse(@)"), SMALL),
    "a text turned round": (piped(LONG, 99, "reverse(@)"), ["xy" * 50]),
    "slices": (piped(WIDE, f"[{', '.join(['@[:]'] * 300)}]"), SMALL),
    "slices of a text": (piped(LONG, f"[{', '.join(['@[1:]'] * 300)}]"), ["x" * 100]),
    "filtered": (piped(WIDE, 150, "[?@]"), SMALL),
    "sums": (piped(WIDE, "map(&`1`, @)", 99, "[sum(@)] && @"), SMALL),
    "great numbers": (piped(17, "[@, @]", "[]" * 18, 9, "map(&abs(@), @)"), [-GREAT]),
    "great numbers spelled": (piped(17, "[@, @]", "[]" * 18, 9, "map(&to_string(@), @)"), [GREAT]),
    "numbers read": (piped(WIDE, 9, f"map(&to_number('{'9' * 300}'), @)"), SMALL),
    "arrays of arrays": (piped(15, f"[{', '.join('@' * 10)}][*][]"), SMALL),
}


def ended(name: str, fuel: Fuel) -> str:
    """Evaluate one; return its error, or that it is done."""
    text, value = EXPLOSIVE[name]
    try:
        Expression(text).bind({}, fuel)(value)
    except OutOfFuel as error:
        return str(error)
    return "it is done"
