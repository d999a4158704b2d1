"""Consistency checks between the parts of a rule file, each valid by itself."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import asdict

from proxy.document.paths import Name, Path, matches
from proxy.errors import did_you_mean
from proxy.ruleset.loading import output_schema as contracts
from proxy.ruleset.loading.convert import BAD, NodeConverter, led
from proxy.ruleset.loading.jmespath_lint import slip
from proxy.ruleset.loading.yaml_nodes import Node
from proxy.ruleset.rule import Bounds, Messages
from proxy.transforms.base import Transform
from proxy.transforms.contract import normalised

AFTER_A_WINDOW = frozenset(("clip", "table", "replace"))
"""The transforms that work on a page as on the whole document."""

Placed = tuple[Node, Transform]


def characters(notes: NodeConverter, node: Node) -> None:
    """Report texts with a lone surrogate, which cannot be written; tests may have them."""
    held: Iterable[Node] = ()
    if isinstance(node.value, dict):
        held = [each for name, each in node.value.items() if name != "tests"]
        for key in node.keys.values():
            characters(notes, key)
    elif isinstance(node.value, list):
        held = node.value
    elif isinstance(node.value, str) and any("\ud800" <= sign <= "\udfff" for sign in node.value):
        notes.report(node, f"{node.value!r} has half a character in it: a surrogate by itself")
        node.invalid = True
    for each in held:
        characters(notes, each)


def order(notes: NodeConverter, rules: Iterable[tuple[Node, Mapping[str, Any]]]) -> None:
    """Report rules that can never match, since rules before them take every call."""
    # The earlier rules by the tools they name, and separately those with globs.
    named: dict[str, list[_Taker]] = {}
    globs: list[_Taker] = []
    for node, members in rules:
        tools, when = members.get("tools", BAD), members.get("when")
        if tools is BAD or when is BAD:
            continue
        mine = [_Taker(tool, node.line, when.text if when else None) for tool in tools]
        takers = [_first([*named.get(each.tool, ()), *globs], each) for each in mine]
        if tools and all(takers):
            lines = " and ".join(sorted({f"line {taker.line}" for taker in takers if taker}))
            message = f"this rule can never match: the rule in {lines} takes its calls"
            notes.report(node.value["tools"], message)
        for each in mine:
            held = globs if "*" in each.tool else named.setdefault(each.tool, [])
            held.append(each)


class _Taker(Struct, frozen=True):
    """A tool, or a glob, whose calls a rule takes if its condition holds."""

    tool: str
    line: int
    when: str | None


def _first(earlier: Iterable[_Taker], later: _Taker) -> _Taker | None:
    # A glob that matches another glob as a name matches every name that the other matches.
    for each in earlier:
        if each.when in (None, later.when) and matches(each.tool, later.tool):
            return each
    return None


def whole_tool(notes: NodeConverter, node: Node, members: Mapping[str, Any]) -> None:
    """Report a wrong `when`, and a `when` beside keys that ignore the arguments."""
    when = members.get("when")
    if when is None:
        return
    wrong = slip(when)
    if wrong:
        notes.report(node.value["when"], f"when: {wrong}")
    for word in ("hide", "definition"):
        if members.get(word):
            message = f"{word!r} holds for the tool, whatever the arguments: it cannot have 'when'"
            notes.report(node.keys[word], message)


def windows(notes: NodeConverter, steps: Sequence[Placed]) -> None:
    """Report steps that cannot follow a window, and windows that cannot stand together."""
    before: list[Transform] = []
    for position, (node, step) in enumerate(steps):
        closing = step.name == "abridge" and position == len(steps) - 1
        if before and not (step.window or closing or step.name in AFTER_A_WINDOW):
            allowed = "after a window only clip, replace and table run"
            message = f"{step.name!r} cannot follow {before[0].name!r}; {allowed}"
            notes.report(node, message)
        if step.window:
            _one_place(notes, node, step)
            for other in before:
                _own_names(notes, node, step, other)
            before.append(step)


def errors(notes: NodeConverter, steps: Iterable[Placed]) -> None:
    """Report windows in the steps for error results."""
    for node, step in steps:
        if step.window:
            said = "a window cannot stand in 'errors': an error result is sent whole"
            notes.report(node, said)


def contract(notes: NodeConverter, node: Node, members: Mapping[str, Any]) -> Any:
    """Return the `output_schema` as it is advertised: None if there is none, BAD if it is wrong.

    Reports its mistakes, and a `validate` without an `output_schema`.
    """
    schema = members.get("output_schema")
    if schema is not None:
        wrong = contracts.problems(schema)
        for each in wrong:
            notes.report(led(node.value["output_schema"], each), f"output_schema: {each.message}")
        return BAD if wrong else normalised(schema)
    given = "output_schema" in node.value and node.value["output_schema"].value is not None
    if members.get("validate") is not None and not given:
        said = "validate: there is no output_schema to check the response against"
        notes.report(node.value["validate"], said)
    return None


def _one_place(notes: NodeConverter, node: Node, step: Transform) -> None:
    for path in _at(step):
        if not path.plain:
            steps = [each for each in path.steps if not isinstance(each, Name)]
            what = "steps through an array" if steps else "may name several places"
            message = f"{step.name}: {path.text!r} {what}; a window needs one place"
            notes.report(_option(node, "at"), message)


def _own_names(notes: NodeConverter, node: Node, step: Transform, other: Transform) -> None:
    shared = [name for name in step.parameters if name in other.parameters]
    # A text is windowed as the whole document or at a path, never both: the two may share.
    apart = step.name == other.name == "truncate" and bool(_at(step)) != bool(_at(other))
    if shared and not apart:
        many = len(shared) > 1
        names = f"argument{'s' * many} {' and '.join(map(repr, shared))}"
        own = {given: word for word, given in (getattr(step, "arguments", None) or {}).items()}
        example = "arguments: {" + f"{own.get(shared[0], shared[0])}: ..." + "}"
        advice = f"give this one {'others' if many else 'another'}, as in {example}"
        notes.report(node, f"{step.name}: an earlier window has the {names}; {advice}")


def _at(step: Any) -> tuple[Path, ...]:
    at = step.at if isinstance(step.at, tuple) else (step.at,)
    return tuple(path for path in at if path is not None and path.steps)


def _option(node: Node, name: str) -> Node:
    """Return the node of an option of the step at `node`, or the step if it has none."""
    options = next(iter(node.value.values())) if isinstance(node.value, dict) else node
    held: Node = options.value.get(name, node) if isinstance(options.value, dict) else node
    return held


def arguments(
    notes: NodeConverter, node: Node, named: Mapping[str, Bounds], steps: Iterable[Placed]
) -> None:
    """Report bounds that contradict each other, or a window's own bounds of the same argument."""
    windows = {name: each.schema for _, step in steps for name, each in step.parameters.items()}
    for name, bounds in named.items():
        place = node.value[name]
        if not all(name.split(".")):
            notes.report(node.keys[name], f"{name!r} has an empty name between its dots")
        found = _contradictions(name, bounds, windows.get(name, {}), set(place.value))
        for word, message in found:
            notes.report(place.value.get(word, place), f"{name}: {message}")


