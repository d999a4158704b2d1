"""Record the decisions of the guards of a rule set."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from proxy.ruleset.guard import Decision, Guard, QueryResult
from proxy.ruleset.rule import Rule, RuleSet
from proxy.transforms.base import Call, Parameter, Warned


class Decided(Struct, frozen=True):
    """One decision of the guard `name`; None if it raised an exception.

    `result` is the query result that it received, and `warnings` are its warnings.
    """

    name: str
    result: QueryResult | None
    decision: Decision | None
    warnings: tuple[Warned, ...]


class _Watched(Struct, frozen=True):
    """A guard whose decisions are recorded."""

    shorthand: ClassVar[str | None] = None

    guard: Guard
    note: Callable[[Decided], None]

    @property
    def name(self) -> str:
        return self.guard.name

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return self.guard.parameters

    def __call__(self, call: Call, result: QueryResult | None) -> Decision:
        decision: Decision | None = None
        try:
            decision = self.guard(call, result)
        finally:
            self.note(Decided(self.name, result, decision, tuple(call.warnings)))
        return decision


def recording_guards(rules: RuleSet, note: Callable[[Decided], None]) -> RuleSet:
    """Return `rules` with guards that decide the same and pass each decision to `note`."""

    def of(rule: Rule) -> Rule:
        if rule.guard is None:
            return rule
        guard: Any = _Watched(rule.guard, note)
        return replace(rule, guard=guard)

    files = tuple(replace(file, rules=tuple(map(of, file.rules))) for file in rules.files)
    return replace(rules, files=files)
