"""Consistency checks between the parts of a rule file, each valid by itself."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.paths import Path, matches
from mcp_abridge.errors import did_you_mean, nearest
from mcp_abridge.query.fragment import split
from mcp_abridge.ruleset.loading import output_schema
from mcp_abridge.ruleset.loading.convert import INVALID, NodeConverter, fields, node_at
from mcp_abridge.ruleset.loading.jmespath_lint import condition_mistake
from mcp_abridge.ruleset.loading.rule_model import OF_TOOLS, RuleSpec
from mcp_abridge.ruleset.loading.yaml_nodes import Node
from mcp_abridge.ruleset.rule import Bounds, Definition
from mcp_abridge.schema.violations import Checker
from mcp_abridge.transforms import TRANSFORMS
from mcp_abridge.transforms.base import Transform
from mcp_abridge.transforms.contract import normalised

PlacedSteps = Sequence[tuple[Node, Transform]]


def names(converter: NodeConverter, node: Node, tools: Iterable[str]) -> None:
    """Report names of tools that are several in one text, or a pattern of another notation."""
    for each in tools:
        parts = [part.strip() for part in each.split(",")]
        if len(parts) > 1 and not any(" " in part for part in parts):
            message = f"tools: {each!r} is one name; write several as a list, [{', '.join(parts)}]"
            converter.report(node.value["tools"], message)
        elif "?" in each:
            message = f"tools: '?' in {each!r} stands for itself; '*' stands for any letters"
            converter.report(node.value["tools"], message)


def tools_or_resources(converter: NodeConverter, node: Node, steps: PlacedSteps) -> None:
    """Report a rule without tools and resources, or with both; and what no read can have."""
    keys = fields(RuleSpec)
    if "resources" not in node.value:
        others = {nearest(key, keys) for key in node.value if key not in keys}
        if "tools" not in node.value and not others & {"tools", "resources"}:
            converter.report(node, "a rule: 'tools' is missing, or 'resources'")
        return
    if "tools" in node.value:
        message = "a rule is for 'tools' or for 'resources': write two"
        converter.report(node.keys["resources"], message)
    for key in sorted(OF_TOOLS & node.value.keys()):
        message = f"{key!r} is for tools: a read of a resource has nothing but a URI"
        converter.report(node.keys[key], message)
    for place, step in steps:
        if step.window:
            reason = "a read has no arguments for other pages; max_bytes cuts, and views show more"
            converter.report(place, f"{step.name!r} is for tools: {reason}")


def order(
    converter: NodeConverter, rules: Iterable[tuple[Node, Mapping[str, Any]]], key: str
) -> None:
    """Report rules that can never match, since rules before them take every call.

    `key` is that of the patterns, `tools` or `resources`.
    """
    # The names of earlier rules, and separately globs: each with its line and condition.
    by_name: dict[str, list[tuple[str, int, str | None]]] = {}
    globs: list[tuple[str, int, str | None]] = []
    for node, members in rules:
        tools, when = members.get(key, INVALID), members.get("when")
        if tools is INVALID or when is INVALID:
            continue
        condition = when.text if when else None
        takers: list[int | None] = []
        for tool in tools:
            # A glob that matches another glob as a name matches every name that the other matches.
            rows = [row for row in (*by_name.get(tool, ()), *globs) if row[2] in (None, condition)]
            takers.append(next((line for each, line, _ in rows if matches(each, tool)), None))
        if tools and all(takers):
            places = " and ".join(sorted({f"line {line}" for line in takers}))
            what = "calls" if key == "tools" else "reads"
            message = f"this rule can never match: the rule in {places} takes its {what}"
            converter.report(node.value[key], message)
        for tool in tools:
            row = (tool, node.line, condition)
            (globs if "*" in tool else by_name.setdefault(tool, [])).append(row)


def whole_tool(converter: NodeConverter, node: Node, members: Mapping[str, Any]) -> None:
    """Report a wrong `when`, and a `when` beside keys that ignore the arguments."""
    when = members.get("when")
    if when is None:
        return
    if mistake := condition_mistake(when):
        converter.report(node.value["when"], f"when: {mistake}")
    for key in ("hide", "definition"):
        value = members.get(key)
        # A bound on the prose alone harms no other rule's calls.
        is_bound = isinstance(value, Definition) and replace(value, max_bytes=None) == Definition()
        if value and not is_bound:
            message = f"{key!r} holds for the tool, whatever the arguments: it cannot have 'when'"
            converter.report(node.keys[key], message)


def windows(converter: NodeConverter, steps: PlacedSteps) -> None:
    """Report steps that cannot follow a window, and windows that cannot stand together."""
    earlier: list[Transform] = []
    for index, (node, step) in enumerate(steps):
        last_abridge = step.name == "abridge" and index == len(steps) - 1
        if earlier and not (step.window or last_abridge or getattr(step, "works_on_pages", False)):
            names = sorted(name for name, kind in TRANSFORMS.items() if kind.works_on_pages)
            allowed = f"after a window only {', '.join(names[:-1])} and {names[-1]} run"
            converter.report(node, f"{step.name!r} cannot follow {earlier[0].name!r}; {allowed}")
        if step.window:
            for path in _paths(step):
                if not path.plain:
                    reason = "may name several places; a window needs one"
                    converter.report(node, f"{step.name}: {path.text!r} {reason}")
            for other in earlier:
                _own_arguments(converter, node, step, other)
            earlier.append(step)


def errors(converter: NodeConverter, steps: PlacedSteps) -> None:
    """Report windows in the steps for error results."""
    message = "a window cannot stand in 'errors': an error result is sent whole"
    for node in (node for node, step in steps if step.window):
        converter.report(node, message)


def contract(converter: NodeConverter, node: Node, members: Mapping[str, Any]) -> Any:
    """Return the `output_schema` as it is advertised: None if there is none, INVALID if wrong."""
    schema = members.get("output_schema")
    if schema is not None:
        mistakes = output_schema.problems(schema)
        for each in mistakes:
            at = node_at(node.value["output_schema"], each)
            converter.report(at, f"output_schema: {each.message}")
        if mistakes:
            return INVALID
        advertised = normalised(schema)
        if members.get("validate") == "text":
            for own in Checker(advertised).violations({"text": ""}, Fuel()):
                reason = f"{{text: ...}} would violate the output_schema, too: {own.text}"
                converter.report(node.value["validate"], f"validate: {reason}")
        return advertised
    declared = "output_schema" in node.value and node.value["output_schema"].value is not None
    if members.get("validate") is not None and not declared:
        message = "validate: there is no output_schema to check the response against"
        converter.report(node.value["validate"], message)
    return None


def _own_arguments(converter: NodeConverter, node: Node, step: Transform, other: Transform) -> None:
    shared = [name for name in step.parameters if name in other.parameters]
    # A text is windowed as the whole document or at a path, never both: the two may share.
    separate = step.name == other.name == "truncate" and bool(_paths(step)) != bool(_paths(other))
    if shared and not separate:
        options = getattr(step, "arguments", None) or {}
        option = next((key for key, name in options.items() if name == shared[0]), shared[0])
        advice = f"rename here what it shares, as in arguments: {{{option}: ...}}"
        message = f"{step.name}: an earlier window has {' and '.join(map(repr, shared))}; {advice}"
        converter.report(node, message)


def _paths(step: Any) -> tuple[Path, ...]:
    paths = step.at if isinstance(step.at, tuple) else (step.at,)
    return tuple(path for path in paths if path is not None and path.steps)


def arguments(
    converter: NodeConverter, node: Node, table: Mapping[str, Bounds], steps: PlacedSteps
) -> None:
    """Report bounds that contradict each other, or a window's own bounds of the same argument."""
    windows = {name: each.schema for _, step in steps for name, each in step.parameters.items()}
    for name, bounds in table.items():
        argument = node.value[name]
        if not all(name.split(".")):
            converter.report(node.keys[name], f"{name!r} has an empty name between its dots")
        window = windows.get(name, {})
        for key, message in _contradictions(name, bounds, window, set(argument.value)):
            converter.report(argument.value.get(key, argument), f"{name}: {message}")