def _contradictions(
    name: str, bounds: Bounds, window: Mapping[str, Any], given: set[str]
) -> Iterable[tuple[str, str]]:
    """Yield each contradiction: the key at which it is reported, and the message."""
    if bounds.alias_of is not None:
        if bounds.alias_of == name:
            yield "alias_of", "is an alias of itself"
        for word in _OF_VALUES & given:
            yield word, f"an alias has no {word!r} of its own; say it at {bounds.alias_of!r}"
        return
    kind = bounds.type or window.get("type")
    if window and kind != window["type"]:
        yield "type", f"a window has this argument, of type {window['type']!r}"
    for word, kinds in _MEANINGFUL.items():
        if word in given and kind is not None and kind not in kinds:
            yield word, f"{word!r} means nothing for an argument of type {kind!r}"
    low, high = bounds.minimum, bounds.maximum
    if low is not None and high is not None and low > high:
        yield "minimum", f"the minimum {low} is greater than the maximum {high}"
    if bounds.clamp and not {"minimum", "maximum", "max_length"} & given:
        yield "clamp", "'clamp' needs a minimum, a maximum or a max_length"
    values = [("enum", value) for value in bounds.enum or ()]
    for word in _unsaid(bounds, window, given):
        yield "message", f"the message for {word!r} is never said, since there is no {word!r}"
    for word, value in [("default", bounds.default), *values]:
        if value is not UNSET and (wrong := _refused(value, kind, bounds, window)):
            yield word, f"the {word} {value!r} {wrong}"
    if bounds.enum is not None and bounds.default not in (UNSET, *bounds.enum):
        yield "default", f"the default {bounds.default!r} is none of the values of enum"


