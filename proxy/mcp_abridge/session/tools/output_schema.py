"""The advertised outputSchema of a tool: it fits every result of the rules.

Clients refuse a result that does not fit, so each function errs on the side of promising less.
"""

from collections.abc import Callable

from msgspec import Raw

from mcp_abridge.document.tree import encode, plain
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.schema.derive import advertised, relaxed
from mcp_abridge.schema.references import NOTES, Subschema
from mcp_abridge.session.tools.arguments import VIEW
from mcp_abridge.transforms.abridge import NAME, Abridge
from mcp_abridge.transforms.base import Schema, Transform

Log = Callable[[str], None]

_VIEWED: Schema = {"type": "object", "properties": {VIEW: {}}, "required": [VIEW]}
_UNKEPT: Schema = {
    "description": "What does not keep to the contract passes as the server sent it."
}
_GUARDED: Schema = {"description": "What is answered in place of the server."}


def derived(own: Schema | None, rules: list[Rule], log: Log) -> Schema | None:
    """Return a schema that fits every result of the rules and every unchanged result.

    Without one of its `own`, each rule has an `output_schema`. None if none can be stated.
    """
    fitting: list[Schema | None] = []
    shapes: list[Schema] = []
    for rule in rules:
        if rule.copies == "text":
            return None
        if rule.output_schema is not None:
            fitting.append(_ended(rule.output_schema, rule, log))
        elif rule.pipeline or rule.drop_blocks:
            fitting.append(_run(own, rule, rule.pipeline, log))
            shapes = [] if own is None else _with_text(own)
        # The server's own fits unchanged results, but not shaped ones that break the contract.
        unchecked = rule.validate != "refuse" if own is None else rule.validate == "warn"
        fitting += [_UNKEPT] * unchecked
        fitting += [_GUARDED] * (rule.guard is not None)
    if any(rule.snapshot_step.viewable for rule in rules):
        shapes.append(_VIEWED)
    fitting += [shape for shape in shapes if not any(_admits(each, shape) for each in fitting)]
    return _with_note(advertised(own, fitting), rules) if fitting else own


def unkept(rules: list[Rule]) -> str | None:
    """Return the reason why some calls would lack structuredContent; None if none would."""
    for rule in rules:
        if rule.output_schema is None:
            return f"the rule {rule.name!r} of the same tool has none"
        if rule.mode == "shadow":
            return f"the rule {rule.name!r} changes nothing (mode: shadow)"
        if rule.copies == "text":
            return f"the rule {rule.name!r} sends only texts (copies: text)"
    if all(rule.when is not None for rule in rules):
        return "no rule takes the calls for which each 'when' is false"
    return None


def _ended(contract: Schema, rule: Rule, log: Log) -> Schema | None:
    """Return the schema of documents that keep to a contract: they may be abridged after that."""
    return _run(contract, rule, rule.pipeline[-1:] if rule.max_bytes is not None else (), log)


def _with_text(own: Schema) -> list[Schema]:
    """Return the schemas of documents that are a text, or hold one beside the notices."""
    names = ["text"] if own.get("type") == "string" else []
    properties = own.get("properties")
    if isinstance(properties, dict) and len(properties) == 1:
        names += [
            name
            for name, inner in properties.items()
            if isinstance(inner, dict) and inner.get("type") == "string"
        ]
    return [
        {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
        for name in names
    ]


_OPEN = {"$schema", "$defs", "definitions", "properties", "type"} | NOTES


def _admits(schema: Schema | None, shape: Schema) -> bool:
    if schema is None or schema.get("type") != "object" or schema.keys() - _OPEN:
        return False
    declared = schema.get("properties", {})
    return all(
        name not in declared or (_is_text(inner) and _is_text(declared[name]))
        for name, inner in shape["properties"].items()
    )


def _is_text(schema: Subschema) -> bool:
    return (
        isinstance(schema, dict)
        and schema.get("type") == "string"
        and not schema.keys() - NOTES - {"type"}
    )


def _run(
    schema: Schema | None, rule: Rule, steps: tuple[Transform, ...], log: Log
) -> Schema | None:
    for step in steps:
        if schema is None:
            return None
        schema = _reshaped(schema, step, rule, log)
    return relaxed(schema) if schema is not None and rule.drop_blocks else schema


def _with_note(schema: Schema | None, rules: list[Rule]) -> Schema | None:
    """Declare in the schema that results may be abridged, if a rule does so.

    Clients that make a type of the schema (FastMCP) drop what it does not declare.
    """
    abridging = any(step.name == Abridge.name for rule in rules for step in rule.pipeline)
    if schema is None or not abridging or schema.get("type") != "object":
        return schema
    own = schema.get("properties", {})
    return {**schema, "properties": {VIEW: {}, "more": {}, **own, NAME: {}}}


def _reshaped(schema: Schema, step: Transform, rule: Rule, log: Log) -> Schema | None:
    if not rule.foreign:
        return step.reshape(schema)
    try:
        reshaped = step.reshape(schema)
        if reshaped is None or isinstance(plain(Raw(encode(reshaped))), dict):
            return reshaped
        reason = f"{reshaped!r} is no schema"
    except (Exception, SystemExit) as error:  # a transform may raise anything
        reason = f"{type(error).__name__}: {error}"
    log(f"{rule.name}: what {step.name!r} makes of an outputSchema is not known: {reason}")
    return None
