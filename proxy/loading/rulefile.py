"""One rule file: its bytes -> a RuleFile, or every problem in it with its place."""

from collections.abc import Iterator
from typing import Any, get_origin

from msgspec import Struct
from msgspec.structs import replace

from proxy.errors import Problem
from proxy.loading import consistency, positions
from proxy.loading.fields import BAD, MAPS, Fields, fields, fits, found
from proxy.loading.positions import MOST_BYTES, Node
from proxy.loading.rulekeys import NO_DEFAULTS, Case, Defaults, Head, Match, Rules, Steps, Written
from proxy.rule import Hidden, Rule, RuleFile
from proxy.transforms import TRANSFORMS

__all__ = ["MOST_BYTES", "Reading", "read"]


class Reading(Struct, frozen=True):
    """What came of one file: `rules` unless there are problems; `readable` unless it is no YAML."""

    rules: RuleFile | None
    problems: tuple[Problem, ...] = ()
    readable: bool = True


def read(file: str, raw: bytes) -> Reading:
    """Read the bytes of one rule file; `file` is its name in messages.

    >>> read("r.yaml", b"version: 1\\nrules: [{tools: a, respons: []}]").problems[0].message
    "unknown key 'respons' of a rule; did you mean 'response'?"
    """
    root, slips = positions.read(file, raw)
    if root is None:
        return Reading(None, tuple(slips), readable=False)
    notes = Fields(file, {Steps: _steps, Rules: _rules, Defaults: _defaults})
    made = _file(notes, root)
    problems = sorted({*slips, *notes.problems})
    return Reading(None if problems else made, tuple(problems))


def _file(notes: Fields, root: Node) -> RuleFile | None:
    if not isinstance(root.value, dict):
        notes.report(root, f"expected a mapping with version and rules, found {found(root)}")
        return None
    own = {word: node for word, node in root.value.items() if not word.startswith("x-")}
    head = notes.members(replace(root, value=own), Head, "a rule file", "key")
    defaults, entries = head.get("defaults", Defaults()), head.get("rules", Rules())
    starts = Defaults().node if defaults is BAD else defaults.node
    nodes = [_merged(starts, node) for node in (() if entries is BAD else entries.nodes)]
    written = [(node, notes.members(node, Written, "a rule", "key")) for node in nodes]
    consistency.order(notes, written)
    made = [_rule(notes, node, members) for node, members in written]
    if notes.problems:
        return None
    rules = tuple(rule for rule in made if rule is not None)
    expose, server = head.get("expose"), head.get("server")
    return RuleFile(name=notes.file, rules=rules, server=server, expose=expose)


def _rules(notes: Fields, node: Node, label: str) -> Any:
    nodes = node.value if isinstance(node.value, list) else [node]
    wrong = [each for each in nodes if not isinstance(each.value, dict)]
    for each in wrong:
        if not each.spoiled:
            notes.report(each, f"expected a rule, a mapping with tools, found {found(each)}")
    return Rules(tuple(each for each in nodes if each not in wrong))


def _defaults(notes: Fields, node: Node, label: str) -> Any:
    if not isinstance(node.value, dict):
        return notes.report(node, f"{label}: expected a mapping, found {found(node)}")
    known = {word: option for word, option in fields(Written).items() if word not in NO_DEFAULTS}
    for word, member in node.value.items():
        if word in known:
            notes.value(member, known[word].type, word)
        elif word in NO_DEFAULTS:
            notes.report(node.keys[word], f"{word!r} is each rule's own; it has no default")
        else:
            notes.unknown(node.keys[word], "key", known, " of a rule")
    value = {word: member for word, member in node.value.items() if word in known}
    return Defaults(replace(node, value=value))


def _merged(defaults: Node, rule: Node) -> Node:
    value, keys = {**defaults.value, **rule.value}, {**defaults.keys, **rule.keys}
    return replace(rule, value=value, keys=keys)


