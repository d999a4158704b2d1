"""What a session learns of its server and client decides which rules hold."""

import tracemalloc

import pytest

from proxy.ruleset.rule import RuleSet
from proxy.session.active_rules import ActiveRules
from proxy.session.tools.definitions import ToolFacts
from tests.given import rules

DROP = rules("- {name: drop, tools: get, response: [{drop: a}]}")


def standing(made: RuleSet = DROP, log: list[str] | None = None) -> ActiveRules:
    return ActiveRules(lambda *_: made, ([] if log is None else log).append)


@pytest.mark.fault(46, "inside")
def test_names_without_an_end_are_kept_in_part_and_their_plans_not_at_all() -> None:
    asked: list[tuple[str | None, str | None]] = []

    def given(server: str | None, client: str | None) -> RuleSet:
        asked.append((server, client))
        return rules("- {name: all, tools: '*', response: [{drop: a}]}")

    made = ActiveRules(given, print)
    made.rename(server="s" * 1_000_000, client="c" * 1_000_000)
    made.now()
    assert asked == [("s" * 200, "c" * 200)]
    made.rename(server="s" * 1_000_000, client="c" * 200)
    made.now()
    assert len(asked) == 2
    name = "t" * 1_000_000
    assert [rule.name for rule, _ in made.covering(name).plans] == ["all"]
    tracemalloc.start()
    for number in range(100):
        made.covering(f"{number}{name}")
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2_000_000


def test_sessions_that_are_told_the_same_share_what_they_know() -> None:
    one, other = standing(), standing()
    for each in (one, other):
        each.learn({"list": ToolFacts(frozenset({"limit", "".join(("off", "set"))}))})
        each.offer(frozenset({"list", "".join(("g", "et"))}))
    assert one.facts("list") is other.facts("list")
    assert one.peer_info.tools is other.peer_info.tools
