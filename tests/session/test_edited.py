"""A list of tools as a client gets it by some rules, made without the session."""

from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from proxy.document.tree import encode
from proxy.ruleset.rule import Rule, RuleFile, RuleSet
from proxy.session.tool_lists import RewrittenToolList, edit
from proxy.session.tools.definitions import ToolFacts
from tests.given import rule, rules
from tests.tool_list import PAGES, listed, tool
from tests.transports.steps import Unsure


def given(*tools: Any) -> Raw:
    return Raw(encode({"tools": list(tools)}))


def of(made: Rule) -> RuleSet:
    return RuleSet((RuleFile(name="r.yaml", rules=(made,)),))


def test_a_list_is_edited_as_definitions_are() -> None:
    found = edit(given(tool(), tool("other")), rules(PAGES))

    assert found.result == listed(PAGES, tool(), tool("other")).raw
    assert found.seen == {"list": ToolFacts(), "other": ToolFacts()}
    assert (found.said, found.error) == ((), None)


def test_a_list_that_no_rule_is_for_stays_as_it_came() -> None:
    raw = given(tool("other"))
    assert edit(raw, rules(PAGES)) == RewrittenToolList(raw, seen={"other": ToolFacts()})


def test_what_is_to_be_logged_is_kept() -> None:
    asked = replace(rule("output_schema: {type: object}"), tools=("list",))
    [said] = edit(given(tool(outputSchema=5)), of(asked)).said

    assert said == "list: its outputSchema cannot be read, and is left as it is"


def test_a_step_that_fails_on_a_schema_is_told_and_nothing_is_raised() -> None:
    made = Rule(name="r", tools=("*",), pipeline=(Unsure("tell"),))
    raw = given(tool(outputSchema={"type": "object"}))
    found = edit(raw, of(made))

    assert (found.given, found.result) == (raw, None)
    assert isinstance(found.error, KeyError)
