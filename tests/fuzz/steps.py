"""Random steps of a rule, as a file has them: every transform, with paths that hit and miss."""

from collections.abc import Callable
from functools import cache
from typing import Any

from proxy.transforms import TRANSFORMS
from tests.fuzz import expressions
from tests.fuzz.dice import Dice
from tests.reference import examples

Step = dict[str, Any]

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
PLACES = ("items", "items", "meta.rows", "tags", "nope", "user.tags")
STRINGS = ("log", "text", "body", "user.body", "nope", "title")
REGULAR = (
    *("a", "[a-z]+", r"(\w+)-(\d+)", "^$", r"\d+", "é|😀", r"(?P<one>\w)(?P<two>.)?", "x*", r"\s"),
    *("(?i)OPEN", r"\bkind\b", "^Database error", r"found \d+\n", "", ".", "漢", r"\n"),
)
SPLITS = (r"\n\n", "(?m)^(?=Commit: )", r"\n", "x", "(?=a)", r"\r?\n")
CONSTANTS: tuple[Any, ...] = (0, 1.5, -1, "none", "", None, True, [], {}, [1, "é"], {"a": 1.25})
ARGUMENTS = ("wanted", "filter.name", "limit", "nope")


def steps(dice: Dice, *, windows: bool = True) -> list[Any]:
    """Return up to five steps; one in a few is a list that is spliced in."""
    if windows and dice.one_in(4):
        return [step(dice, dice.pick(("paginate", "truncate")))]
    count = dice.pick((0, 0, 1, 1, 1, 2, 3, 5))
    before: list[Any] = [step(dice, dice.pick(BEFORE)) for _ in range(count)]
    if dice.one_in(12):
        before = [before]
    if not windows or (before and dice.one_in(2)):
        return before
    window = [step(dice, dice.pick(("paginate", "paginate", "truncate")))]
    if dice.one_in(8):
        other = step(dice, dice.pick(("paginate", "truncate")))
        [(word, options)] = other.items()
        own = ("limit", "offset") if word == "paginate" else ("maxLength", "startIndex")
        options["arguments"] = dict(zip(own, ("rows", "row"), strict=True))
        window.append(other)
    after = [step(dice, dice.pick(("clip", "replace", "table"))) for _ in range(dice.size(3))]
    return [*before, *window, *after]


def step(dice: Dice, word: str) -> Step:
    """Return a step of the transform that is called so, in its short form or its long one."""
    if word not in KINDS:
        return {word: dice.pick(_shown(word))}
    options, short = KINDS[word](dice)
    if short is not None and set(options) == {short} and dice.one_in(2):
        return {word: options[short]}
    return {word: options}


@cache
def _shown(word: str) -> tuple[Any, ...]:
    """Return the options of the steps in the doctest of a transform."""
    return tuple(examples.options(run.step) for run in examples.runs(TRANSFORMS[word]))


def _at(dice: Dice, among: tuple[str, ...]) -> Step:
    path = dice.pick(among)
    return {"at": path} if path or dice.one_in(4) else {}


def _maybe(dice: Dice, count: int, **options: Any) -> Step:
    return {word: value for word, value in options.items() if dice.one_in(count)}


def _paths(dice: Dice) -> tuple[Step, str | None]:
    at = _at(dice, OBJECTS) if dice.one_in(2) else {}
    return {"paths": dice.some(MEMBERS if at else PATHS, 5), **at}, "paths"


def _rename(dice: Dice) -> tuple[Step, str | None]:
    names = {
        path: dice.pick(("name", "id", "total", "é", "pagination")) for path in dice.some(PATHS, 3)
    }
    return {"names": names}, "names"


def _source(dice: Dice) -> Any:
    kind = dice.below(5)
    if kind == 0:
        return {
            "jmespath": expressions.computed(dice),
            **_maybe(dice, 3, default=dice.pick(CONSTANTS)),
        }
    if kind == 1:
        more = _maybe(dice, 2, default=dice.pick(CONSTANTS), over_null=dice.one_in(2))
        return {"path": dice.pick(PATHS), **more}
    return dice.pick(PATHS)


