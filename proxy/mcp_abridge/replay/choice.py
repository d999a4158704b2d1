"""Find the rule that applies to a call, and the reasons why the others do not."""

from collections.abc import Iterator
from typing import Any

from mcp_abridge.document.message import READ
from mcp_abridge.errors import Refusal
from mcp_abridge.query.fragment import split
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleSet


def covers(rule: Rule, tool: str, arguments: dict[str, Any]) -> bool:
    """Return True if a rule is for a call of `tool`, or READ of a `uri`, but for its `when`."""
    if tool == READ:
        return rule.covers_resource(split(str(arguments.get("uri", "")))[0])
    return rule.covers(tool)


def choices(rules: RuleSet, tool: str, arguments: dict[str, Any]) -> Iterator[tuple[Rule, str]]:
    """Yield every rule, in order, and why it does not apply to a call of `tool`; "" if it does."""
    first: Rule | None = None
    every = [rule for file in rules.files for rule in file.rules]
    for rule in (*every, *((rules.otherwise,) if rules.otherwise else ())):
        if not covers(rule, tool, arguments):
            yield rule, f"it is for {', '.join(rule.tools or rule.resources)}"
            continue
        if first is not None:
            yield rule, f"{first.name} comes first"
            continue
        try:
            text = rule.when.text if rule.when else ""
            mismatch = f"`when` is not true of the arguments: {text}"
            reason = "" if rule.applies(arguments) else mismatch
            first = None if reason else rule
        except Refusal as error:
            reason = f"`when` failed: {error}"
            # If it protects, the call is refused, and no later rule is tried.
            first = rule if rule.failure_policy.protects else None
        yield rule, reason
