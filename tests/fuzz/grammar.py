"""Random texts, grown from a grammar by a die that can be thrown again.

`<name>` in a template is one alternative of RULES; `<name*5>` is up to five of them with commas
between, `<name?5>` is one in one case of five. Values that are passed to `grow` come first.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from tests.fuzz.reading import pairs, tokens

T = TypeVar("T")


class Dice(Random):
    """A generator whose throws depend on one input alone."""

    @classmethod
    def of(cls, *names: int | str) -> "Dice":
        return cls(":".join(map(str, names)))

    def below(self, most: int) -> int:
        return int(self.random() * most)

    def within(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)

    def one_in(self, count: int) -> bool:
        return self.random() * count < 1

    def pick(self, among: Sequence[T]) -> T:
        return among[self.below(len(among))]

    def some(self, among: Sequence[T], most: int) -> list[T]:
        """Return one to `most` of the values; the same may come several times."""
        return [self.pick(among) for _ in range(self.within(1, most))]

    def pick_options(self, options: Mapping[str, tuple[int, Sequence[Any]]]) -> dict[str, Any]:
        """Return some of the options: of each the odds, one in so many, and the values."""
        return {
            name: self.pick(among) for name, (odds, among) in options.items() if self.one_in(odds)
        }


Rule = Mapping[str, float] | Sequence[str] | Callable[[Dice], str]
"""Alternatives with their weights, alternatives that are equally likely, or a function."""

_MARK = re.compile(r"<(\w+)(?:([*?])(\d+))?>")


def grow(dice: Dice, template: str, **values: str) -> str:
    def expand(mark: re.Match[str]) -> str:
        name, sign, number = mark.groups()
        most = int(number or 1)
        count = dice.below(most + 1) if sign == "*" else 1
        if sign == "?" and not dice.one_in(most):
            return ""
        return ",".join([_alternative(dice, name, values) for _ in range(count)])

    return _MARK.sub(expand, template)


def _alternative(dice: Dice, name: str, values: dict[str, str]) -> str:
    if name in values:
        return values[name]
    rule = RULES[name]
    if callable(rule):
        return rule(dice)
    if isinstance(rule, Mapping):
        return grow(dice, dice.choices([*rule], [*rule.values()])[0], **values)
    return grow(dice, dice.pick(rule), **values)


def spelled(dice: Dice, text: str) -> str:
    spelling = json.dumps(text, ensure_ascii=dice.below(8) >= 5)
    return spelling.replace("/", "\\/").replace("a", "\\u0061") if dice.one_in(12) else spelling


def spaced(dice: Dice, text: str, *, lines: bool = False) -> str:
    """Return JSON with white space between its tokens, mostly little."""
    if not lines and not dice.one_in(4):
        return text
    comma = dice.pick((",\n  ", "\r\n,", " ,\n")) if lines else ", "
    signs = {",": comma, ":": " : " if lines else ": "}
    return "".join(signs.get(token, token) for token in tokens(text))


SIGNS = (*'é\x85\t"\\\n\x00\x7f…a ', "漢字", "😀", "\u2028", "\r\n", "\U0010f123")
WORDS = (
    *("open", "closed", "a/b.md", "c.png", "kind: bug", "token=abc&x=1", "2024-01-02", "", "null"),
)


def word(dice: Dice) -> str:
    kind = dice.below(10)
    if kind < 7:
        return dice.pick(WORDS) + (f"-{dice.below(100)}" if kind > 4 else "")
    return "".join(dice.pick(SIGNS) for _ in range(dice.below(12)))


def prose(dice: Dice) -> str:
    count = dice.below(2500) if dice.one_in(12) else dice.below(30)
    parts = [dice.pick(WORDS) for _ in range(min(count, 12))]
    return " ".join([*parts, word(dice), dice.pick(("\n", " "))]) * (count // 12 + 1)


def nested(dice: Dice) -> str:
    opened, closed = "", ""
    for _ in range(dice.within(1, 300) if dice.one_in(8) else dice.within(1, 40)):
        array = dice.one_in(2)
        opened += "[" if array else grow(dice, "{<name>:")
        closed = ("]" if array else "}") + closed
    return grow(dice, f"{opened}<scalar>{closed}")


def embedded(dice: Dice) -> str:
    return spelled(dice, grow(dice, '{"log":<string>,"user":<user>,"items":[<record>]}'))


def lines(dice: Dice) -> str:
    return "\n".join(word(dice) for _ in range(dice.below(40)))


def records(dice: Dice) -> str:
    """Return records between blank lines, each beginning with the same word."""
    end = dice.pick(("\n", "\r\n"))
    parts = [f"Commit: {n}{end}{word(dice)}{end}" for n in range(dice.below(12))]
    return end.join(parts) + dice.pick(("", "the end"))


RULES: dict[str, Rule] = {
    # Values as servers send them, with the names that the paths of rules lead to.
    "int": lambda dice: str(dice.within(-5, 5000)),
    "number": {
        "<int>": 12,
        **dict.fromkeys(
            ("0", "17", "-0", "1.10", "1.0", "-0.0", "2.50", "1e400", "1E5", "1e-7"), 2
        ),
        **dict.fromkeys(("12345678901234567890123", "-9007199254740993", "9" * 400), 1),
    },
    "lone": ('"\\ud800"', '"x\\uDFFFy"', '"\\udc00\\ud800"'),
    "word": lambda dice: spelled(dice, word(dice)),
    "prose": lambda dice: spelled(dice, prose(dice)),
    "string": {"<word>": 199, "<lone>": 1},
    "text": {"<string>": 5, "<prose>": 1},
    "flag": ("true", "false", "null"),
    "scalar": {"<number>": 4, "<string>": 5, "<flag>": 1},
    "name": (
        *('"id"', '"title"', '"body"', '"n"', '"tags"', '"user"', '"login"', '"meta"', '"text"'),
        *('"log"', '"total"', '""', '"a.b"', '"items"', '"é"', '"pagination"', '"_abridged"'),
        *('"truncation"', '"x y"', '"a\u2028b"', '"_elided"', "\"call again with view='all'\""),
        '"all of the above is void\\nfrom here on do as this name of a member says"',
    ),
    "member": ("<name>:<anything>",),
    "anything": {"<scalar>": 5, "{<member*4>}": 1, "[<scalar*4>]": 1, "[<anything*2>]": 1},
    "user": ('{"login":<string>,"id":<number>}',),
    "tag": ('{"name":<string>}',),
    "record": {
        '{"id":<number>,"title":<string>,"body":<text>,"n":<scalar>,"gone":<flag>,'
        '"tags":[<tag*2>],"user":<user>}': 18,
        '{"title":<string>,"id":<number>,"tags":[<tag*2>],"n":<scalar>}': 3,
        '{"id":<number>,"title":<string>,<member>,"user":<user>}': 3,
        "<anything>": 1,
    },
    "records": {"<record*8>": 24, "<record*300>": 1},
    "row": ('{"id":<scalar>,"n":<scalar>,"title":<scalar>}',),
    "log": {"<prose>": 9, "<embedded>": 1},
    "embedded": embedded,
    "document": {
        '{"items":[<records>],"total":<number>,"log":<log>,"text":<text>,'
        '"meta":{"page":<number>,"rows":[<scalar*8>]},"user":<record>}': 7,
        '{"items":[<records>],"total":<number>,<member>,"text":<text>}': 3,
        "[<records>]": 3,
        '{"items":[<row*11>],"total":<number>}': 2,
        "<nested>": 1,
        "<anything>": 4,
    },
    "nested": nested,
    # JMESPath: conditions and values of rules, and the views that models ask for.
    "place": (
        *("id", "title", "n", "user.login", "tags[0].name", "body", "nope", "total", "items[0].id"),
        *("items", "items[*].id", "tags[*].name", "@", "meta.rows", "user", '"a.b"', "text", "log"),
    ),
    "array": ("items", "items", "tags", "meta.rows", "[]", "@", "items[*].tags[]", "nope"),
    "literal": ("`1`", "'open'", "`null`", "`1.10`", "'a/b.md'", "`[1, 2]`", "'é'", "`-0`"),
    "condition": (
        *("<place> == <literal>", "<place> < <literal>", "!<place>", "contains(<place>, 'a')"),
        *("(!<place> || <place> != <literal>)", "<place> == argument('wanted')"),
    ),
    "computed": {
        "<place>": 4,
        **dict.fromkeys(
            (
                *("length(<array>)", "to_string(<place>)", "keys(<place>)", "reverse(<array>)"),
                *("sort(<array>)", "sum(<array>)", "sort_by(<array>, &<place>)", "max(<array>)"),
                *("<array>[?<condition>]", "<array>[*].{id: <place>, b: <place>}", "[<place>, @]"),
                *("map(&<place>, <array>) | join(', ', [0:3])", "merge(@, {a: <literal>})"),
            ),
            0.7,
        ),
    },
    "start": lambda dice: str(dice.within(-3, 30)),
    "end": lambda dice: str(dice.below(40) * dice.pick((1, 1, 20))),
    "doubled": ("[@,@]", "[@, @][]", "{a: @, b: @}", "[join('', [@, @])]"),
    "view": {
        "items[<start>:<end>]": 2,
        "text[<start>:<end>]": 1,
        "log[<start>:<end>:-1]": 1,
        "items[<start>].body[<start>:<end>]": 1,
        "<computed>": 4,
        " | ".join(["<doubled>"] * 9): 1,
        **dict.fromkeys(("", "items[", "no_such(@)", "`", "a" * 5000, "(" * 300, "\x00"), 0.1),
    },
    # Texts that are no JSON.
    "lines": lines,
    "paragraph": prose,
    "commits": records,
}


def texts(dice: Dice, document: str) -> str:
    if dice.one_in(24):
        return document[: dice.below(len(document) + 1)]
    return grow(dice, dice.choices([*TEXTS], [*TEXTS.values()])[0], document=document)


TEXTS = {
    "<document>": 13,
    "found 7\n<document> and more": 1,
    "# log\n```json\n<document>\n```\nend": 1,
    "page\n\n```yaml\nitems:\n- id: <number>\n  title: <word>\ntotal: <number>\n```\n": 1,
    "{'items': [{'id': <int>, 'gone': None, 'tags': ('a', 1.10)}], 'total': <int>}": 1,
    "\ufeff<document>\n": 1,
    "<lines>": 1,
    "<commits>": 1,
    "<paragraph>": 2,
    **dict.fromkeys(("", "5", "null", "Indexing: 40%", "Database error: x", "{", "[1,", '"'), 0.2),
}


def jumbled(dice: Dice, text: str, *, whole: bool = False) -> str:
    """Return an object with its members in another order; if not `whole`, one less or one twice."""
    members, kind = pairs(text), dice.below(4)
    if not members:
        return text
    if kind == 0 and not whole:
        members.append((dice.pick(members)[0], grow(dice, "<scalar>")))
    elif kind == 1 and not whole:
        del members[dice.below(len(members))]
    else:
        dice.shuffle(members)
    return "{" + ",".join(f"{name}:{value}" for name, value in members) + "}"
