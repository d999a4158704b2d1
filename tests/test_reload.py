"""Rule files that change under a running proxy: what the next call and the tool list are then."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.builders import call, line
from tests.conformance import suite
from tests.faults.processes import until
from tests.faults.sidecar import RawResponse, Sidecar, command, post
from tests.plain_server import IMPORT
from tests.raw_http import RawRequest, RawServer, result, session, whole
from tests.serving import JSON, ask, open_request
from tests.wire import Wire
from tests.wrapped import START, wrapped

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


class Configured:
    """A sidecar without a terminal, and the configuration that SIGHUP makes it read again."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "serve.yaml"
        self.sidecar: Sidecar

    def write(self, **top: Any) -> None:
        routes = top.pop("routes", [{"path": "/mcp"}])
        self.file.write_text(json.dumps({"version": 1, "budget": "off", **top, "routes": routes}))

    @contextmanager
    def serving(self, **variables: str) -> Iterator[Sidecar]:
        words = ("--config", str(self.file), "--ledger", "off")
        with Sidecar(*words, env=variables) as self.sidecar:
            yield self.sidecar

    def reload(self) -> str:
        """Send SIGHUP; return the line of the log that says what came of it."""
        start = len(self.sidecar.lines)
        self.sidecar.process.send_signal(signal.SIGHUP)

        def lines() -> list[str]:
            messages = [each.get("message", "") for each in self.sidecar.lines[start:]]
            return [each for each in messages if "read again" in each]

        until(lambda: bool(lines()), detail=self.sidecar.errors.decode)
        return lines()[0]


@pytest.fixture
def configured(tmp_path: Path) -> Configured:
    return Configured(tmp_path)


UPSTREAM = {"command": COMMAND}


