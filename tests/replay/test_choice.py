"""Which rule applies to a call, and why the others do not."""

from typing import Any

from mcp_abridge.replay.choice import choices
from mcp_abridge.ruleset.rule_set import RuleSet

from tests.builders import rules


def verdicts(ruleset: RuleSet, tool: str, arguments: dict[str, Any]) -> dict[str, str]:
    return {rule.name: reason or "applies" for rule, reason in choices(ruleset, tool, arguments)}


def test_a_condition_that_fails_is_no_match() -> None:
    ruleset = rules("- {name: a, tools: get, when: 'length(n) > `1`'}\n- {name: b, tools: get}")
    reasons = verdicts(ruleset, "get", {"n": 5})
    assert (reasons["a"].startswith("`when` failed: "), reasons["b"]) == (True, "applies")


def test_a_rule_that_protects_stops_the_search_if_its_condition_fails() -> None:
    ruleset = rules(
        """
        - {name: a, tools: get, when: 'length(n) > `1`', on_failure: refuse}
        - {name: b, tools: get}
        """
    )

    assert verdicts(ruleset, "get", {"n": 5})["b"] == "a comes first"