def _unsaid(bounds: Bounds, window: Mapping[str, Any], given: set[str]) -> Iterable[str]:
    if isinstance(bounds.message, Messages):
        said = {word for word, text in asdict(bounds.message).items() if text is not None}
        yield from sorted(said - given - window.keys())


_OF_VALUES = frozenset(
    ("default", "minimum", "maximum", "enum", "max_length", "pattern", "type", "clamp")
)
_MEANINGFUL = {
    "minimum": ("integer", "number"),
    "maximum": ("integer", "number"),
    "max_length": ("string",),
    "pattern": ("string",),
}
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _refused(value: Any, kind: str | None, bounds: Bounds, window: Mapping[str, Any]) -> str | None:
    """Return the reason why the bounds would refuse `value`, or None."""
    truth = isinstance(value, bool)
    if kind is not None and (not isinstance(value, _KINDS[kind]) or truth != (kind == "boolean")):
        return f"is not of type {kind!r}"
    if isinstance(value, int | float) and not truth:
        low = window.get("minimum") if bounds.minimum is None else bounds.minimum
        high = window.get("maximum") if bounds.maximum is None else bounds.maximum
        if low is not None and value < low:
            return f"is less than the minimum of {low}"
        if high is not None and value > high:
            return f"is greater than the maximum of {high}"
    if isinstance(value, str):
        if bounds.max_length is not None and len(value) > bounds.max_length:
            return f"is longer than {bounds.max_length} characters"
        if bounds.pattern is not None and bounds.pattern.search(value) is None:
            return f"does not match {bounds.pattern.text!r}"
    return None


def tests(notes: NodeConverter, node: Node, tools: Sequence[str], *, guarded: bool) -> None:
    """Report tests with no input, too much input, or input that the rule cannot use.

    The last is a tool outside of `tools`, or a query if the rule is not `guarded`.
    """
    for case in node.value if isinstance(node.value, list) else [node]:
        if not isinstance(case.value, dict):
            continue
        given = [word for word in _GIVEN if word in case.value]
        found = [word for word in _FOUND if word in case.value]
        for words in (given, found):
            if len(words) > 1:
                message = f"a test has {words[0]!r} or {words[1]!r}, not both"
                notes.report(case.keys[words[1]], message)
        if not given and not _UNGIVEN & set(case.value):
            notes.report(case, f"a test needs one of {', '.join(_GIVEN)}, refused and upstream")
        for word in () if guarded else [*found, *({"asks"} & case.value.keys())]:
            notes.report(case.keys[word], f"{word}: the rule has no guard that asks")
        tool = case.value["tool"].value if "tool" in case.value else None
        if isinstance(tool, str) and not any(matches(each, tool) for each in tools):
            message = f"tool: {tool!r} is none of the rule's tools{did_you_mean(tool, tools)}"
            notes.report(case.value["tool"], message)


_GIVEN = ("given", "given_text", "given_file", "given_result", "given_error")
# The result of the query of a guard.
_FOUND = ("found", "found_error", "found_nothing")
# With one of these, a test may omit the server's response.
_UNGIVEN = frozenset(("refused", "upstream", "asks", *_FOUND))
