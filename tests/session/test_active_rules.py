"""Facts of the server and the client decide which rules hold."""

import tracemalloc

import pytest
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.ruleset.selection import Selection
from mcp_abridge.session.active_rules import ActiveRules

from tests.builders import file, rules


@pytest.mark.fault(46, "inside")
def test_long_names_are_stored_in_part_and_their_plans_not_at_all() -> None:
    peers: list[tuple[str | None, ...]] = []

    def select(*names: str | None) -> RuleSet:
        peers.append(names)
        return rules("- {name: all, tools: '*', response: [{drop: a}]}")

    active = ActiveRules(select, print)
    active.rename(server="s" * 1_000_000, client="c" * 1_000_000, version="v" * 1_000_000)
    active.select()
    assert peers == [("s" * 200, "c" * 200, "v" * 200)]
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


def test_a_file_that_stays_in_force_keeps_its_place_before_and_behind_others() -> None:
    wide = file("version: 1\nrules: [{tools: '*', response: [{drop: a}]}]")
    bank = file("version: 1\nserver: {name: bank}\nrules: [{tools: erase, hide: true}]")
    for files, hidden in (((bank, wide), True), ((wide, bank), False)):
        active = ActiveRules(Selection(files, "off", print), print)
        for name in ("bank", "bank2"):
            active.rename(server=name)
            active.select()
            assert (active.covering("erase").hidden_error is not None) is hidden, name
            assert active.guards


def test_a_name_or_a_list_that_came_before_the_first_call_counts() -> None:
    bank = file(
        "version: 1\nserver: {name: bank, tools: [pay]}\nrules: [{tools: erase, hide: true}]"
    )
    facts = {
        "names": [("bank", {"pay"}), ("bank2", {"pay"})],
        "tools": [("bank", {"pay"}), ("bank", {"erase"})],
    }
    for change, steps in facts.items():
        active = ActiveRules(Selection((bank,), "off", print), print)
        for name, tools in steps:
            active.rename(server=name)
            active.offer(frozenset(tools))
        active.select()
        assert active.covering("erase").hidden_error is not None, change
    never = ActiveRules(Selection((bank,), "off", print), print)
    never.rename(server="bank")
    never.offer(frozenset({"erase"}))
    never.select()
    assert never.covering("erase").hidden_error is None