def _contradictions(
    name: str, bounds: Bounds, window: Mapping[str, Any], keys: set[str]
) -> Iterator[tuple[str, str]]:
    """Yield each contradiction: the key at which it is reported, and the message."""
    if bounds.alias_of is not None:
        if bounds.alias_of == name:
            yield "alias_of", "is an alias of itself"
        for key in _OF_VALUES & keys:
            yield key, f"an alias has no {key!r} of its own; say it at {bounds.alias_of!r}"
        return
    type_ = bounds.type or window.get("type")
    if window and type_ != window["type"]:
        yield "type", f"a window has this argument, of type {window['type']!r}"
    if bounds.clamp and not {"minimum", "maximum", "max_length"} & keys:
        yield "clamp", "'clamp' needs a minimum, a maximum or a max_length"
    low = window.get("minimum") if bounds.minimum is None else bounds.minimum
    high = window.get("maximum") if bounds.maximum is None else bounds.maximum
    if low is not None and high is not None and low > high:
        yield "minimum", f"the minimum {low} is greater than the maximum {high}"
    default = bounds.default
    if default is UNSET:
        return
    reason = None
    if type_ is not None and type(default) not in _PYTHON_TYPES[type_]:
        reason = f"is not of type {type_!r}"
    elif bounds.enum is not None and default not in bounds.enum:
        reason = "is none of the values of enum"
    elif type(default) in (int, float) and low is not None and default < low:
        reason = f"is less than the minimum of {low}"
    elif type(default) in (int, float) and high is not None and default > high:
        reason = f"is greater than the maximum of {high}"
    if reason is not None:
        yield "default", f"the default {default!r} {reason}"


