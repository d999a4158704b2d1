"""Loads a rule file: a RuleFile, or every problem with its position."""

from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from mcp_abridge.document.sizes import Size
from mcp_abridge.errors import Problem
from mcp_abridge.ruleset.loading import checks
from mcp_abridge.ruleset.loading import rule_model as model
from mcp_abridge.ruleset.loading.convert import (
    INVALID,
    NodeConverter,
    fields,
    read_defaults,
    read_file,
    read_size,
    value_text,
)
from mcp_abridge.ruleset.loading.plugins import KINDS, PluginLoader
from mcp_abridge.ruleset.loading.steps import Names, read_part
from mcp_abridge.ruleset.loading.yaml_nodes import Node, merged
from mcp_abridge.ruleset.rule import Hidden, Rule
from mcp_abridge.ruleset.rule_set import RuleFile
from mcp_abridge.transforms import TRANSFORMS
from mcp_abridge.transforms.contract import Contract
from mcp_abridge.transforms.shapes import Part


class LoadedRules(Struct, frozen=True):
    """The result of loading one file: `rules` unless it has problems, `readable` if it is YAML."""

    rules: RuleFile | None
    problems: tuple[Problem, ...] = ()
    readable: bool = True


def read(file: str, raw: bytes, *, allow_python: bool = False) -> LoadedRules:
    """Read the bytes of one rule file; if `allow_python`, the Python that it names is run.

    >>> read("r.yaml", b"version: 1\\nrules: [{tools: a, respons: []}]").problems[0].message
    "unknown key 'respons' of a rule; did you mean 'response'?"
    """
    names = Names(PluginLoader(Path(file).parent, allowed=allow_python))
    own = {
        Part: read_part,
        Size: read_size,
        model.RuleNodes: _rules,
        model.Defaults: _defaults,
    }
    expected = "a mapping with version and rules"
    return LoadedRules(*read_file(file, raw, {**names.readers, **own}, expected, _file))


def _file(converter: NodeConverter, root: Node) -> RuleFile:
    # The names that the file defines come first, in any order: the defaults may use them.
    ordered = dict(sorted(root.value.items(), key=lambda pair: pair[0] not in KINDS))
    head = converter.members(replace(root, value=ordered), model.RuleFileSpec, "a rule file", "key")
    valid = {key: value for key, value in head.items() if value is not INVALID}
    defaults = valid.get("defaults", replace(root, value={}, keys={}))
    nodes = [merged(_for_rule(defaults, node), node) for node in valid.get("rules", ())]
    pairs = [(node, converter.members(node, model.RuleSpec, "a rule", "key")) for node in nodes]
    for key in ("tools", "resources"):
        checks.order(converter, pairs, key)
    rules = [_rule(converter, node, members) for node, members in pairs]
    return RuleFile(
        name=converter.file,
        rules=tuple(rule for rule in rules if rule is not None),
        server=valid.get("server"),
        expose=valid.get("expose"),
    )


def _rules(converter: NodeConverter, node: Node, label: str) -> Any:
    keys = fields(model.RuleSpec)
    if isinstance(node.value, dict) and node.value and keys.keys().isdisjoint(node.value):
        first = next(iter(node.value))
        message = f"rules: expected a list of rules, such as `- tools: {first}`, found a mapping"
        return converter.report(node, message)
    return tuple(converter.mappings(node, "a rule, a mapping with tools"))


def _defaults(converter: NodeConverter, node: Node, label: str) -> Any:
    if not isinstance(node.value, dict):
        return converter.report(node, f"{label}: expected a mapping, found {value_text(node)}")
    own = read_defaults(converter, node, model.RuleSpec, model.NO_DEFAULTS, "a rule")
    return replace(node, value=own)


def _for_rule(defaults: Node, rule: Node) -> Node:
    """Return the defaults that are for a rule: for one for resources, those that it may have."""
    if "resources" not in rule.value:
        return defaults
    own = {key: node for key, node in defaults.value.items() if key not in model.OF_TOOLS}
    return replace(defaults, value=own)


def _rule(converter: NodeConverter, node: Node, members: dict[str, Any]) -> Rule | None:
    valid = {key: value for key, value in members.items() if value is not INVALID}
    steps = valid.get("response", model.Steps()).pairs
    checks.names(converter, node, valid.get("tools", ()))
    checks.tools_or_resources(converter, node, steps)
    checks.whole_tool(converter, node, valid)
    checks.windows(converter, steps)
    checks.errors(converter, valid.get("errors", model.Steps()).pairs)
    schema = checks.contract(converter, node, valid)
    if "arguments" in valid:
        checks.arguments(converter, node.value["arguments"], valid["arguments"], steps)
    if "tests" in node.value and {"tools", "resources"} & valid.keys():
        guarded = members.get("guard") is not None  # a guard with a mistake is a guard
        checks.tests(converter, node.value["tests"], valid, guarded=guarded)
    pipeline = [step for _, step in steps]
    validate = valid.get("validate")
    if validate is not None and isinstance(schema, dict):
        pipeline.append(Contract(schema, refuses=validate == "refuse", as_text=validate == "text"))
    budgeted = valid.get("max_bytes") == "auto"
    if budgeted:
        valid["max_bytes"] = None
    elif valid.get("max_bytes") is not None:
        budget = {"max_bytes": valid["max_bytes"]}
        abridge: Any = TRANSFORMS["abridge"]
        pipeline.append(converter.build(node.value["max_bytes"], abridge, budget, "max_bytes"))
    if len(valid) < len(members) or schema is INVALID or INVALID in pipeline:
        return None
    spec = model.RuleSpec(**{**valid, "output_schema": schema})
    hide, error_if, tests = spec.hide, spec.error_if, node.value.get("tests", Node([], 0, 0))
    cases = tests.value if isinstance(tests.value, list) else (tests,)  # one needs no list
    errors = tuple(step for _, step in spec.errors.pairs)
    return Rule(
        name=spec.name or ", ".join(spec.tools or spec.resources),
        pipeline=tuple(pipeline),
        budgeted=budgeted,
        drop_blocks=spec.blocks.drop if spec.blocks else (),
        errors=errors,
        foreign=spec.guard is not None
        or not all(
            type(step).__module__.startswith("mcp_abridge.") for step in (*pipeline, *errors)
        ),
        hide=hide if isinstance(hide, Hidden) else Hidden() if hide else None,
        error_if=error_if.match if isinstance(error_if, model.Match) else error_if,
        tests=tuple(map(_case, spec.tests)),
        test_lines=tuple(each.line for each in cases),
        place=f"{converter.file}:{node.line}",
        **{key: getattr(spec, key) for key in _SAME},
    )


# The keys that mean the same in a file and in a Rule.
_SAME = tuple(
    key
    for key in model.RuleSpec.__struct_fields__
    if key in Rule.__struct_fields__ and key not in ("name", "errors", "hide", "error_if", "tests")
)


def _case(case: model.CaseSpec) -> dict[str, Any]:
    """Return the keys of a test as they are in the file, without absent ones."""
    keys: dict[str, Any] = {}
    for key, option in fields(model.CaseSpec).items():
        if (value := getattr(case, key)) != option.default:
            keys[key] = list(map(str, value)) if isinstance(value, tuple) else value
    if case.asks is not None:
        keys["asks"] = asdict(case.asks)
    return keys
