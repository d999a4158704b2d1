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
    made.rename(server="s")
    made.rename(client="c")
    made.rename(client="c", server="s")
    assert renamed == [("s", None), ("s", "c")]
    made.now()
    assert asked == [(None, None), ("s", "c")]


def test_a_file_for_a_server_with_other_tools_does_not_hold() -> None:
    log: list[str] = []
    text = "version: 1\nserver: {tools: [other]}\nrules: [{tools: get, response: [{drop: a}]}]"
    made = standing(RuleSet((file(text),)), log)
    assert [rule.name for rule, _ in made.covering("get").plans] == ["get"]
    made.offer(frozenset({"get"}))
    made.now()
    assert made.covering("get").plans == ()
    assert log == ["rules.yaml: this server has other tools; none of its rules apply"]


def test_other_rules_than_before_are_outdated_news() -> None:
    current = [EMPTY]
    made = ActiveRules(lambda *_: current[0], print)
    made.now()
    assert not made.outdated
    current[0] = DROP
    assert [rule.name for rule, _ in (made.now(), made.covering("get").plans)[1]] == ["drop"]
    assert made.outdated


def test_the_arguments_of_a_tool_decide_on_the_names_of_ours() -> None:
    made = standing(rules("- {tools: list, response: [{paginate: {at: items}}]}"))
    [(_, plan)] = made.covering("list").plans
    assert plan.names == {}
    made.learn({"list": ToolFacts(frozenset({"limit"}))})
    [(_, plan)] = made.covering("list").plans
    assert plan.names == {"limit": "page_limit"}
    assert made.facts("list") == ToolFacts(frozenset({"limit"}))


def test_a_tool_that_was_not_listed_has_the_arguments_that_a_call_implies() -> None:
    made = standing(rules("- {tools: list, response: [{paginate: {at: items}}]}"))
    [(_, plan)] = made.unlisted("list", frozenset({"offset"})).plans
    assert plan.names == {"offset": "page_offset"}


def test_what_one_session_knows_another_goes_on_with() -> None:
    one, other = standing(), standing()
    one.rename(server="s", client="c")
    one.offer(frozenset({"get"}))
    one.learn({"get": ToolFacts(reads_only=True)})
    other.recall(one.peer_info)
    assert (
        other.peer_info
        == one.peer_info
        == PeerInfo("s", "c", frozenset({"get"}), one.peer_info.facts, {})
    )
    assert other.listed


def test_what_hides_a_tool_is_found() -> None:
    made = standing(rules("- {name: gone, tools: [secret], hide: true}"))
    secret, get = made.covering("secret"), made.covering("get")
    assert secret.hiding is not None
    assert secret.hidden_error is not None
    assert (secret.hiding.name, secret.hidden_error.code, secret.guarded) == ("gone", -32602, True)
    assert (get.hiding, get.hidden_error, get.guarded) == (None, None, False)
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
    made.rename(server="s" * 1_000_000, client="c" * 1_000_000)
    made.now()
    assert asked == [("s" * 200, "c" * 200)]
    made.rename(server="s" * 1_000_000, client="c" * 200)
    made.now()
    assert len(asked) == 2
    name = "t" * 1_000_000
    assert [rule.name for rule, _ in made.covering(name).plans] == ["all"]
    assert [rule.name for rule, _ in made.unlisted(name, frozenset({"limit"})).plans] == ["all"]
    assert made.peer_info.implied == {}
    tracemalloc.start()
    for number in range(100):
        made.covering(f"{number}{name}")
        made.unlisted(f"{number}{name}", frozenset({"limit"}))
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
