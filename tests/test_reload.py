"""Rule files that change under a running proxy: what the next call and the tool list are then."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builders import call, line
from tests.faults.sidecar import Sidecar
from tests.plain_server import IMPORT
from tests.serving import JSON, ask, open_request
from tests.wire import Wire
from tests.wrapped import wrapped

OWN = ("--budget", "off", "--ledger", "off")  # only a rule changes a definition
# Declares that its tools may change, lists two, and answers every call alike.
SERVER = f"""{IMPORT}
tools = [{{"name": name, "inputSchema": {{"type": "object"}}}} for name in ("get", "gone")]
answer = {{"content": [{{"type": "text", "text": json.dumps({{"a": 1, "secret": 2}})}}]}}
serve("s", "1", tools, lambda *_: answer, tools_change=True)
"""
COMMAND = [sys.executable, "-c", SERVER]
PARAMS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c"}}
INITIALIZE = line(id=1, method="initialize", params=PARAMS)
LIST = line(id=2, method="tools/list")
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

NONE = "version: 1\nrules: [{tools: other, hide: true}]\n"
DROP = "version: 1\nrules: [{tools: get, response: [{drop: secret}]}]\n"
HIDE = "version: 1\nrules: [{tools: gone, hide: true}]\n"
BAD = "version: 1\nrules: [{tools: gone, hid: true}]\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(NONE)
    return file


def names(listing: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in listing["result"]["tools"]]


@pytest.mark.fault(43, "stdio")
@pytest.mark.fault(49, "stdio")
def test_the_wrapper_goes_by_the_rules_as_they_are_now(file: Path) -> None:
    with Wire(wrapped(COMMAND, "--rules", str(file), *OWN)) as wire:

        def exchange(raw: bytes) -> list[dict[str, Any]]:
            return [json.loads(each) for each in wire.answer(raw + b"\n")]

        exchange(INITIALIZE)
        assert names(exchange(LIST)[-1]) == ["get", "gone"]
        assert "secret" in str(exchange(call("get", id=3)))
        file.write_text(DROP)  # changes no definition: nobody is told
        [shaped] = exchange(call("get", id=4))
        assert "secret" not in str(shaped)
        file.write_text(BAD)
        [shaped] = exchange(call("get", id=5))
        assert "secret" not in str(shaped)
        file.write_text(HIDE)
        notification, answer = exchange(call("get", id=6))
        assert notification == CHANGED
        assert "secret" in str(answer)
        assert names(exchange(LIST)[-1]) == ["get"]
        [response] = exchange(call("gone", id=7))
        assert response["error"]["message"] == "Unknown tool: gone"
        log = wire.close().stderr.decode()
    assert log.count("the rules have changed and apply from now on") == 2
    assert log.count("the rules have changed, but the old ones stay") == 1
    assert "did you mean 'hide'?" in log


@pytest.mark.fault(43, "http")
@pytest.mark.fault(49, "http")
def test_a_sidecar_tells_of_rules_that_change_what_a_client_sees_and_of_no_others(
    file: Path,
) -> None:
    both = {**JSON, "Accept": "application/json, text/event-stream"}
    with Sidecar("--rules", str(file), *OWN, "--", *COMMAND) as sidecar:
        url = sidecar.url()
        response = ask(url, INITIALIZE, headers=both)
        session = {**both, "Mcp-Session-Id": response.one("mcp-session-id")}
        ask(url, LIST, headers=session)
        with open_request(url, None, session) as stream:
            assert stream.head().status == 200
            answers = b""
            # Written as they are, with a comment, with a rule that edits no definition, and wrong.
            for id, text in enumerate((NONE, f"# {NONE}", DROP, BAD, NONE, HIDE), 3):
                assert b"list_changed" not in answers
                file.write_text(text)
                answers += ask(url, call("get", id=id), headers=session).body
            # The first that is heard is of the last change.
            if b"list_changed" not in answers:
                answers += stream.until(b'"jsonrpc"') + stream.until(b"\n")
            assert answers.count(b"notifications/tools/list_changed") == 1
        listing = ask(url, LIST, headers=session).body
        assert names(json.loads(listing.rpartition(b"data: ")[2])) == ["get"]
        sidecar.events("call", 6)
    assert sidecar.errors.count(b"the client was told") == 1
