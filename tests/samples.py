"""Rules and answers that the tests of a session share, and how they ask for a list of tools."""

import json
from typing import Any

from tests.builders import answer, call, document, line, result, rules, texts
from tests.talk import Talk

PAGES = rules("- {name: pages, tools: list, response: [{paginate: {at: items, limit: 2}}]}")
ITEMS = document({"items": [1, 2, 3, 4, 5]})
DROP = rules("- {name: drop, tools: get, response: [{drop: secret}]}")
SECRET = document({"a": 1, "secret": 2})
HIDE = rules("- {tools: [gone], hide: true}")
BOUND = rules("- {name: bound, tools: get, max_bytes: 1000}")


def listing(*tools: dict[str, Any], id: Any = 99) -> bytes:
    return answer({"tools": [{"inputSchema": {"type": "object"}, **tool} for tool in tools]}, id)


def list_tools(talk: Talk, *tools: dict[str, Any]) -> list[dict[str, Any]]:
    """List the tools; return those that the client gets."""
    raw = talk.exchange(line(id=99, method="tools/list"), listing(*tools))
    edited: list[dict[str, Any]] = result(raw)["tools"]
    return edited


def own(*names: str) -> dict[str, Any]:
    """Return a tool `list` with arguments of its own."""
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    return {"name": "list", "inputSchema": schema}


def last_arguments(talk: Talk) -> dict[str, Any]:
    """Return the arguments of the last call that the server got."""
    arguments: dict[str, Any] = json.loads(talk.to_server[-1])["params"].get("arguments", {})
    return arguments


def items(raw: bytes) -> Any:
    return json.loads(texts(raw)[0])["items"]


ABS = "- {name: abs, tools: [get, put], response: [{jmespath: 'abs(a)'}]}"
ABS_PAGES = """
- name: r
  tools: list
  response: [{jmespath: {at: n, expression: abs(@)}}, {paginate: {at: items, limit: 2}}]
"""
FITS, FAILS = answer(document({"a": -1})), answer(document({"a": "text"}))


def after(talk: Talk, *responses: bytes) -> list[bytes]:
    """Make a call for each response; return the responses that the client gets."""
    return [talk.exchange(call("get"), raw) for raw in responses]