def _fields(dice: Dice, depth: int = 1) -> list[Any]:
    found: dict[str, Any] = {}
    for _ in range(dice.within(1, 5)):
        kind = dice.below(6)
        name = dice.pick(("id", "title", "body", "n", "first", "user", "all", "x.y"))
        if kind == 0 and depth:
            group = {"from": dice.pick(OBJECTS[1:]), "fields": _fields(dice, depth - 1)}
            found[f"group {name}"] = {**group, **_maybe(dice, 3, default=dice.pick(CONSTANTS))}
        else:
            found[name] = {name: _source(dice)} if kind < 4 else name
    return list(found.values())


def _project(dice: Dice) -> tuple[Step, str | None]:
    at = _at(dice, OBJECTS) if dice.one_in(2) else {}
    more = _maybe(dice, 6, default=dice.pick(CONSTANTS))
    to = {"to": dice.pick(("items", "all", "é"))} if at.get("at") and dice.one_in(5) else {}
    return {"fields": _fields(dice), **at, **to, **more}, "fields"


def _filter(dice: Dice) -> tuple[Step, str | None]:
    at = _at(dice, ARRAYS)
    if dice.one_in(2):
        return {"where": expressions.condition(dice), **at}, "where"
    word = dice.pick(("glob", "match", "prefix"))
    values = {"glob": ("*.md", "**", "a?*", ""), "match": REGULAR, "prefix": ("a", "", "op")}
    value: Any = dice.pick(values[word])
    if dice.one_in(4):
        value = {"argument": dice.pick(ARGUMENTS)}
    return {word: value, **at, **_maybe(dice, 2, field=dice.pick(MEMBERS), invert=True)}, None


def _sort(dice: Dice) -> tuple[Step, str | None]:
    return {"by": dice.pick(MEMBERS), **_at(dice, ARRAYS), **_maybe(dice, 3, descending=True)}, "by"


def _elide(dice: Dice) -> tuple[Step, str | None]:
    ends = _maybe(dice, 2, first=dice.below(4), last=dice.below(3))
    return {**_at(dice, (*ARRAYS, "**.tags")), **ends}, "at"


def _paginate(dice: Dice) -> tuple[Step, str | None]:
    limit = dice.pick((1, 2, 3, 7, 20))
    at: Step = {"at": dice.pick(PLACES)} if dice.one_in(2) else {}
    if dice.one_in(6):
        at = {"at": sorted({dice.pick(PLACES), dice.pick(PLACES)})}
    options = {
        **at,
        **_maybe(dice, 2, limit=limit),
        **_maybe(dice, 6, max_limit=limit + dice.below(50), max_offset=dice.below(40)),
        **_maybe(dice, 5, max_bytes=dice.pick((1, 60, 200, 900)), refetch=True),
        **_maybe(dice, 8, drop_on=["write"], arguments={"limit": "most", "offset": "from"}),
        **_maybe(dice, 8, page_info={"page.next": "nextOffset", "count": "returned"}),
    }
    if "max_limit" in options:
        options["limit"] = limit
    return {**options, **({} if "at" in options else _maybe(dice, 4, **{"as": "rows"}))}, None


def _clip(dice: Dice) -> tuple[Step, str | None]:
    chars, lines = dice.pick((0, 1, 5, 40)), dice.pick((0, 1, 3))
    bounds = _maybe(dice, 2, max_lines=lines, max_chars=chars) or {"max_chars": chars}
    return {**_at(dice, TEXTS), **bounds}, None


def _truncate(dice: Dice) -> tuple[Step, str | None]:
    at = {"at": dice.pick(STRINGS)} if dice.one_in(2) else {}
    more = _maybe(dice, 4, boundary="word", hint="inline", refetch=True, drop_on="write")
    more.update(_maybe(dice, 3, **{"from": "end"}))
    length = _maybe(dice, 1, max_length=dice.pick((1, 2, 7, 50, 400)))
    return {**at, **length, **more}, None