def _rule(notes: Fields, node: Node, members: dict[str, Any]) -> Rule | None:
    """Check what the keys of a rule say together, and make the rule of them."""
    read = {word: value for word, value in members.items() if value is not BAD}
    steps = read.get("response", Steps()).placed
    consistency.whole_tool(notes, node, read)
    consistency.windows(notes, steps)
    if "arguments" in read:
        consistency.arguments(notes, node.value["arguments"], read["arguments"], steps)
    if "tests" in node.value and "tools" in read:
        consistency.tests(notes, node.value["tests"], read["tools"])
    pipeline = [step for _, step in steps]
    if read.get("max_bytes") is not None:
        bound = {"max_bytes": read["max_bytes"]}
        abridge: Any = TRANSFORMS["abridge"]
        pipeline.append(notes.made(node.value["max_bytes"], abridge, bound, "max_bytes"))
    if len(read) < len(members) or BAD in pipeline:
        return None
    written = Written(**read)
    hide, error_if = written.hide, written.error_if
    return Rule(
        name=written.name or ", ".join(written.tools),
        pipeline=tuple(pipeline),
        drop_blocks=written.blocks.drop if written.blocks else (),
        hide=hide if isinstance(hide, Hidden) else Hidden() if hide else None,
        error_if=error_if.match if isinstance(error_if, Match) else error_if,
        tests=tuple(map(_plain, written.tests)),
        place=f"{notes.file}:{node.line}",
        **{word: getattr(written, word) for word in _SAME},
    )


# The keys that mean the same in a file and in a Rule.
_SAME = tuple(
    word
    for word in Written.__struct_fields__
    if word in Rule.__struct_fields__ and word not in ("name", "hide", "error_if", "tests")
)


def _plain(case: Case) -> dict[str, Any]:
    """Return what a test says, each key as it is written; what it leaves out is left out."""
    said: dict[str, Any] = {}
    for word, option in fields(Case).items():
        value = getattr(case, word)
        if value != option.default:
            said[word] = list(map(str, value)) if isinstance(value, tuple) else value
    return said


def _steps(notes: Fields, node: Node, label: str) -> Any:
    # The wrong ones are reported; what the others are to each other is checked all the same.
    return Steps(tuple(pair for pair in _placed(notes, node) if pair[1] is not BAD))


def _placed(notes: Fields, node: Node) -> Iterator[tuple[Node, Any]]:
    if isinstance(node.value, list):
        for each in node.value:
            yield from _placed(notes, each)
    else:
        yield node, _step(notes, node)


def _step(notes: Fields, node: Node) -> Any:
    """Read `{transform: options}`; a transform that needs none may stand alone."""
    if node.spoiled:
        return BAD
    if isinstance(node.value, str):
        word, options = node, replace(node, value={})
    elif isinstance(node.value, dict) and len(node.value) == 1:
        ((name, options),) = node.value.items()
        word = node.keys[name]
    else:
        return notes.report(node, f"expected one step, {{transform: options}}, found {_many(node)}")
    if word.value not in TRANSFORMS:
        return notes.unknown(word, "transform", TRANSFORMS)
    kind: Any = TRANSFORMS[word.value]
    if options.spoiled:
        return BAD
    if options.value is None:
        options = replace(options, value={})
    short = _short(kind, options)
    if short is not None:
        values = {short: notes.value(options, fields(kind)[short].type, word.value)}
    elif isinstance(options.value, dict):
        values = notes.members(options, kind, word.value)
    else:
        known = ", ".join(fields(kind))
        wanted = f"expected options ({known}), found {found(options)}"
        return notes.report(options, f"{word.value}: {wanted}")
    return notes.made(options, kind, values, word.value)


def _short(kind: Any, options: Node) -> str | None:
    """Return the option that is meant where `options` are no options but the value of one."""
    short: str | None = kind.shorthand
    if short is None or not isinstance(options.value, dict):
        return short
    # Where the value is a mapping too, its keys are free words, and one may be an option's name.
    own = fields(kind)[short].type
    named = short in options.value and fits(options.value[short], own)
    return short if get_origin(own) in MAPS and not named else None


def _many(node: Node) -> str:
    if isinstance(node.value, dict) and node.value:
        names = " and ".join(map(repr, list(node.value)[:3]))
        return f"{names} in one; begin each with '- '"
    return found(node)
