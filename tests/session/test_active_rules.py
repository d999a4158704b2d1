"""What a session learns of its server and client decides which rules hold."""

import tracemalloc

import pytest

from proxy.ruleset.rule import EMPTY, RuleSet
from proxy.session.active_rules import ActiveRules, PeerInfo
from proxy.session.tools.definitions import ToolFacts
from tests.given import file, rules

DROP = rules("- {name: drop, tools: get, response: [{drop: a}]}")


def standing(made: RuleSet = DROP, log: list[str] | None = None) -> ActiveRules:
    return ActiveRules(lambda *_: made, ([] if log is None else log).append)


def test_rules_are_asked_for_by_the_names_that_are_known() -> None:
    asked: list[tuple[str | None, str | None]] = []

    def given(server: str | None, client: str | None) -> RuleSet:
        asked.append((server, client))
        return EMPTY

    renamed: list[tuple[str | None, str | None]] = []
    made = ActiveRules(given, print, lambda *names: renamed.append(names))
    made.now()
    made.named(server="s")
    made.named(client="c")
    made.named(client="c", server="s")
    assert renamed == [("s", None), ("s", "c")]
    made.now()
    assert asked == [(None, None), ("s", "c")]


def test_a_file_for_a_server_with_other_tools_does_not_hold() -> None:
    log: list[str] = []
    text = "version: 1\nserver: {tools: [other]}\nrules: [{tools: get, response: [{drop: a}]}]"
    made = standing(RuleSet((file(text),)), log)
    assert [rule.name for rule, _ in made.covering("get")] == ["get"]
    made.offers(frozenset({"get"}))
    made.now()
    assert made.covering("get") == ()
    assert log == ["rules.yaml: this server has other tools; none of its rules apply"]


def test_other_rules_than_before_are_outdated_news() -> None:
    current = [EMPTY]
    made = ActiveRules(lambda *_: current[0], print)
    made.now()
    assert not made.outdated
    current[0] = DROP
    assert [rule.name for rule, _ in (made.now(), made.covering("get"))[1]] == ["drop"]
    assert made.outdated


def test_the_arguments_of_a_tool_decide_on_the_names_of_ours() -> None:
    made = standing(rules("- {tools: list, response: [{paginate: {at: items}}]}"))
    [(_, plan)] = made.covering("list")
    assert plan.names == {}
    made.learn({"list": ToolFacts(frozenset({"limit"}))})
    [(_, plan)] = made.covering("list")
    assert plan.names == {"limit": "page_limit"}
    assert made.seen("list") == ToolFacts(frozenset({"limit"}))


def test_a_tool_that_was_not_listed_has_the_arguments_that_a_call_implies() -> None:
    made = standing(rules("- {tools: list, response: [{paginate: {at: items}}]}"))
    [(_, plan)] = made.guessed("list", frozenset({"offset"}))
    assert plan.names == {"offset": "page_offset"}


def test_what_one_session_knows_another_goes_on_with() -> None:
    one, other = standing(), standing()
    one.named(server="s", client="c")
    one.offers(frozenset({"get"}))
    one.learn({"get": ToolFacts(reads_only=True)})
    other.recall(one.known)
    assert other.known == one.known == PeerInfo("s", "c", frozenset({"get"}), one.known.seen, {})
    assert other.listed


def test_what_hides_a_tool_is_found() -> None:
    made = standing(rules("- {name: gone, tools: [secret], hide: true}"))
    hiding, hidden = made.hiding("secret")
    assert hiding is not None
    assert hidden is not None
    assert (hiding.name, hidden.code) == ("gone", -32602)
    assert made.hiding("get") == (None, None)
    assert made.guarded("secret")
    assert made.guards


def test_what_makes_snapshots_untrue_is_found() -> None:
    paged = "{paginate: {at: items, drop_on: [write]}}"
    made = standing(rules(f"- {{name: pages, tools: list, response: [{paged}]}}"))
    made.now()
    assert made.dropped_by("write") == ("pages",)
    assert made.dropped_by("list") == ()


@pytest.mark.fault(46, "inside")
def test_names_without_an_end_are_kept_in_part_and_their_plans_not_at_all() -> None:
    asked: list[tuple[str | None, str | None]] = []

    def given(server: str | None, client: str | None) -> RuleSet:
        asked.append((server, client))
        return rules("- {name: all, tools: '*', response: [{drop: a}]}")

    made = ActiveRules(given, print)
    made.named(server="s" * 1_000_000, client="c" * 1_000_000)
    made.now()
    assert asked == [("s" * 200, "c" * 200)]
    made.named(server="s" * 1_000_000, client="c" * 200)
    made.now()
    assert len(asked) == 2
    name = "t" * 1_000_000
    assert [rule.name for rule, _ in made.covering(name)] == ["all"]
    assert [rule.name for rule, _ in made.guessed(name, frozenset({"limit"}))] == ["all"]
    assert made.known.implied == {}
    tracemalloc.start()
    for number in range(100):
        made.covering(f"{number}{name}")
        made.guessed(f"{number}{name}", frozenset({"limit"}))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2_000_000


def test_sessions_that_are_told_the_same_share_what_they_know() -> None:
    one, other = standing(), standing()
    for each in (one, other):
        each.learn({"list": ToolFacts(frozenset({"limit", "".join(("off", "set"))}))})
        each.offers(frozenset({"list", "".join(("g", "et"))}))
    assert one.seen("list") is other.seen("list")
    assert one.known.tools is other.known.tools
