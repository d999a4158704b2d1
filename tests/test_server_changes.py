"""Rules that protect calls do not end because the server takes another name, or drops a tool.

Through the wrapper and the sidecar, before a server that a test renames while it runs.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from tests.faults.scale import scaled
from tests.python_client import PythonClient, connected, logged
from tests.serving import FRONTS
from tests.wrapped import texts, wrapped

# Its name and its tools are those in a file, at each request; it writes the calls into another.
SERVER = """
import json, sys
state, calls = sys.argv[1:]
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    now = json.load(open(state))
    about = {"name": now["name"], "version": "1"}
    if request["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        result["serverInfo"] = about
    elif request["method"] == "tools/list":
        tools = [{"name": each, "inputSchema": {"type": "object"}} for each in now["tools"]]
        result = {"tools": tools, "_meta": {"io.modelcontextprotocol/serverInfo": about}}
    else:
        open(calls, "a").write(request["params"]["name"] + "\\n")
        result = {"content": [{"type": "text", "text": "done"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
RULES = """
version: 1
server: {name: bank, tools: [pay, balance]%s}
rules:
- {tools: erase, hide: true}
- {tools: pay, arguments: {amount: {maximum: 10}}}
"""
TOOLS = ["pay", "balance", "erase"]
BANK = {"name": "bank", "tools": TOOLS}
# How the server changes, and how that is told.
CHANGES = {
    "its name": ({"name": "bank2", "tools": TOOLS}, "server 'bank', and this one is \"bank2\""),
    "its tools": (
        {"name": "bank", "tools": ["pay", "erase"]},
        "a server with the tool 'balance', which \"bank\" lacks",
    ),
}
changing = pytest.mark.parametrize("change", CHANGES)
# `make doors` has either change in both ways.
WAYS = (
    *(("stdio", "its name"), ("http to a command", "its tools")),
    *(("stdio", "its tools"), ("http to a command", "its name")),
)
changing_each_way = pytest.mark.parametrize(("way", "change"), WAYS[: scaled(2, 4)])


class Bank:
    """A server with rules, and the way to it; `calls` are those that reached it."""

    def __init__(self, folder: Path, way: str) -> None:
        self._folder, self._way = folder, way
        self._state, self._calls = folder / "state", folder / "calls"
        self.rules = folder / "rules.yaml"
        self.rules.write_text(RULES % "")
        self.command = [sys.executable, "-c", SERVER, str(self._state), str(self._calls)]
        self.turn_into(BANK)

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().split() if self._calls.exists() else []

    def turn_into(self, state: dict[str, Any]) -> None:
        self._state.write_text(json.dumps(state))

    @contextmanager
    def session(self) -> Iterator[PythonClient]:
        front = FRONTS[self._way](self.command, [self.rules], self._folder, "--ledger", "off")
        with front as entered, entered.connect("legacy") as client:
            yield client


def hides_erase(client: PythonClient) -> bool:
    if "erase" in client.tools():
        client.call("erase", {})
        return False
    with pytest.raises(MCPError, match="Unknown tool: erase"):
        client.call("erase", {})
    return True


def refusal(client: PythonClient, tool: str, **arguments: Any) -> str:
    result = client.call(tool, arguments)
    assert result.get("isError"), result
    [text] = texts(result)
    return text


@changing_each_way
def test_what_protected_calls_of_a_session_goes_on_when_the_server_changes(
    tmp_path: Path, way: str, change: str
) -> None:
    bank = Bank(tmp_path, way)
    with bank.session() as client:
        assert hides_erase(client)
        bank.turn_into(CHANGES[change][0])
        assert hides_erase(client)
        assert refusal(client, "pay", amount=11) == "amount: 11 is greater than the maximum of 10"
        client.call("pay", {"amount": 10})
    assert bank.calls == ["pay"]


@changing_each_way
def test_a_server_that_changed_since_an_earlier_session_runs_no_protected_call(
    tmp_path: Path, way: str, change: str
) -> None:
    bank = Bank(tmp_path, way)
    with bank.session() as client:
        client.tools()
    state, words = CHANGES[change]
    bank.turn_into(state)
    with bank.session() as client:
        assert hides_erase(client)
        assert refusal(client, "pay", amount=1) == (
            f"pay does not run: {bank.rules} protects its calls, but it is for {words}. If the "
            "server was changed on purpose, check that these rules still fit it, and correct "
            "`server` in that file"
        )
        client.call("balance", {})
    assert bank.calls == ["balance"]
    # The user does that.
    names = {"name: bank": f"name: {state['name']}", "[pay, balance]": "pay"}
    text = bank.rules.read_text()
    for old, new in names.items():
        text = text.replace(old, new)
    bank.rules.write_text(text)
    with bank.session() as client:
        assert hides_erase(client)
        client.call("pay", {"amount": 1})
    assert bank.calls == ["balance", "pay"]


@changing
def test_a_file_that_never_fitted_the_server_is_passed_over_with_a_line_in_the_log(
    tmp_path: Path, change: str
) -> None:
    bank, log = Bank(tmp_path, "stdio"), tmp_path / "log"
    state, words = CHANGES[change]
    bank.turn_into(state)
    command = wrapped(bank.command, "--rules", str(bank.rules), "--ledger", "off")
    for _ in range(2):
        with connected(logged(command, log), mode="legacy") as client:
            assert not hides_erase(client)
        line = f"warning: {bank.rules}: it is for {words}; none of its rules apply\n"
        assert log.read_text().count(line) == 1
    assert bank.calls == ["erase", "erase"]


@changing_each_way
def test_a_required_file_lets_no_tool_of_another_server_run_from_the_first_session_on(
    tmp_path: Path, way: str, change: str
) -> None:
    bank = Bank(tmp_path, way)
    bank.rules.write_text(RULES % ", required: true")
    state, words = CHANGES[change]
    bank.turn_into(state)
    with bank.session() as client:
        assert hides_erase(client)
        for tool in ("pay", "balance"):
            assert words in refusal(client, tool)
    assert bank.calls == []
    bank.turn_into(BANK)
    with bank.session() as client:
        client.tools()
        client.call("balance", {})
        bank.turn_into(state)
        client.tools()
        assert words in refusal(client, "balance")
    assert bank.calls == ["balance"]