_OF_VALUES = frozenset(
    ("default", "minimum", "maximum", "enum", "max_length", "pattern", "type", "clamp")
)
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def tests(
    converter: NodeConverter, node: Node, members: Mapping[str, Any], *, guarded: bool
) -> None:
    """Report tests with no input, too much input, or input that the rule cannot use.

    `members` are the valid ones of the rule.
    """
    of_tools = "tools" in members
    key, patterns = ("tool", members["tools"]) if of_tools else ("resource", members["resources"])
    for case in node.value if isinstance(node.value, list) else [node]:
        if not isinstance(case.value, dict):
            continue
        inputs = [key for key in _INPUTS if key in case.value]
        results = [key for key in _QUERY_RESULTS if key in case.value]
        for first, second in (each[:2] for each in (inputs, results) if len(each) > 1):
            message = f"a test has {first!r} or {second!r}, not both"
            converter.report(case.keys[second], message)
        if not inputs and not _WITHOUT_INPUT & set(case.value):
            message = f"a test needs one of {', '.join(_INPUTS)}, refused and upstream"
            converter.report(case, message)
        for key in () if guarded else [*results, *({"asks"} & case.value.keys())]:
            converter.report(case.keys[key], f"{key}: the rule has no guard that asks")
        for other in {"resource"} if of_tools else {"tool", "arguments", "given_error"}:
            if other in case.value:
                converter.report(case.keys[other], f"{other}: the rule is for {key}s")
        name = case.value[key].value if key in case.value else None
        own = name if of_tools or not isinstance(name, str) else split(name)[0]
        if isinstance(own, str) and not any(matches(each, own) for each in patterns):
            message = f"{key}: {own!r} is none of the rule's {key}s{did_you_mean(own, patterns)}"
            converter.report(case.value[key], message)


_INPUTS = ("given", "given_text", "given_file", "given_result", "given_error")
_QUERY_RESULTS = ("found", "found_error", "found_nothing")
# With one of these, a test may omit the server's response.
_WITHOUT_INPUT = frozenset(("refused", "upstream", "asks", *_QUERY_RESULTS))