def test_sighup_applies_a_changed_configuration_and_sessions_go_on(
    configured: Configured, file: Path, tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ann first")
    top = {"upstream": UPSTREAM, "token_file": str(tokens)}
    configured.write(**top)
    with configured.serving() as sidecar:

        def post(raw: bytes, token: str, *headers: str, path: str = "/mcp") -> RawResponse:
            return sidecar.post(raw, f"Authorization: Bearer {token}", *headers, path=path)

        session = f"Mcp-Session-Id: {post(INITIALIZE, 'first').one('mcp-session-id')}"
        assert b"gone" in post(LIST, "first", session).body
        servers = sidecar.children
        file.write_text(HIDE)
        tokens.write_text("ann second")
        routes = [{"path": "/mcp", "rules": str(file)}, {"path": "/only", "tools": ["gone"]}]
        configured.write(**top, routes=routes)
        text = "the configuration was read again: /mcp has changed; /only is new"
        assert configured.reload() == text
        assert post(LIST, "first", session).status == 401
        # The same session, with its server, by the rules as they are now.
        answer = post(LIST, "second", session)
        assert names(json.loads(answer.body.rpartition(b"data: ")[2])) == ["get"]
        assert servers <= sidecar.children
        other = post(INITIALIZE, "second", path="/only")
        listing = post(
            LIST, "second", f"Mcp-Session-Id: {other.one('mcp-session-id')}", path="/only"
        )
        assert names(listing.json) == ["gone"]

        configured.write(**top)
        assert configured.reload().endswith("/mcp has changed; /only is gone")
        assert post(LIST, "second", path="/only").status == 404
        assert b"gone" in post(LIST, "second", session).body
        assert configured.reload().endswith(": no route has changed")


def test_sighup_leads_new_sessions_to_another_server_and_earlier_ones_go_on(
    configured: Configured,
) -> None:
    def server(name: str) -> dict[str, Any]:
        script = SERVER.replace('("get", "gone")', f'("{name}",)')
        return {"command": [sys.executable, "-c", script]}

    def tool(session: str) -> list[str]:
        return names(json.loads(sidecar.post(LIST, session).body.rpartition(b"data: ")[2]))

    configured.write(upstream=server("one"))
    with configured.serving() as sidecar:
        earlier = sidecar.begin()
        configured.write(upstream=server("two"))
        assert configured.reload().endswith("/mcp has another server, for new sessions")
        assert (tool(earlier), tool(sidecar.begin())) == (["one"], ["two"])
        with RawServer(session()) as upstream:
            configured.write(upstream=upstream.url)
            configured.reload()
            assert tool(earlier) == ["one"]
            far = sidecar.begin()
            configured.write(upstream=server("three"))
            configured.reload()
            assert sidecar.post(call("x", id=3), far).json["result"]["content"][0]["text"] == "ok"
        assert tool(earlier) == ["one"]


def test_a_call_in_flight_is_answered_though_its_route_is_taken_away(
    configured: Configured,
) -> None:
    go = threading.Event()

    def wait(request: RawRequest) -> Iterator[bytes]:
        assert go.wait(60)
        yield whole(result(request.id))

    with RawServer(wait) as upstream:
        configured.write(upstream=upstream.url, routes=[{"path": "/mcp"}, {"path": "/keep"}])
        with configured.serving() as sidecar, sidecar.client() as client:
            client.send(post(call("x", id=1)))
            upstream.wait(1)
            configured.write(upstream=upstream.url, routes=[{"path": "/keep"}])
            assert configured.reload().endswith("/mcp is gone")
            go.set()
            assert client.answer().json["result"]["content"][0]["text"] == "ok"
            assert sidecar.post(call("x", id=2)).status == 404


def test_a_mistake_leaves_the_configuration_in_force_and_is_named_with_its_place(
    configured: Configured,
) -> None:
    configured.write(upstream=UPSTREAM)
    with configured.serving() as sidecar:
        session = sidecar.begin()
        good = configured.file.read_text()
        stays = "nothing is read again, the old configuration stays: "
        for text, problem in (
            (good.replace("budget", "budgit"), "unknown key 'budgit' of a configuration; did you"),
            (good + "]", ""),
            (good.replace('"budget": "off"', '"rules": "absent.yaml"'), "no such file"),
            (good.replace('"budget": "off"', '"token_env": "ABSENT"'), "'ABSENT' is not set"),
        ):
            configured.file.write_text(text)
            line = configured.reload()
            assert line.startswith(f"{stays}{configured.file}:"), line
            assert problem in line
            assert names(json.loads(sidecar.post(LIST, session).body.rpartition(b"data: ")[2]))
        configured.file.unlink()
        assert configured.reload() == f"{stays}{configured.file}: no such file or directory"


def test_what_only_a_restart_changes_is_named(configured: Configured) -> None:
    configured.write(upstream=UPSTREAM)
    with configured.serving() as sidecar:
        port = suite.free_port()
        at = f"127.0.0.1:{port}"
        routes = [{"path": "/mcp", "listen": at}, {"path": "/new", "listen": at}]
        configured.write(
            upstream=UPSTREAM, routes=routes, store="redis://r:1/0", limits={"sessions": 1}
        )
        fixed = f"only a restart changes: listen {at}, store, limits"
        assert configured.reload().endswith(fixed)
        [line] = [each for each in sidecar.lines if fixed in each.get("message", "")]
        assert line["level"] == "warning"
        assert sidecar.post(INITIALIZE).status == 200
        assert sidecar.post(INITIALIZE, path="/new").status == 404
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


def test_a_path_at_two_addresses_stays_at_both(configured: Configured) -> None:
    routes = [{"path": "/mcp", "listen": f"{host}:0"} for host in ("127.0.0.1", "localhost")]
    configured.write(upstream=UPSTREAM, routes=routes)
    with configured.serving():
        assert configured.reload().endswith(": no route has changed")


def test_a_sidecar_with_a_terminal_ends_with_it(configured: Configured) -> None:
    configured.write(upstream=UPSTREAM)
    program = [
        sys.executable,
        "-c",
        "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n" + START,
    ]
    terminal, end = os.openpty()
    process = subprocess.Popen(
        command("--config", str(configured.file), "--ledger", "off", program=program),
        stdin=end,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(end)
    assert process.stderr is not None
    with process, process.stderr as log:
        for line in log:
            if b'"serving"' in line:
                break
        os.close(terminal)  # the system sends SIGHUP
        assert process.wait(60) == 0
