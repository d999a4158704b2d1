"""Lists of tools by the rules, and notifications that they have changed."""

from typing import Any

import pytest
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet
from mcp_abridge.session.tool_lists import ToolListHistory
from mcp_abridge.storage.meter import Definitions
from msgspec import Raw
from msgspec.json import encode

from tests.builders import EMPTY, answer, call, file, line, texts
from tests.samples import HIDE, ITEMS, PAGES, SECRET, items, last_arguments, list_tools, own
from tests.talk import Talk
from tests.tool_list import tool
from tests.transports.steps import FailingStep


@pytest.mark.parametrize(
    "result",
    [None, [], {}, {"tools": 5}, {"tools": [5]}, {"tools": [{"name": "get", "inputSchema": 5}]}],
)
def test_a_malformed_tool_list_passes_unchanged(result: Any) -> None:
    raw = line(id=99, result=result)

    assert Talk(PAGES).exchange(line(id=99, method="tools/list"), raw) == raw


HEAD = "version: 1\nserver: {tools: [list, get]}\n"
SOME = RuleSet((file(HEAD + "rules: [{tools: get, response: [{drop: secret}]}]"),))


def test_rules_for_a_server_with_other_tools_end_with_the_tool_list() -> None:
    talk = Talk(SOME)
    dropped = talk.exchange(call("get"), answer(SECRET))
    assert "secret" not in texts(dropped)[0]

    list_tools(talk, {"name": "get"})
    assert talk.exchange(call("get"), answer(SECRET)) == answer(SECRET)
    misfit = "it is for a server with the tool 'list', which this one lacks"
    assert talk.log == [f"rules.yaml: {misfit}; none of its rules apply"]

    list_tools(talk, {"name": "get"}, {"name": "list"})
    assert "secret" not in texts(talk.exchange(call("get"), answer(SECRET)))[0]


def test_one_page_of_a_tool_list_does_not_end_the_rules_for_other_tools() -> None:
    talk = Talk(SOME)
    first = answer({"tools": [{"name": "get"}], "nextCursor": "2"}, 99)
    talk.exchange(line(id=99, method="tools/list"), first)
    last = answer({"tools": [{"name": "other"}]}, 98)
    talk.exchange(line(id=98, method="tools/list", params={"cursor": "2"}), last)

    assert "secret" not in texts(talk.exchange(call("get"), answer(SECRET)))[0]


def test_arguments_stay_prefixed_until_the_next_tool_list() -> None:
    talk = Talk(PAGES)
    list_tools(talk, own("limit"))

    talk.server(line(method="notifications/tools/list_changed"))
    talk.client(call("list", {"limit": 7, "page_limit": 3}))
    assert last_arguments(talk) == {"limit": 7}

    list_tools(talk, own())
    talk.client(call("list", {"limit": 3}))
    assert last_arguments(talk) == {}


def test_a_prefixed_argument_is_recognised_before_the_tools_are_listed() -> None:
    talk = Talk(PAGES)

    first = talk.exchange(call("list", {"limit": 9, "page_limit": 3}), answer(ITEMS))

    assert last_arguments(talk) == {"limit": 9}
    assert items(first) == [1, 2, 3]
    assert items(talk.replied(call("list", {"limit": 9, "page_offset": 3}, id=2))) == [4, 5]


CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
CAPABLE = answer({"serverInfo": {"name": "s"}, "capabilities": {"tools": {"listChanged": True}}})


def introduced(ruleset: RuleSet, response: bytes = CAPABLE) -> Talk:
    """Return a talk in which the server was introduced and its tools were listed."""
    talk = Talk(ruleset)
    talk.exchange(line(id=1, method="initialize"), response)
    list_tools(talk, own(), {"name": "gone"})
    return talk


LONG_TOOL = {"name": "long", "description": "x" * 300_000}


@pytest.mark.parametrize("more", [{}, LONG_TOOL])
def test_a_list_that_a_step_fails_on_goes_out_as_it_came_unless_a_tool_is_hidden(
    more: dict[str, Any],
) -> None:
    unsure = Rule(name="r", tools=("list",), pipeline=(FailingStep("tell"),))
    tools = {"tools": [{**own(), "outputSchema": {"type": "object"}}, {"name": "gone"}, more]}
    for others, closed in ((), False), (HIDE.files, True):
        talk = Talk(RuleSet((RuleFile(name="r.yaml", rules=(unsure,)), *others)))
        response = talk.exchange(line(id=1, method="tools/list"), answer(tools, 1))
        assert (response == answer(tools, 1)) is not closed
        assert ("KeyError: 'no such thing'" in response.decode()) is closed
        assert any("KeyError: 'no such thing'" in entry for entry in talk.log)


@pytest.mark.fault(43, "inside")
def test_a_client_is_not_notified_if_the_server_does_not_declare_list_changed() -> None:
    talk = introduced(EMPTY, answer({"serverInfo": {"name": "s"}, "capabilities": {"tools": {}}}))
    talk.rules = HIDE
    talk.client(call("list", {}, id=2))
    assert CHANGED not in talk.to_client


def test_after_a_rest_a_client_is_notified_only_if_its_tool_list_differs() -> None:
    for now, notifications in (EMPTY, []), (HIDE, [CHANGED]):
        talk = introduced(EMPTY)
        talk.session.rest()
        talk.rules = now
        before = len(talk.to_client)
        talk.client(call("list", {}, id=2))
        assert talk.to_client[before:] == notifications


def test_the_stored_part_of_a_tool_list_is_bounded() -> None:
    tool_list = ToolListHistory()
    for number in range(100):
        page = Raw(b'"%d%s"' % (number, b"x" * 100_000))
        tool_list.record(page, None, next_page=number > 0)
    assert sum(map(len, tool_list._pages)) <= 4 << 20
    assert tool_list.differs(lambda _: None), "what is not stored counts as changed"


def test_the_first_list_of_a_session_is_counted_page_by_page() -> None:
    talk = Talk(PAGES)
    pages: list[dict[str, Any]] = [{"tools": [tool()], "nextCursor": "2"}, {"tools": [tool()]}]
    for _ in range(2):
        for number, page in enumerate(pages):
            params = {"cursor": "2"} if number else {}
            request = line(id=number, method="tools/list", params=params)
            talk.exchange(request, answer(page, number))
    [counted] = talk.meter.drain(Definitions)
    assert (counted.sessions, counted.before) == (1, sum(len(encode(page)) for page in pages))
    assert counted.after > counted.before
