"""Facts of the server and the client decide which rules hold."""

import tracemalloc

import pytest
from mcp_abridge.ruleset.rule import RuleSet
from mcp_abridge.session.active_rules import ActiveRules

from tests.builders import rules


@pytest.mark.fault(46, "inside")
def test_long_names_are_stored_in_part_and_their_plans_not_at_all() -> None:
    peers: list[tuple[str | None, str | None]] = []

    def select(server: str | None, client: str | None) -> RuleSet:
        peers.append((server, client))
        return rules("- {name: all, tools: '*', response: [{drop: a}]}")

    active = ActiveRules(select, print)
    active.rename(server="s" * 1_000_000, client="c" * 1_000_000)
    active.select()
    assert peers == [("s" * 200, "c" * 200)]
    active.rename(server="s" * 1_000_000, client="c" * 200)
    active.select()
    assert len(peers) == 2
    name = "t" * 1_000_000
    assert [rule.name for rule, _ in active.covering(name).plans] == ["all"]
    tracemalloc.start()
    for number in range(100):
        active.covering(f"{number}{name}")
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert memory < 2_000_000
