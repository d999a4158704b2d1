"""What guards decide is noted, and nothing else is changed by that."""

from collections.abc import Mapping
from typing import ClassVar

import pytest
from msgspec import Struct
from msgspec.structs import replace

from proxy.ruleset.guard import Allow, Decision, Query, QueryResult
from proxy.ruleset.rule import Rule, RuleFile, RuleSet
from proxy.testing.decisions import Decided, recording_guards
from proxy.transforms.base import Call, Parameter, Warned
from tests.given import rule


class Careful(Struct, frozen=True):
    name: ClassVar[str] = "careful"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {"force": Parameter({"type": "boolean"})}

    def __call__(self, call: Call, result: QueryResult | None) -> Decision:
        if call.argument("fails"):
            raise ValueError("no")
        call.warn("asked", "first")
        return Query("may") if result is None else Allow()


def watching(note: list[Decided], *rules: Rule) -> tuple[Rule, ...]:
    file = RuleFile(name="rules.yaml", rules=rules)
    [watched_file] = recording_guards(RuleSet((file,)), note.append).files
    return watched_file.rules


def test_each_decision_is_noted_with_what_the_guard_was_given_and_said() -> None:
    noted: list[Decided] = []
    [watched_rule] = watching(noted, replace(rule("tools: a"), guard=Careful()))
    assert watched_rule.guard is not None
    yes = QueryResult("yes")

    assert watched_rule.guard(Call("a", warnings=[]), None) == Query("may")
    assert watched_rule.guard(Call("a", warnings=[]), yes) == Allow()
    with pytest.raises(ValueError, match="no"):
        watched_rule.guard(Call("a", {"fails": True}, warnings=[]), None)

    warned = (Warned("asked", "first"),)
    assert noted == [
        Decided("careful", None, Query("may"), warned),
        Decided("careful", yes, Allow(), warned),
        Decided("careful", None, None, ()),
    ]


def test_a_watched_guard_is_as_its_own_and_other_rules_stay() -> None:
    plain = rule("tools: b")
    watched_rule, other = watching([], replace(rule("tools: a"), guard=Careful()), plain)

    assert watched_rule.guard is not None
    assert watched_rule.guard.name == "careful"
    assert watched_rule.guard.parameters == Careful.parameters
    assert other is plain
