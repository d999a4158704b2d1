"""Recorded exchanges, in every form in which a file may hold one."""

import json
from typing import Any

import pytest
from mcp_abridge.replay import exchanges
from mcp_abridge.replay.exchanges import ExchangeError

from tests.builders import answer, call, line, tool_result

REQUEST, RESPONSE = call("t", {"x": 1}, id=7), answer(tool_result("a"), 7)
RECORDED = {"server": "s", "request": REQUEST.decode(), "response": RESPONSE.decode()}


def recorded(value: Any, *more: Any) -> exchanges.RecordedExchange:
    return exchanges.recorded(json.dumps(value, indent=2).encode(), *more)


def test_recorded_lines_are_used_unchanged() -> None:
    response = '{ "jsonrpc":"2.0", "id" :7, "result":{"content":[], "x":1e400} }'
    result = recorded({**RECORDED, "response": response + "\n"})
    assert (result.tool, result.arguments) == ("t", {"x": 1})
    assert (result.request, result.response) == (REQUEST, response.encode())


def test_recorded_messages_are_written_on_one_line() -> None:
    whole = recorded({"request": json.loads(REQUEST), "response": json.loads(RESPONSE)})
    alone = recorded(json.loads(RESPONSE), "u")

    for result, request in ((whole, REQUEST), (alone, call("u", {}, id=7))):
        assert b"\n" not in result.request + result.response
        assert json.loads(result.request) == json.loads(request)
        assert json.loads(result.response) == json.loads(RESPONSE)


def test_another_tool_and_other_arguments_take_the_place_of_the_recorded_ones() -> None:
    result = recorded(RECORDED, "u", {"y": 2})

    assert (result.tool, result.arguments) == ("u", {"y": 2})
    assert json.loads(result.request) == json.loads(call("u", {"y": 2}, id=7))
    assert result.response == RESPONSE


@pytest.mark.parametrize(
    "result", [tool_result("a"), {"content": []}, {"structuredContent": {"a": 1}}]
)
def test_a_result_alone_is_put_into_a_response(result: dict[str, Any]) -> None:
    response = {"jsonrpc": "2.0", "id": 1, "result": result}
    assert json.loads(recorded(result, "u").response) == response


@pytest.mark.parametrize("text", ['{"content": "a text"}', '{"content": [{"a": 1}]}', "[1,\n 2]"])
def test_any_other_json_is_the_text_of_a_result(text: str) -> None:
    result = exchanges.recorded(text.encode(), "u", {"y": 1})

    assert json.loads(result.response)["result"] == tool_result(text)
    assert result.arguments == {"y": 1}


def test_input_without_a_call_is_refused_with_a_reason() -> None:
    tools = line(id=1, method="tools/list").decode()
    nameless = REQUEST.decode().replace('"t"', "5")
    for value, message in (
        (tool_result("a"), "no call is recorded here; name its tool: --tool, or tool in a test"),
        ({**RECORDED, "request": tools}, "the recorded request is 'tools/list', not 'tools/call'"),
        ({**RECORDED, "request": nameless}, "the recorded request names no tool, or its arguments"),
        ({**RECORDED, "request": "{"}, "the recorded request cannot be read: not JSON: "),
    ):
        with pytest.raises(ExchangeError, match=f"^{message}"):
            recorded(value)
