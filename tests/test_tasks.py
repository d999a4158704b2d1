"""Calls that a real server runs as tasks, on each road, by a client without an SDK."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.builders import line
from tests.callers.speech import Exchange, Source, Spoken, answer_in
from tests.faults.routes import META, stateless
from tests.faults.scale import scaled
from tests.faults.sidecar import Sidecar, post
from tests.wire import Wire
from tests.wrapped import wrapped

Json = dict[str, Any]
Send = Callable[..., Source]

SERVER = [sys.executable, str(Path(__file__).parent / "fixtures" / "task_server.py")]
STDIO, COMMAND, URL = "stdio", "serve -- command", "serve URL"
ROADS = (STDIO, COMMAND, URL)
SECONDS = 30.0
CAPABILITIES: Json = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
DECLARED = {**META, "io.modelcontextprotocol/clientCapabilities": CAPABILITIES}
RULES = "version: 1\nrules: [{tools: rows, name: r, response: [{drop: 'rows[].secret'}]}]\n"


class Client:
    """A client of 2026-07-28 whose tasks the server may begin; `say` sends a message."""

    def __init__(self, say: Callable[[Json], Source]) -> None:
        self._say = say
        self._ids = count(1)

    def ask(self, method: str, **params: Any) -> Json:
        """Return the result of a request."""
        result: Json = self.response(method, **params)["result"]
        return result

    def response(self, method: str, **params: Any) -> Json:
        id = next(self._ids)
        answer = answer_in([self._begin(id, method, params)], id, SECONDS)
        assert answer is not None
        return answer

    def call(self, tool: str, **arguments: Any) -> Json:
        return self.ask("tools/call", name=tool, arguments=arguments)

    def finish(self, task: str) -> Json:
        """Ask for a task until it is over; return its final state."""
        while (state := self.ask("tasks/get", taskId=task))["status"] == "working":
            pass
        return state

    def news(self, task: str) -> Json:
        """Listen for news of a task; return what the first says."""
        source = self._begin(
            next(self._ids), "subscriptions/listen", {"notifications": {"taskIds": [task]}}
        )
        while True:
            for each in source.messages():
                if each.get("method") == "notifications/tasks":
                    return dict(each["params"])
            assert source.read(SECONDS)

    def _begin(self, id: int, method: str, params: Json) -> Source:
        message = {"id": id, "method": method, "params": {**params, "_meta": DECLARED}}
        return self._say({"jsonrpc": "2.0", **message})


@contextmanager
def opened(road: str, *options: str) -> Iterator[Client]:
    options = ("--ledger", "off", *options)
    with ExitStack() as stack:
        if road == STDIO:
            wire = stack.enter_context(Wire(wrapped(SERVER, *options)))
            spoken = Spoken(wire)

            def write(message: Json) -> Source:
                wire.write(json.dumps(message).encode() + b"\n")
                return spoken

            yield Client(write)
            return
        upstream = ["--", *SERVER]
        if road == URL:
            bare = Sidecar("--ledger", "off", "--rules", "none", "--budget", "off", *upstream)
            upstream = [stack.enter_context(bare).url()]
        port = stack.enter_context(Sidecar(*options, *upstream)).port

        def send(message: Json) -> Source:
            params = message["params"]
            name = params.get("name") or params.get("taskId", "")
            lines = stateless(name, message["method"])
            exchange = Exchange(port, post(json.dumps(message).encode(), *lines))
            stack.callback(exchange.close)
            return exchange

        yield Client(send)


def text(result: Json) -> str:
    [block] = result["content"]
    return str(block["text"])


@pytest.mark.parametrize("road", ROADS)
def test_the_result_of_a_task_is_cut_as_the_answer_to_its_call(road: str) -> None:
    with opened(road) as client:
        client.ask("tools/list")
        handle = client.call("rows")
        assert (handle["resultType"], handle["status"]) == ("task", "working")
        task = handle["taskId"]
        state = client.finish(task)
        news = client.news(task)
        view = client.call("rows", view="rows[1999].id")

    assert (state["status"], state["taskId"], state["resultType"]) == (
        "completed",
        task,
        "complete",
    )
    assert len(text(state["result"])) < 8500
    assert "view=" in json.loads(text(state["result"]))["_abridged"]["more"]
    assert (news["status"], news["result"]) == ("completed", state["result"])
    # The answer that the task gave: the tool has run once.
    assert (json.loads(text(view)), view["resultType"]) == ({"view": 1999}, "complete")


@pytest.mark.parametrize("road", ROADS[: scaled(2, 3)])
def test_the_rule_of_a_task_s_tool_shapes_its_result(road: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    with opened(road, "--rules", str(rules), "--budget", "off") as client:
        state = client.finish(client.call("rows")["taskId"])
        [first, *_] = json.loads(text(state["result"]))["rows"]
        assert first.keys() == {"id", "run", "text"}
        other = client.finish(client.call("add_row")["taskId"])
        assert len(json.loads(text(other["result"]))["rows"]) == 2000


@pytest.mark.parametrize("road", ROADS[: scaled(2, 3)])
def test_a_task_of_an_earlier_session_has_the_budget_and_no_view(road: str) -> None:
    with opened(road) as client:
        client.response("tasks/get", taskId="7")
        state = client.ask("tasks/get", taskId="7")

    assert len(text(state["result"])) < 8500
    notes = json.loads(text(state["result"]))["_abridged"]
    assert "of 2000" in notes["rows"]
    assert "more" not in notes


def test_a_task_with_a_view_runs_and_the_view_is_cut_from_its_result() -> None:
    with Wire(wrapped(SERVER, "--ledger", "off")) as wire:

        def ask(id: int, method: str, **params: Any) -> Json:
            wire.write(line(id=id, method=method, params=params) + b"\n")
            response: Json = json.loads(wire.line())
            assert response["id"] == id
            return response

        def call(id: int, tool: str, **arguments: Any) -> Json:
            return ask(id, "tools/call", name=tool, arguments=arguments, task={"ttl": 60_000})

        ask(
            1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "x"}
        )
        ask(2, "tools/list")
        first = ask(3, "tasks/result", taskId=call(4, "rows")["result"]["task"]["taskId"])["result"]
        assert len(text(first)) < 8500
        again = call(5, "rows", view="rows[7].run")["result"]["task"]["taskId"]
        assert ask(6, "tasks/get", taskId=again)["result"]["status"] == "working"
        second = ask(7, "tasks/result", taskId=again)["result"]
        # The task has run again, and this is its own result.
        assert json.loads(text(second)) == {"view": 2}
        assert second["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": again}

        # One that may do harm runs once: what it gave is kept, but no task can be of that.
        added = call(8, "add_row")["result"]["task"]["taskId"]
        ask(9, "tasks/result", taskId=added)
        error = call(10, "add_row", view="rows[7].run")["error"]
        assert "call again without one" in error["message"]
        later = ask(11, "tools/call", name="add_row", arguments={"view": "rows[7].run"})
        assert json.loads(text(later["result"])) == {"view": 3}
