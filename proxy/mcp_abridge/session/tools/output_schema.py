"""The advertised outputSchema of a tool: it fits every result of the rules.

Clients refuse a result that does not fit, so each function errs on the side of promising less.
"""

from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.schema.derive import any_of, relaxed
from mcp_abridge.session.tools.arguments import VIEW
from mcp_abridge.transforms import TRANSFORMS
from mcp_abridge.transforms.abridge import NAME, AbridgeStep
from mcp_abridge.transforms.base import Schema

_UNKEPT: Schema = {
    "description": "What does not keep to the contract passes as the server sent it."
}
_GUARDED: Schema = {"description": "What is answered in place of the server."}


def derived(own: Schema | None, rules: list[Rule]) -> Schema | None:
    """Return a schema that fits every result of the rules and every unchanged result.

    Without one of its `own`, each rule has an `output_schema`. None if none can be stated.
    """
    fitting: list[Schema | None] = []
    beside = [] if own is None else [own]
    for rule in rules:
        if rule.copies == "text":
            return None
        if rule.output_schema is not None:
            fitting.append(_cut(rule.output_schema, rule))
        elif own is not None and (rule.pipeline or rule.drop_blocks):
            fitting.append(_reshaped(own, rule))
            beside = []  # what is derived fits unchanged results, too
        # The server's own fits unchanged results, but not shaped ones that break the contract.
        unchecked = rule.validate in ({None, "warn"} if own is None else {"warn"})
        fitting += [_UNKEPT] * unchecked
        fitting += [_GUARDED] * (rule.guard is not None)
    if not fitting:
        return own
    stated = [each for each in fitting if each is not None]
    if len(stated) < len(fitting):
        return None
    objects = own is None or own.get("type") == "object"
    return _with_notes(any_of([*stated, *beside], {"type": "object"} if objects else {}), rules)


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


def _reshaped(own: Schema, rule: Rule) -> Schema | None:
    schema: Schema | None = own
    for step in rule.pipeline:
        if schema is None or step.name not in TRANSFORMS:  # what Python does is not known
            return None
        schema = step.reshape(schema)
    return None if schema is None else relaxed(schema, *_notes(rule))


def _cut(contract: Schema, rule: Rule) -> Schema | None:
    """Return the schema of results that keep to a contract, and may be cut after that."""
    notes = _notes(rule)
    return relaxed(contract, *notes) if notes or rule.drop_blocks else contract


def _notes(rule: Rule) -> list[str]:
    """Return the names of members that the proxy adds: those of notices, and of a view's answer."""
    if all(step.name != AbridgeStep.name for step in rule.pipeline):
        return []
    return [*([VIEW, "more"] * rule.snapshot_step.viewable), NAME]


def _with_notes(schema: Schema | None, rules: list[Rule]) -> Schema | None:
    """Declare the members of notices and of answers to views.

    Clients that make a type of the schema (FastMCP) drop what it does not declare.
    """
    notes: Schema = {name: {} for rule in rules for name in _notes(rule)}
    if schema is None or not notes or schema.get("type") != "object":
        return schema
    if "anyOf" in schema and "properties" not in schema:  # nothing else would be declared
        return schema
    return {**schema, "properties": {**schema.get("properties", {}), **notes}}
