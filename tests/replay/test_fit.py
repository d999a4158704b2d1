"""How rules fit recorded answers: paths that match nothing, members that nobody knows."""

from typing import Any

from mcp_abridge.replay.differences import to_json
from mcp_abridge.replay.exchanges import make, text_result
from mcp_abridge.replay.fit import RuleFit
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.rule_set import RuleSet

from tests.builders import file

RULE = """
version: 1
rules:
  - tools: list
    name: short
    response: [{keep: [items.id, items.user.login, total]}, {drop: [items.url_*]}]
    tests:
      - {given: {items: [{id: 1, body: b}], pages: {"a1": {x: 1}}}, expect: {items: [{id: 1}]}}
"""


def fit(*documents: Any, text: str = RULE, error: bool = False) -> RuleFit:
    rules = file(text)
    rule = RuleFit(rules.rules[0], rules)
    for number, document in enumerate(documents):
        result = text_result(to_json(document).decode(), **({"isError": True} if error else {}))
        rule.add(f"{number}.json", Replay(RuleSet((rules,)), make("list", {}, result)))
    return rule


def rot(*documents: Any, **more: Any) -> list[str]:
    return [each["reason"] for each in fit(*documents, **more).rot()]


def test_a_path_is_rotten_if_it_matches_in_no_answer() -> None:
    first = {"items": [{"id": 1}], "total": 1}
    second = {"items": [{"id": 2, "user": {"login": "a"}}]}
    drop = "items.url_* matches nothing"
    assert rot(first) == [drop, "items.user.login matches nothing"]
    assert rot(first, second) == [drop]
    # An empty list excuses what would be in it, an error all.
    assert rot({"items": [], "total": 0}) == []
    assert rot({"items": []}, error=True) == rot() == []


def test_a_rule_that_fits_no_answer_is_rotten() -> None:
    [reason] = rot({"data": []}, {"data": [{"id": 1}]})
    assert "left as it came: no items.id" in reason
    assert len(rot({"data": []}, {"items": [{"id": 1}]})) == 3


def test_a_member_that_neither_the_rule_nor_its_tests_have_is_new() -> None:
    for document, members in (
        ({"items": [{"id": 1, "body": "x", "url_api": "named to be dropped"}], "total": 1}, []),
        ({"items": [{"id": 1, "new": {"deep": 1}}, {"newer": 2}]}, ["items.new", "items.newer"]),
        ({"items": [{"id": 1}], "pages": {"b2": {"x": 2}, "c3": {"y": 2}}}, ["pages.*.y"]),
    ):
        assert [each["member"] for each in fit(document).drift()] == members
    # A rule without tests knows no members.
    untested = RULE.partition("    tests:")[0]
    assert list(fit({"items": [{"id": 1, "new": 1}]}, text=untested).drift()) == []
