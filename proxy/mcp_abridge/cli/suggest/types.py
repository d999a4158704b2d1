"""Learns the types of answers: without them, a script guesses what a tool returns.

Most servers declare no outputSchema. What is learned fits every recorded answer, and the rule sends
any other as a text: no client refuses it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_abridge.cli.suggest.draft import Answered, Draft
from mcp_abridge.cli.suggest.profile import MOST_MEMBERS, MemberProfile
from mcp_abridge.cli.suggest.rules import (
    NAME_OF_CASE,
    Suggestion,
    comment,
    file_text,
    try_out,
    yaml_text,
)
from mcp_abridge.cli.suggest.sample import shortened
from mcp_abridge.cli.terminal import count_text, short_list
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


def learned(
    server: str | None,
    answers: Mapping[str, list[Answered]],
    declared: Mapping[str, Any],
    unusable: Mapping[str, str],
    *,
    strict: bool,
) -> Suggestion:
    """Return rules with the types of tools; `declared` are the tools of the recorded list.

    `strict`: members that all objects have are required, null is admitted only if it was seen, and
    an answer of another type is refused.
    """
    reasons, texts = dict(unusable), list[str]()
    suggestion = Suggestion(unusable=reasons)
    for tool, each in sorted(answers.items()):
        objects = [answer for answer in each if isinstance(answer.value, dict)]
        if "outputSchema" in declared.get(tool, ()):
            reasons[tool] = "the server declares them"
        elif strict and len(objects) < len(each):
            reasons[tool] = "some answers are no objects, and --strict would refuse them"
        elif objects:
            row = _row(tool, each, objects, strict=strict)
            suggestion.rows.append(row)
            suggestion.lines.append(f"{tool}: {_evidence(row)}")
            texts.append(_rule(row, objects, strict=strict))
        else:
            reasons[tool] = "no answer is a JSON object"
    suggestion.text = _HEAD + file_text(server, texts)
    return suggestion


def _row(
    tool: str, answers: list[Answered], objects: list[Answered], *, strict: bool
) -> dict[str, Any]:
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
    return {
        "tools": [tool],
        "answers": len(answers),
        "objects": len(objects),
        "not_in_all": list(_optional(root)),  # members that some objects lack
        "output_schema": schema,
    }


def _rule(row: dict[str, Any], objects: list[Answered], *, strict: bool) -> str:
    draft = Draft(row["tools"][0], objects)
    part = shortened(draft, draft.largest.value, MOST_MEMBERS)
    spec = {
        "tools": draft.tool,
        "output_schema": row["output_schema"],
        "validate": "refuse" if strict else "text",
        "max_bytes": "auto",
        "tests": [{"name": NAME_OF_CASE, "given": part, "warns": []}],
    }
    lines = comment("  ", f"{draft.tool}: {_evidence(row)}")
    return try_out("\n".join([*lines, "  - " + yaml_text(spec, 4)]))


def _evidence(row: dict[str, Any]) -> str:
    line = count_text(row["answers"], "answer")
    others = row["answers"] - row["objects"]
    line += f", {others} of them no objects" if others else ""
    return line + (f"; not in all: {short_list(row['not_in_all'])}" if row["not_in_all"] else "")


def _optional(node: MemberProfile) -> Iterator[str]:
    for name, member in node.inner.members.items():
        if member.count < node.inner.count and name != "*":
            yield member.path
        yield from _optional(member)


def _schema(node: MemberProfile, depth: int, *, strict: bool) -> Schema:
    """Return the schema of the values at a path, open below a depth, for members not seen, too."""
    number = "integer" if strict and node.kinds <= _WITHOUT_FRACTIONS else "number"
    every = sorted(node.kinds, key=lambda kind: kind.__name__)
    every += [] if strict or not node.names else [type(None)]
    kinds = list(dict.fromkeys(_KINDS.get(kind, number) for kind in every))
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
