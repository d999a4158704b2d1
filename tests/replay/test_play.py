"""One call replayed: the first call before a later page, what the server saw, what came back."""

import json
from typing import Any, ClassVar

from mcp_abridge.query.call import Call
from mcp_abridge.replay.exchanges import RecordedExchange, make, text_result
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.guard import QueryResult, Respond
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.session.tools.definitions import ToolFacts
from msgspec import Struct
from msgspec.structs import replace

from tests.builders import rules, texts

PAGES = rules(
    "- {name: pages, tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [delete]}}]}"
)
ITEMS = {"items": [1, 2, 3, 4, 5]}


def exchange(**arguments: object) -> RecordedExchange:
    return make("list", arguments, text_result(json.dumps(ITEMS)))


class _Blocked(Struct, frozen=True):
    name: ClassVar[str] = "blocked"
    parameters: ClassVar[dict[str, Any]] = {}

    def __call__(self, call: Call, result: QueryResult | None) -> Respond:
        return Respond({"status": "blocked"})


def test_the_answer_of_a_guard_is_structured_as_in_a_session_that_knows_no_tools() -> None:
    [rule] = PAGES.files[0].rules
    guarded = RuleSet((replace(PAGES.files[0], rules=(replace(rule, guard=_Blocked()),)),))
    result = json.loads(Replay(guarded, exchange()).answer.line)["result"]
    assert result["structuredContent"] == {"status": "blocked"}


def items(raw: bytes) -> Any:
    return json.loads(texts(raw)[0])["items"]


def test_the_same_call_can_be_replayed_with_another_rule_in_place_of_the_one_that_applied() -> None:
    play = Replay(PAGES, exchange(offset=4))
    assert play.applied is not None

    again = play.again(replace(play.applied, pipeline=()))

    assert items(again.answer.line) == [1, 2, 3, 4, 5]
    assert (items(play.answer.line), again.calls) == ([5], [{"offset": 4}])


def test_with_the_facts_of_the_tool_its_own_arguments_are_not_those_of_the_rule() -> None:
    call = exchange(limit=99, offset=3, page_offset=4)
    play = Replay(PAGES, call, facts=ToolFacts(frozenset({"limit", "offset"})))

    assert (items(play.answer.line), play.calls) == ([5], [{"limit": 99, "offset": 3}])
    assert play.applied is not None
    assert items(play.again(play.applied).answer.line) == [5]
