"""The advertised outputSchema of a tool: it fits every result of the rules.

Clients refuse a result that does not fit, so each function errs on the side of promising less.
"""

from collections.abc import Callable

from msgspec import Raw

from proxy.document.tree import encode, plain
from proxy.ruleset.rule import Rule
from proxy.schema import derive as schemas
from proxy.session.tools.arguments import VIEW
from proxy.transforms.abridge import NAME, Abridge
from proxy.transforms.base import Schema, Transform

Log = Callable[[str], None]

_VIEWED: Schema = {"type": "object", "properties": {VIEW: {}}, "required": [VIEW]}
_UNKEPT: Schema = {
    "description": "What does not keep to the contract passes as the server sent it."
}
_NOTE = (
    "Present if elements or characters were left out of this result: what is shown is not the"
    " whole. Says by path how many are shown of how many."
)
_GUARDED: Schema = {"description": "What is answered in place of the server."}


def derived(own: Schema, rules: list[Rule], log: Log) -> Schema | None:
    """Return a schema that fits every result of the rules and every unchanged result.

    None if no such schema can be stated.
    """
    fitting: list[Schema | None] = []
    for rule in rules:
        if rule.copies == "text":
            return None
        if rule.output_schema is not None:
            fitting.append(_ended(rule.output_schema, rule, log))
        elif rule.pipeline or rule.drop_blocks:
            fitting.extend(_derived(own, rule, log))
        fitting += [_VIEWED] * rule.snapshot_step.viewable
        # The server's own fits unchanged results, but not shaped ones that break the contract.
        fitting += [_UNKEPT] * (rule.validate == "warn")
        fitting += [_GUARDED] * (rule.guard is not None)
    return _with_note(schemas.advertised(own, fitting), rules) if fitting else own


def promised(rules: list[Rule], log: Log) -> Schema | None:
    """Return the schema of a tool that declares none, and whose every rule has one.

    None if the schemas of the rules cannot be combined.
    """
    fitting: list[Schema | None] = []
    for rule in rules:
        assert rule.output_schema is not None
        fitting.append(_ended(rule.output_schema, rule, log))
        fitting += [_VIEWED] * rule.snapshot_step.viewable
    fitting += [_UNKEPT] * any(rule.validate != "refuse" for rule in rules)
    fitting += [_GUARDED] * any(rule.guard is not None for rule in rules)
    return _with_note(schemas.advertised(None, fitting), rules)


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


def _derived(own: Schema, rule: Rule, log: Log) -> list[Schema | None]:
    """Return the schemas of a rule's documents: of the value itself, and of a text held in it."""
    shapes: list[Schema | None] = [_run(own, rule, rule.pipeline, log)]
    if own.get("type") == "string":
        shapes.append(_holding("text"))
    properties = own.get("properties")
    if isinstance(properties, dict) and len(properties) == 1:
        [(member, inner)] = properties.items()
        if isinstance(inner, dict) and inner.get("type") == "string":
            # The text, or JSON in it, may be cut; the notices for the model stand beside it.
            shapes.append(_holding(member))
    return shapes


def _holding(member: str) -> Schema:
    return {"type": "object", "properties": {member: {"type": "string"}}, "required": [member]}


def _run(
    schema: Schema | None, rule: Rule, steps: tuple[Transform, ...], log: Log
) -> Schema | None:
    for step in steps:
        if schema is None:
            return None
        schema = _reshaped(schema, step, rule, log)
    return schemas.relaxed(schema) if schema is not None and rule.drop_blocks else schema


def _with_note(schema: Schema | None, rules: list[Rule]) -> Schema | None:
    """Tell readers of the schema that results may be incomplete, if a rule abridges them."""
    abridging = any(step.name == Abridge.name for rule in rules for step in rule.pipeline)
    if schema is None or not abridging or schema.get("type") != "object":
        return schema
    return {**schema, "properties": {**schema.get("properties", {}), NAME: {"description": _NOTE}}}


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