def _parse(dice: Dice) -> tuple[Step, str | None]:
    form = dice.pick(("json", "json", "yaml", "python", "lines", "records"))
    options: Step = {"as": form, **_at(dice, ("", "", "", *TEXTS))}
    options.update(_maybe(dice, 6, after=dice.pick(REGULAR), fence=dice.pick(("yaml", "json"))))
    if form == "records":
        options.update(_maybe(dice, 2, split=dice.pick(SPLITS)))
    return options, None


def _replace(dice: Dice) -> tuple[Step, str | None]:
    put = dice.pick(("", "x", "…", r"\\", r"\g<0>", "😀", "\\n"))
    return {"pattern": dice.pick(REGULAR), "with": put, **_at(dice, TEXTS)}, None


def _jmespath(dice: Dice) -> tuple[Step, str | None]:
    return {"expression": expressions.computed(dice), **_at(dice, OBJECTS)}, "expression"


def _shape(dice: Dice, captures: tuple[str, ...], depth: int = 1) -> Any:
    kind = dice.below(7)
    if kind == 0 and depth:
        return {
            name: _shape(dice, captures, depth - 1) for name in dice.some(("a", "status", "b"), 3)
        }
    if kind == 1 and depth:
        return [_shape(dice, captures, 0) for _ in range(dice.below(3))]
    if kind == 2:
        return {"argument": dice.pick(ARGUMENTS), **_maybe(dice, 2, default=dice.pick(CONSTANTS))}
    if kind == 3 and captures == ("text",):
        return {"path": dice.pick(PATHS), **_maybe(dice, 2, default=dice.pick(CONSTANTS))}
    if kind == 4 and captures == ("text",):
        return {"jmespath": expressions.computed(dice)}
    return f"{{{dice.pick(captures)}}}" if kind == 5 else dice.pick(CONSTANTS)


def _recast(dice: Dice) -> tuple[Step, str | None]:
    cases: list[Step] = []
    for _ in range(dice.within(1, 3)):
        kind = dice.below(3)
        match = r"(?P<word>\w+).*?(?P<number>\d+)?"
        case: Step = (
            {"match": dice.pick((match, r"(?P<word>.)", "(?s)(?P<word>.*)"))} if kind else {}
        )
        captures: tuple[str, ...] = ("text", "word") if kind else ("text",)
        if kind == 0 and dice.one_in(2):
            case = {"where": expressions.condition(dice)}
        cases.append({**case, "to": {"a": _shape(dice, captures), "status": "ok"}})
        if not case:
            break
    more = _maybe(dice, 3, common={"hints": {}, "all": dice.pick(CONSTANTS)})
    more.update(_maybe(dice, 5, unless="status", vocabulary={"status": ["ok", "blocked"]}))
    return {"cases": cases, **more}, None


KINDS: dict[str, Callable[[Dice], tuple[Step, str | None]]] = {
    "keep": _paths,
    "drop": _paths,
    "prune": lambda dice: (_at(dice, ARRAYS) | _maybe(dice, 2, empty=True), "at"),
    "rename": _rename,
    "project": _project,
    "filter": _filter,
    "sort": _sort,
    "elide": _elide,
    "paginate": _paginate,
    "table": lambda dice: (_at(dice, ARRAYS), "at"),
    "clip": _clip,
    "truncate": _truncate,
    "parse": _parse,
    "replace": _replace,
    "jmespath": _jmespath,
    "recast": _recast,
    "abridge": lambda dice: (
        {"max_bytes": dice.pick((300, 301, 700, 9000)), **_maybe(dice, 3, first_look=400)},
        "max_bytes",
    ),
}
BEFORE = tuple(word for word, kind in TRANSFORMS.items() if not kind.window)
