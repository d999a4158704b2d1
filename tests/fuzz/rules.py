"""Random rule files: one rule in YAML, mostly right, with every key and every option.

The options of a step are those of its class; POOLS has the values that an option may have, and
values that hit and miss.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import yaml
from mcp_abridge.ruleset.loading.convert import fields
from mcp_abridge.transforms import TRANSFORMS

from tests.fuzz.grammar import Dice, grow

Step = dict[str, Any]
Pool = Sequence[Any] | Callable[[Dice], Any]

OBJECTS = ("", "items", "items", "user", "items.user", "meta", "items.tags", "nope", "items[0]")
ARRAYS = ("", "items", "items", "items", "meta.rows", "items.tags", "nope", "total", "items[].tags")
MEMBERS = ("id", "title", "body", "n", "tags", "user.login", "tags.name", "user", "nope", "gone")
PATHS = (
    *("items", "items.id", "items.title", "items.tags.name", "total", "log", "text", "meta.page"),
    *("items.user.login", "items.user", "user", "user.id", "id", "title", "body", "n", "tags"),
    *("**.id", "*s", "items[0]", "items[-1].id", "nope", "items.nope", '"a.b"', "user.*", "**"),
    *("items[].title", "**.tags.name", "meta.rows[1]", "items.*d", "[0]", "[-1].title"),
    *("items[9]",),
)
TEXTS = (
    *("", "log", "text", "items.body", "items.title", "body", "title", "**.name", "nope"),
    *("items",),
)
REGULAR = (
    *("a", "[a-z]+", r"(\w+)-(\d+)", "^$", r"\d+", "é|😀", r"(?P<one>\w)(?P<two>.)?", "x*", r"\s"),
    *("(?i)OPEN", r"\bkind\b", "^Database error", r"found \d+\n", "", ".", "漢", r"\n"),
)
CONSTANTS: tuple[Any, ...] = (0, 1.5, -1, "none", "", None, True, [], {}, [1, "é"], {"a": 1.25})
ARGUMENTS = ("wanted", "filter.name", "limit", "nope")
ANY_ARGUMENT = tuple({"argument": name} for name in ARGUMENTS)
SIZES = (300, 301, 700, 9000)


def condition(dice: Dice) -> str:
    return grow(dice, "<condition>")


def computed(dice: Dice) -> str:
    return grow(dice, "<computed>")


def paths(dice: Dice) -> list[str]:
    return dice.some(dice.pick((PATHS, MEMBERS)), 5)


def _default(dice: Dice, count: int = 3) -> Step:
    return {"default": dice.pick(CONSTANTS)} if dice.one_in(count) else {}


def _source(dice: Dice) -> Any:
    kind = dice.below(5)
    if kind == 0:
        return {"jmespath": computed(dice), **_default(dice)}
    if kind == 1:
        over = {"over_null": True} if dice.one_in(2) else {}
        return {"path": dice.pick(PATHS), **_default(dice, 2), **over}
    return dice.pick(PATHS)


def _fields(dice: Dice, depth: int = 1) -> list[Any]:
    columns: dict[str, Any] = {}
    for name in dice.some(("id", "title", "body", "n", "first", "user", "all", "x.y"), 5):
        kind = dice.below(6)
        if kind == 0 and depth:
            group = {"from": dice.pick(OBJECTS[1:]), "fields": _fields(dice, depth - 1)}
            columns[f"group {name}"] = {**group, **_default(dice)}
        else:
            columns[name] = {name: _source(dice)} if kind < 4 else name
    return list(columns.values())


def _shape(dice: Dice, captures: Sequence[str], depth: int = 1) -> Any:
    kind = dice.below(7)
    if kind == 0 and depth:
        names = dice.some(("a", "status", "b"), 3)
        return {name: _shape(dice, captures, depth - 1) for name in names}
    if kind == 1 and depth:
        return [_shape(dice, captures, 0) for _ in range(dice.below(3))]
    if kind == 2:
        return {"argument": dice.pick(ARGUMENTS), **_default(dice, 2)}
    if kind < 5 and len(captures) == 1:
        source = {"path": dice.pick(PATHS)} if kind == 3 else {"jmespath": computed(dice)}
        return {**source, **_default(dice, 2)}
    return f"{{{dice.pick(captures)}}}" if kind == 5 else dice.pick(CONSTANTS)


def _cases(dice: Dice) -> list[Step]:
    words = (r"(?P<word>\w+).*?(?P<number>\d+)?", r"(?P<word>.)", "(?s)(?P<word>.*)")
    matching = [
        {"match": match, "to": {"a": _shape(dice, ("text", "word")), "status": "ok"}}
        for match in words[: dice.below(3)]
    ]
    last = {"where": condition(dice)} if dice.one_in(3) else {}
    return [*matching, {**last, "to": {"a": _shape(dice, ("text",)), "status": "ok"}}]


def _names(dice: Dice) -> Step:
    names = ("name", "id", "total", "é", "pagination")
    return {path: dice.pick(names) for path in dice.some(PATHS, 3)}


def _windows(dice: Dice) -> Any:
    places = ("items", "items", "meta.rows", "tags", "nope", "user.tags")
    return sorted(set(dice.some(places, 2))) if dice.one_in(5) else dice.pick(places)


# By the transform and the option, or by the option alone.
POOLS: dict[str, Pool] = {
    "paths": paths,
    "at": ARRAYS,
    "by": MEMBERS,
    "field": MEMBERS,
    "names": _names,
    "fields": _fields,
    "to": ("items", "all", "é"),
    "default": CONSTANTS,
    "where": condition,
    "unless": condition,
    "glob": ("*.md", "**", "a?*", "", *ANY_ARGUMENT),
    "match": (*REGULAR, *ANY_ARGUMENT),
    "prefix": ("a", "", "op", *ANY_ARGUMENT),
    "first": (0, 1, 2, 3),
    "last": (0, 1, 2),
    "limit": (1, 2, 3, 7, 20),
    "max_limit": (20, 50),
    "max_offset": (0, 5, 40),
    "paginate.max_bytes": (1, 60, 200, 900),
    "as": ("rows", None),
    "page_info": ({"page.next": "nextOffset", "count": "returned"}, {"more": "hasMore"}),
    "paginate.arguments": ({"limit": "most", "offset": "from"},),
    "truncate.arguments": ({"maxLength": "most", "startIndex": "from"},),
    "drop_on": ("write", ["write"]),
    "max_age_seconds": (5, 60),
    "max_chars": (0, 1, 5, 40),
    "max_lines": (0, 1, 3),
    "max_length": (1, 2, 7, 50, 400),
    "from": ("start", "end"),
    "boundary": ("none", "word"),
    "hint": ("notice", "inline"),
    "parse.as": ("json", "json", "yaml", "python", "csv", "lines", "records"),
    "after": REGULAR,
    "fence": ("yaml", "json"),
    "groups": (r"(?P<a>\w+)", r"^(?P<k>[^:]*):(?P<v>.*)"),
    "split": (r"\n\n", "(?m)^(?=Commit: )", r"\n", "x", "(?=a)", r"\r?\n"),
    "pattern": REGULAR,
    "with": ("", "x", "…", r"\\", r"\g<0>", "😀", "\\n"),
    "expression": computed,
    "cases": _cases,
    "common": lambda dice: {"hints": {}, "all": dice.pick(CONSTANTS)},
    "vocabulary": ({"status": ["ok", "blocked"]},),
    "max_bytes": SIZES,
    "first_look": SIZES,
    "paginate.at": _windows,
    "truncate.at": ("log", "text", "body", "user.body", "nope", "title"),
    **dict.fromkeys(("clip.at", "replace.at"), TEXTS),
    "parse.at": ("", "", "", *TEXTS),
    **dict.fromkeys(("keep.at", "drop.at", "project.at", "jmespath.at"), OBJECTS),
}
# Options of which one is needed, or which only one step in a few has.
_ONE_OF = {"filter": ("where", "glob", "match", "prefix"), "clip": ("max_chars", "max_lines")}
_RARE = {
    *("as", "page_info", "max_offset", "max_limit", "arguments", "split", "to", "after", "fence"),
    "groups",
    *("default", "unless", "vocabulary"),
}


def _option(dice: Dice, word: str, name: str, kind: Any = None) -> Any:
    pool = POOLS.get(f"{word}.{name}", POOLS.get(name))
    if pool is None:
        assert kind is bool, f"POOLS has no values for the option {word}.{name}"
        pool = (True, False)
    return pool(dice) if callable(pool) else dice.pick(pool)


def step(dice: Dice, word: str) -> Step:
    kind = TRANSFORMS[word]
    options = {
        name: _option(dice, word, name, option.type)
        for name, option in fields(kind).items()
        if option.required or dice.one_in(8 if name in _RARE else 2)
    }
    if word in _ONE_OF and (word == "filter" or not {*_ONE_OF[word]} & {*options}):
        name = dice.pick(_ONE_OF[word])
        others = {key: each for key, each in options.items() if key not in _ONE_OF[word]}
        options = {**others, name: _option(dice, word, name)}
    if kind.shorthand is not None and list(options) == [kind.shorthand] and dice.one_in(2):
        return {word: options[kind.shorthand]}
    return {word: options}


WINDOWS = tuple(word for word, kind in TRANSFORMS.items() if kind.window)
BEFORE = tuple(word for word, kind in TRANSFORMS.items() if not kind.window)
AFTER = tuple(word for word, kind in TRANSFORMS.items() if kind.works_on_pages)


def steps(dice: Dice, *, windows: bool = True) -> list[Any]:
    """Return up to seven steps; one in a few is a list that is spliced in."""
    count = dice.pick((0, 0, 1, 1, 1, 2, 3, 5))
    before: list[Any] = [step(dice, dice.pick(BEFORE)) for _ in range(count)]
    if dice.one_in(12):
        before = [before]
    if not windows or (before and dice.one_in(2)):
        return before
    window = step(dice, dice.pick(("paginate", *WINDOWS)))
    after = [step(dice, dice.pick(AFTER)) for _ in range(dice.below(5) // 4)]
    return [*before, window, *after]


SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "integer", "maximum": 100}, "items": {"type": "array"}},
    "required": ["total"],
}
OWN_PARAMETER = {"wanted": {"type": "string", "max_length": 40, "upstream": False}}
BOUNDS: tuple[Step, ...] = (
    OWN_PARAMETER,
    {**OWN_PARAMETER, "filter.name": {"default": "open"}},
    {**OWN_PARAMETER, "limit": {"maximum": 50, "clamp": True}},
    {**OWN_PARAMETER, "most_wanted": {"alias_of": "wanted"}},
)


def rule(dice: Dice) -> dict[str, Any]:
    keys = dice.pick_options(
        {
            "name": (4, ("pages", "é", "a rule")),
            "max_bytes": (3, (300, 500, 1000, 5000, 20_000)),
            "errors": (6, (steps(dice, windows=False),)),
            "document": (6, ("structured", "text", "blocks", "auto")),
            "blocks": (10, ({"drop": dice.some(("image", "resource", "text", "audio"), 2)},)),
            "layout": (10, ("as_sent",)),
            "error_if": (10, (condition(dice), {"match": dice.pick(REGULAR)})),
            "copies": (8, ("text", "structured", "both")),
            "on_failure": (8, ("pass", "refuse")),
            "mode": (15, ("shadow",)),
            "view": (8, (False,)),
            "breadth": (8, (False,)),
            "images": (8, (False,)),
            "output_schema": (10, (SCHEMA,)),
            "arguments": (5, BOUNDS),
            "allow_growth": (8, (True, False)),
            "when": (15, ("action != 'x'",)),
        }
    )
    if "output_schema" in keys and dice.one_in(2):
        keys["validate"] = dice.pick(("warn", "refuse"))
    bounded = "max_bytes" in keys and dice.one_in(4)
    response = {} if bounded else {"response": steps(dice)}
    return {"tools": dice.pick(("get", "*", ["get", "list_*"])), **response, **keys}


def text(dice: Dice) -> str:
    file = {"version": 1, "rules": [rule(dice)]}
    if dice.one_in(3):
        return json.dumps(file, ensure_ascii=dice.one_in(2))
    return str(yaml.safe_dump(file, allow_unicode=True, default_flow_style=None, sort_keys=False))
