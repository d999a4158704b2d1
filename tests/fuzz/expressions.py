"""Random JMESPath: conditions and values of rules, and the views that models ask for."""

from tests.fuzz.dice import Dice

PLACES = (
    *("id", "title", "n", "user.login", "tags[0].name", "body", "nope", "total", "items[0].id"),
    *("items", "items[*].id", "tags[*].name", "@", "meta.rows", "user", '"a.b"', "text", "log"),
)
ARRAYS = ("items", "items", "tags", "meta.rows", "[]", "@", "items[*].tags[]", "nope", "keys(@)")
LITERALS = ("`1`", "'open'", "`null`", "`1.10`", "'a/b.md'", '`"x"`', "`[1, 2]`", "'é'", "`-0`")
SIGNS = ("==", "!=", "<", "<=", ">", ">=")
FUNCTIONS = ("length", "to_string", "to_number", "keys", "values", "type", "reverse", "not_null")
OF_ARRAYS = ("sort", "max", "min", "sum", "avg", "length", "reverse", "join(', ', [0:3])")


def condition(dice: Dice, depth: int = 1) -> str:
    """Return a condition over an element, a document or the arguments of a call."""
    kind = dice.below(7)
    if kind == 0 and depth:
        sign = dice.pick(("&&", "||"))
        return f"({condition(dice, 0)} {sign} {condition(dice, 0)})"
    if kind == 1:
        return f"!{dice.pick(PLACES)}"
    if kind == 2:
        word = dice.pick(("contains", "starts_with", "ends_with"))
        return f"{word}({dice.pick(PLACES)}, {dice.pick(LITERALS)})"
    if kind == 3:
        return f"{dice.pick(PLACES)} == argument('{dice.pick(('wanted', 'nope'))}')"
    return f"{dice.pick(PLACES)} {dice.pick(SIGNS)} {dice.pick(LITERALS)}"


def computed(dice: Dice, depth: int = 2) -> str:
    kind = dice.below(12) if depth else 0
    array = dice.pick(ARRAYS)
    match kind:
        case 0 | 1 | 2:
            return dice.pick(PLACES)
        case 3:
            return f"{dice.pick(FUNCTIONS)}({computed(dice, depth - 1)})"
        case 4:
            return f"{array}[?{condition(dice)}]"
        case 5:
            return f"{array}[*].{{id: {dice.pick(PLACES)}, b: {dice.pick(PLACES)}}}"
        case 6:
            return f"[{computed(dice, depth - 1)}, {computed(dice, depth - 1)}]"
        case 7:
            return f"{computed(dice, depth - 1)} | {computed(dice, depth - 1)}"
        case 8:
            return f"{dice.pick(OF_ARRAYS[:-1])}({array})"
        case 9:
            return f"{dice.pick(('sort_by', 'max_by', 'min_by'))}({array}, &{dice.pick(PLACES)})"
        case 10:
            return f"map(&{dice.pick(PLACES)}, {array}) | {dice.pick((*OF_ARRAYS[-1:], '[]', '@'))}"
        case _:
            return f"merge(@, {{a: {dice.pick(LITERALS)}}})"


def view(dice: Dice) -> str:
    """Return what a model might ask to see: mostly what there is, sometimes nonsense."""
    kind = dice.below(12)
    start, step = dice.within(-3, 30), dice.below(40)
    match kind:
        case 0 | 1:
            return f"items[{start}:{start + step}]"
        case 2:
            return (
                f"{dice.pick(('text', 'log', 'body', '@', 'result'))}[{start}:{start + 20 * step}]"
            )
        case 3:
            return f"[{start}:{start + step}]"
        case 4:
            return f"items[{start}].{dice.pick(('body', 'title', 'tags'))}[{start}:{start + step}]"
        case 5:
            return f"items[*].{{id: id, title: {dice.pick(PLACES)}}}"
        case 6 | 7 | 8:
            return computed(dice)
        case 9:
            doubled = dice.pick(("[@,@]", "[@, @][]", "{a: @, b: @}", "[join('', [@, @])]"))
            return " | ".join([doubled] * dice.pick((1, 3, 9, 30)))
        case 10:
            return dice.pick(
                ("", "items[", "no_such(@)", "length(@)", "`", "a" * 5000, "(" * 300, "\x00", "😀")
            )
        case _:
            return f"text[{start}:{start + 50 * step}:{dice.pick((1, -1, 2))}]"
