"""Learns the types of answers: without them, a script guesses what a tool returns.

Most servers declare no outputSchema. What is learned fits every recorded answer, and the rule sends
any other as a text: no client refuses it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from mcp_abridge.cli.suggest.draft import Answered, Draft
from mcp_abridge.cli.suggest.profile import MOST_MEMBERS, MemberProfile
from mcp_abridge.cli.suggest.rules import NAME_OF_CASE, comment, file_text, tried, yaml_text
from mcp_abridge.cli.suggest.sample import shortened
from mcp_abridge.cli.terminal import count_text, say, short_list
from mcp_abridge.document.paths import bare
from mcp_abridge.document.tree import encode

Schema = dict[str, Any]

_MOST = 6_000  # bytes of a schema; what lies deeper stays open
_DEEPEST = 8
_KINDS = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
_WITHOUT_FRACTIONS = {int, *_KINDS}
_HEAD = (
    "# Types learned by `mcp-abridge suggest --types`. Other answers come as {text: ...}.\n"
    "# The first rule that names a tool applies: put an output_schema into a rule of your own.\n"
)


class TypedRule(Struct):
    """A rule with the types of a tool, as JSON but for its `text` in YAML.

    `objects` of its `answers` are JSON objects; `not_in_all` are members that some of these lack.
    """

    tools: list[str]
    answers: int
    objects: int
    not_in_all: list[str]
    output_schema: Schema
    text: str = ""


class Types(Struct):
    """The types that recordings show, and the tools without any, with the reason."""

    server: str | None
    rules: list[TypedRule]
    unusable: dict[str, str]

    @property
    def text(self) -> str:
        return _HEAD + file_text(self.server, [rule.text for rule in self.rules])

    def rows(self) -> list[dict[str, Any]]:
        rows = map(asdict, self.rules)
        return [{name: each for name, each in row.items() if name != "text"} for row in rows]

    def show(self) -> None:
        for rule in self.rules:
            say("suggest", f"{rule.tools[0]}: {_evidence(rule)}")


def learned(
    server: str | None,
    answers: Mapping[str, list[Answered]],
    declared: Mapping[str, Any],
    unusable: Mapping[str, str],
    *,
    strict: bool,
) -> Types:
    """Return rules with the types of tools; `declared` are the tools of the recorded list.

    `strict`: members that all objects have are required, null is admitted only if it was seen, and
    an answer of another type is refused.
    """
    reasons, rules = dict(unusable), list[TypedRule]()
    for tool, each in sorted(answers.items()):
        objects = [answer for answer in each if isinstance(answer.value, dict)]
        if "outputSchema" in declared.get(tool, ()):
            reasons[tool] = "the server declares them"
        elif strict and len(objects) < len(each):
            reasons[tool] = "some answers are no objects, and --strict would refuse them"
        elif objects:
            rules.append(_rule(tool, each, objects, strict=strict))
        else:
            reasons[tool] = "no answer is a JSON object"
    return Types(server, rules, reasons)


def _rule(
    tool: str, answers: list[Answered], objects: list[Answered], *, strict: bool
) -> TypedRule:
    root = MemberProfile()
    for each in objects:
        root.add(each.value, lambda *_: "")
    depth = _DEEPEST
    while len(encode(schema := _schema(root, depth, strict=strict))) > _MOST and depth > 1:
        depth -= 1
    if not strict:  # answers of other types are admitted
        note = {"type": "string", "description": "the whole answer, if it has another shape"}
        own = schema.setdefault("properties", {})
        own["text"] = {} if "text" in own else note
    rule = TypedRule([tool], len(answers), len(objects), list(_optional(root)), schema)
    draft = Draft(tool, objects)
    part = shortened(draft, draft.largest.value, MOST_MEMBERS)
    spec = {
        "tools": tool,
        "output_schema": schema,
        "validate": "refuse" if strict else "text",
        "max_bytes": "auto",
        "tests": [{"name": NAME_OF_CASE, "given": part, "warns": []}],
    }
    lines = [*comment("  ", f"{tool}: {_evidence(rule)}"), "  - " + yaml_text(spec, 4)]
    rule.text = tried("\n".join(lines))
    return rule


def _evidence(rule: TypedRule) -> str:
    line = count_text(rule.answers, "answer")
    others = rule.answers - rule.objects
    line += f", {others} of them no objects" if others else ""
    return line + (f"; not in all: {short_list(rule.not_in_all)}" if rule.not_in_all else "")


def _optional(node: MemberProfile) -> Iterator[str]:
    """Yield the paths of members that some objects lack."""
    for name, member in node.inner.members.items():
        if member.count < node.inner.count and name != "*":
            yield member.path
        yield from _optional(member)


def _schema(node: MemberProfile, depth: int, *, strict: bool) -> Schema:
    """Return the schema of the values at a path, open below a depth, for members not seen, too."""
    kinds = list(dict.fromkeys(_types(node, strict=strict)))
    schema: Schema = {"type": kinds[0] if len(kinds) == 1 else kinds}
    if depth == 0:
        return schema
    if node.element is not None:
        schema["items"] = _schema(node.element, depth - 1, strict=strict)
    if [*node.members] == ["*"]:
        schema["additionalProperties"] = _schema(node.members["*"], depth - 1, strict=strict)
    elif "*" not in node.members:
        members = {bare(name): each for name, each in node.members.items()}
        properties = {n: _schema(each, depth - 1, strict=strict) for n, each in members.items()}
        schema |= {"properties": properties} if properties else {}
        required = [name for name, each in members.items() if each.count == node.count]
        if strict and required:
            schema["required"] = required
    return schema


def _types(node: MemberProfile, *, strict: bool) -> Iterator[str]:
    number = "integer" if strict and node.kinds <= _WITHOUT_FRACTIONS else "number"
    for kind in sorted(node.kinds, key=lambda kind: kind.__name__):
        yield _KINDS.get(kind, number)
    if not strict and node.names:
        yield "null"
