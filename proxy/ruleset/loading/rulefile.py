"""Loads a rule file: a RuleFile, or every problem with its position."""

from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from proxy.document.sizes import Size
from proxy.errors import Problem
from proxy.ruleset.loading import checks as consistency
from proxy.ruleset.loading import yaml_nodes as positions
from proxy.ruleset.loading.convert import BAD, NodeConverter, fields, found, sized
from proxy.ruleset.loading.plugins import ROLES, Python
from proxy.ruleset.loading.rule_model import (
    NO_DEFAULTS,
    CaseSpec,
    Defaults,
    GuardSpec,
    Match,
    QuerySpec,
    RuleFileSpec,
    RuleNodes,
    RuleSpec,
    Steps,
)
from proxy.ruleset.loading.steps import Names, part
from proxy.ruleset.loading.yaml_errors import SourceError
from proxy.ruleset.loading.yaml_nodes import MAX_BYTES, Node
from proxy.ruleset.rule import Hidden, Rule, RuleFile
from proxy.transforms import TRANSFORMS
from proxy.transforms.contract import Contract
from proxy.transforms.shapes import Part

__all__ = ["MAX_BYTES", "LoadedRules", "read"]


class LoadedRules(Struct, frozen=True):
    """The result of loading one file: `rules` unless it has problems, `readable` if it is YAML."""

    rules: RuleFile | None
    problems: tuple[Problem, ...] = ()
    readable: bool = True


def read(file: str, raw: bytes, *, allow_python: bool = False) -> LoadedRules:
    """Read the bytes of one rule file; `file` is its name in messages.

    If `allow_python`, the Python that it names, beside it or installed, is run.

    >>> read("r.yaml", b"version: 1\\nrules: [{tools: a, respons: []}]").problems[0].message
    "unknown key 'respons' of a rule; did you mean 'response'?"
    """
    root, slips = positions.read(file, raw)
    if root is None:
        return LoadedRules(None, tuple(slips), readable=False)
    names = Names(Python(Path(file).parent, allowed=allow_python))
    own = {Part: part, Size: sized, RuleNodes: _rules, Defaults: _defaults}
    notes = NodeConverter(file, {**names.readers, **own})
    made = None
    try:
        if b"\\" in raw:
            consistency.characters(notes, root)
        made = _file(notes, names, root)
    except SourceError as stop:
        slips.append(Problem(file, stop.line, stop.column, str(stop)))
    problems = sorted({*slips, *notes.problems})
    return LoadedRules(None if problems else made, tuple(problems))


def _file(notes: NodeConverter, names: Names, root: Node) -> RuleFile | None:
    if not isinstance(root.value, dict):
        notes.report(root, f"expected a mapping with version and rules, found {found(root)}")
        return None
    # The names that the file defines come first, in any order: the defaults may use them.
    ordered = sorted(root.value.items(), key=lambda pair: pair[0] not in ROLES)
    own = {word: node for word, node in ordered if not word.startswith("x-")}
    head = notes.members(replace(root, value=own), RuleFileSpec, "a rule file", "key")
    defaults, entries = head.get("defaults", Defaults()), head.get("rules", RuleNodes())
    starts = Defaults().node if defaults is BAD else defaults.node
    nodes = [_merged(starts, node) for node in (() if entries is BAD else entries.nodes)]
    written = [(node, notes.members(node, RuleSpec, "a rule", "key")) for node in nodes]
    consistency.order(notes, written)
    made = [_rule(notes, names, node, members) for node, members in written]
    if notes.problems:
        return None
    rules = tuple(rule for rule in made if rule is not None)
    expose, server = head.get("expose"), head.get("server")
    return RuleFile(name=notes.file, rules=rules, server=server, expose=expose)


def _rules(notes: NodeConverter, node: Node, label: str) -> Any:
    nodes = node.value if isinstance(node.value, list) else [node]
    for each in nodes:
        if not (isinstance(each.value, dict) or each.invalid):
            notes.report(each, f"expected a rule, a mapping with tools, found {found(each)}")
    return RuleNodes(tuple(each for each in nodes if isinstance(each.value, dict)))


def _defaults(notes: NodeConverter, node: Node, label: str) -> Any:
    if not isinstance(node.value, dict):
        return notes.report(node, f"{label}: expected a mapping, found {found(node)}")
    known = {word: option for word, option in fields(RuleSpec).items() if word not in NO_DEFAULTS}
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


def _rule(notes: NodeConverter, names: Names, node: Node, members: dict[str, Any]) -> Rule | None:
    """Check the keys of a rule against each other, and return the rule."""
    read = {word: value for word, value in members.items() if value is not BAD}
    steps = read.get("response", Steps()).placed
    consistency.whole_tool(notes, node, read)
    consistency.windows(notes, steps)
    consistency.errors(notes, read.get("errors", Steps()).placed)
    schema = consistency.contract(notes, node, read)
    if "arguments" in read:
        consistency.arguments(notes, node.value["arguments"], read["arguments"], steps)
    if "tests" in node.value and "tools" in read:
        guarding = members.get("guard", GuardSpec())
        guarded = guarding is BAD or guarding.placed is not None
        consistency.tests(notes, node.value["tests"], read["tools"], guarded=guarded)
    pipeline = [step for _, step in steps]
    if read.get("validate") is not None and isinstance(schema, dict):
        pipeline.append(Contract(schema, refuses=read["validate"] == "refuse"))
    if read.get("max_bytes") is not None:
        bound = {"max_bytes": read["max_bytes"]}
        abridge: Any = TRANSFORMS["abridge"]
        pipeline.append(notes.made(node.value["max_bytes"], abridge, bound, "max_bytes"))
    if len(read) < len(members) or schema is BAD or BAD in pipeline:
        return None
    written = RuleSpec(**{**read, "output_schema": schema})
    hide, error_if = written.hide, written.error_if
    errors = tuple(step for _, step in written.errors.placed)
    guard = written.guard.placed[1] if written.guard.placed else None
    return Rule(
        name=written.name or ", ".join(written.tools),
        pipeline=tuple(pipeline),
        drop_blocks=written.blocks.drop if written.blocks else (),
        errors=errors,
        guard=guard,
        foreign=any(map(names.foreign, (*pipeline, *errors, guard))),
        hide=hide if isinstance(hide, Hidden) else Hidden() if hide else None,
        error_if=error_if.match if isinstance(error_if, Match) else error_if,
        tests=tuple(map(_plain, written.tests)),
        test_lines=_lines(node.value.get("tests")),
        place=f"{notes.file}:{node.line}",
        **{word: getattr(written, word) for word in _SAME},
    )


# The keys that mean the same in a file and in a Rule.
_SAME = tuple(
    word
    for word in RuleSpec.__struct_fields__
    if word in Rule.__struct_fields__
    and word not in ("name", "errors", "guard", "hide", "error_if", "tests")
)


def _lines(tests: Node | None) -> tuple[int, ...]:
    if tests is None:
        return ()
    return tuple(each.line for each in (tests.value if isinstance(tests.value, list) else [tests]))


def _plain(case: CaseSpec) -> dict[str, Any]:
    """Return the keys of a test as they are written, without absent ones."""
    said: dict[str, Any] = {}
    for word, option in fields(CaseSpec).items():
        value = getattr(case, word)
        if value != option.default:
            if isinstance(value, QuerySpec):
                value = {"tool": value.tool, "arguments": value.arguments}
            said[word] = list(map(str, value)) if isinstance(value, tuple) else value
    return said
