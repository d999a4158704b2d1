"""Find the rule that applies to a call, and the reasons why the others do not."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from proxy.errors import Refusal
from proxy.ruleset.rule import Rule, RuleSet


class Choice(Struct, frozen=True):
    """One rule, and whether it applies; `reason` is why it does not."""

    rule: Rule
    applies: bool
    reason: str = ""


def choices(rules: RuleSet, tool: str, arguments: dict[str, Any]) -> Iterator[Choice]:
    """Yield the choice for every rule, in order, for a call of `tool`."""
    first: Rule | None = None
    every = [rule for file in rules.files for rule in file.rules]
    for rule in (*every, *((rules.otherwise,) if rules.otherwise else ())):
        if not rule.covers(tool):
            yield Choice(rule, False, f"it is for {', '.join(rule.tools)}")
            continue
        if first is not None:
            yield Choice(rule, False, f"{first.name} comes first")
            continue
        try:
            applies = rule.applies(arguments)
        except Refusal as error:
            yield Choice(rule, False, f"`when` failed: {error}")
            if rule.failure_policy.protects:
                # The call is refused; no later rule is tried.
                first = rule
            continue
        if applies:
            first = rule
            yield Choice(rule, True)
        elif rule.when is not None:
            yield Choice(rule, False, f"`when` is not true of the arguments: {rule.when.text}")


def applying(rules: RuleSet, tool: str, arguments: dict[str, Any]) -> Rule | None:
    """Return the rule that applies to a call; None if none does."""
    applicable = (choice.rule for choice in choices(rules, tool, arguments) if choice.applies)
    return next(applicable, None)
