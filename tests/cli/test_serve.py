"""`serve` as a process: what it refuses to do, what it says, how it ends."""

import json
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.conftest import Run
from tests.clients.programs import PASSING, SERVER
from tests.clients.server import sized
from tests.faults.processes import SECONDS, until
from tests.faults.sidecar import INITIALIZE, RawResponse, Sidecar, call
from tests.raw_http import Answer, RawRequest, RawServer, always, whole
from tests.rulecases import PYTHON
from tests.serving import JSON, ask

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "find"}}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEADER = "a header is written like 'Authorization: Bearer ${TOKEN}'"


def answering(**result: Any) -> Answer:
    """Let an upstream answer every request with this result."""
    return always(whole(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": result})))


def post(url: str, message: Any, **headers: str) -> RawResponse:
    accept = {"Accept": "application/json, text/event-stream"}
    return ask(url, msgspec.json.encode(message), headers={**JSON, **accept, **headers})


Failure = Callable[..., str]


@pytest.fixture
def failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Failure:
    """Return a function that runs `serve`, which must not start, and returns the reason."""
    monkeypatch.chdir(tmp_path)

    def failure(*words: str, **variables: str) -> str:
        out, reason = run("serve", *words, **variables, code=2)
        assert out == ""
        return re.sub(r"^[-0-9T:]+Z (?=mcp-abridge: )", "", reason, flags=re.MULTILINE)

    return failure


def test_a_server_behind_a_url_is_served_and_a_signal_ends_it_with_0() -> None:
    with RawServer(answering(tools=[])) as upstream, Sidecar(upstream.url) as sidecar:
        [serving] = sidecar.events("serving", upstream=upstream.url)
        assert (serving["rules"], serving["token"]) == ("bundled", "no")
        answered = post(sidecar.url(), LIST)
        assert answered.json == {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}


@pytest.mark.parametrize("before", [("--",), ("--rules", "none"), ()])
def test_a_server_behind_a_command_is_served(before: tuple[str, ...]) -> None:
    command = (sys.executable, "-u", "-c", "import sys; sys.stdin.read()", "--key=secret")
    with Sidecar(*before, *command) as sidecar:
        sidecar.events("serving", upstream=sys.executable)
    assert b"secret" not in sidecar.errors


@pytest.mark.parametrize("to", ["command", "URL"])
def test_all_of_an_answer_comes_at_once_to_a_client_that_shows_so_much(to: str) -> None:
    own, upstream = ("--ledger", "off"), ["--", *SERVER]
    with ExitStack() as stack:
        if to == "URL":
            upstream = [stack.enter_context(Sidecar(*own, *PASSING, *upstream)).url()]
        sidecar = stack.enter_context(Sidecar(*own, *upstream))
        hello = sidecar.post(INITIALIZE.replace(b'"raw"', b'"codex-mcp-client"'))
        session = f"Mcp-Session-Id: {hello.one('mcp-session-id')}"
        contents = []
        for more in ({}, {"view": "all"}):
            asking = call(1, "page", arguments={"query": "47000", **more})
            answer = sidecar.post(asking, session).messages[-1]
            contents.append(json.loads(answer)["result"]["content"])
    look, everything = contents
    assert "view='all' gives all 47,000 bytes" in look[-1]["text"]
    assert everything == sized("page", 47_000)["content"]


@pytest.mark.parametrize(("option", "whole"), [("on", True), ("auto", False)])
def test_scripts_get_every_line_over_http_too(option: str, whole: bool) -> None:
    with Sidecar("--ledger", "off", "--scripts", option, "--", *SERVER) as sidecar:
        session = f"Mcp-Session-Id: {sidecar.post(INITIALIZE).one('mcp-session-id')}"
        answer = sidecar.post(call(1, "page", arguments={"query": "47000"}), session).messages[-1]
        content = json.loads(answer)["result"]["content"]
        assert (content == sized("page", 47_000)["content"]) == whole


def test_routes_of_a_configuration_have_their_own_tools_tokens_and_headers(
    tmp_path: Path,
) -> None:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("find", "move")]
    file = tmp_path / "serve.yaml"
    with RawServer(answering(tools=tools)) as upstream:
        file.write_text(
            f"version: 1\nupstream: {upstream.url}\nrules: none\nroutes:\n"
            "- path: /mcp\n- {path: /mcp-gpt, tools: [find]}\n"
            "- {path: '/t/{token}', token_env: T, auth: forward}"
        )
        with Sidecar("--config", str(file), env={"T": "word"}) as sidecar:
            listed = [post(sidecar.url(path), LIST) for path in ("/mcp", "/mcp-gpt")]
            names = [[tool["name"] for tool in each.json["result"]["tools"]] for each in listed]
            assert names == [["find", "move"], ["find"]]
            failure = post(sidecar.url("/mcp-gpt"), {**CALL, "params": {"name": "move"}}).json
            assert failure["error"] == {"code": -32601, "message": "move is not allowed"}
            tokens = sidecar.url("/t/{token}")
            for path, bearer, status in (
                ("word", "theirs", 200),
                ("word", "word", 200),
                ("other", "theirs", 401),
            ):
                url = tokens.replace("{token}", path)
                assert post(url, LIST, Authorization=f"Bearer {bearer}").status == status
        # The token that opens a path is not the server's; other credentials are.
        first, second = upstream.of("POST")[-2:]
        assert first.headers["authorization"] == "Bearer theirs"
        assert "authorization" not in second.headers
    assert b"word" not in sidecar.errors


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text("{version: 1, limits: {drain_seconds: 3600}}")

    def never(request: RawRequest) -> Iterator[bytes]:
        request.closed_by_client()
        yield b""

    with (
        ThreadPoolExecutor() as pool,
        RawServer(never) as upstream,
        Sidecar("--config", str(file), upstream.url) as sidecar,
    ):
        asking = pool.submit(post, sidecar.url(), LIST)
        upstream.wait(1)
        sidecar.process.send_signal(signal.SIGTERM)
        until(lambda: b"open requests: 1" in sidecar.errors)
        sidecar.process.send_signal(signal.SIGINT)
        assert sidecar.process.wait(SECONDS) == 130
        assert isinstance(asking.exception(SECONDS), EOFError | ConnectionError)


def test_a_route_that_is_not_ready_is_logged_at_the_start() -> None:
    reason = b"/mcp is not ready: the command 'no-such-command' is not found"
    with Sidecar("--", "no-such-command") as sidecar:
        until(lambda: reason in sidecar.errors)


def test_python_that_rules_name_is_loaded_only_with_the_flag(failure: Failure) -> None:
    words = ("--rules", str(PYTHON / "rules.yaml"), "http://a")
    assert "is Python code, which runs only with --allow-python" in failure(*words)
    with Sidecar("--allow-python", *words) as sidecar:
        sidecar.events("serving", rules=words[1])


def test_variables_are_flags_and_flags_go_before_them() -> None:
    variables = {
        "MCP_ABRIDGE_LISTEN": "nowhere.invalid:1",
        "MCP_ABRIDGE_TOKEN": "word",
        "MCP_ABRIDGE_HEADER": "X-One: 1\nX-Two: 2",
        "MCP_ABRIDGE_RULES": "none",
    }
    with (
        RawServer(answering(tools=[])) as upstream,
        Sidecar(upstream.url, env=variables) as sidecar,
    ):
        sidecar.events("serving", token="yes", rules="none")
        assert post(sidecar.url(), LIST).status == 401
        assert post(sidecar.url(), LIST, Authorization="Bearer word").status == 200
        headers = upstream.requests[0].headers
        assert (headers["x-one"], headers["x-two"]) == ("1", "2")


def test_every_mistake_in_rules_and_configuration_is_named_with_its_place(failure: Failure) -> None:
    Path("r.yaml").write_text("version: 1\nrules: [{tool: a}, {tools: b, max_bytes: 1}]")
    assert failure("--rules", "r.yaml", "--rules", "none.yaml", "http://a").splitlines() == [
        "mcp-abridge: error: r.yaml:2:10: unknown key 'tool' of a rule; did you mean 'tools'?",
        "mcp-abridge: error: r.yaml:2:42: max_bytes: 1 is less than the minimum of 300",
        "mcp-abridge: error: none.yaml: no such file or directory",
    ]
    Path("c.yaml").write_text("version: 1\nheaders: {X: '${NO}'}\nroutes: [{path: /mcp, tool: a}]")
    first, *others = failure("--config", "c.yaml").splitlines()
    assert first == "mcp-abridge: error: c.yaml:2:14: X: the variable 'NO' is not set"
    assert len(others) == 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "no server: give its URL, or write its command after --, or --config"),
        (["server"], "'server' is neither a URL, such as http://server:3000/mcp, nor a program on"),
        (["http://a", "--", "b"], "a server is a URL, or a command, not both"),
        (["--header", "X", "http://a"], HEADER),
        (["--header", "X: y", "--", "cat"], "--header is for a server behind a URL"),
        (["--listen", "80", "http://a"], "found '80'; write 127.0.0.1:80"),
        (["--listen", "99999", "http://a"], "expected HOST:PORT, PORT up to 65535, found '99999'"),
        (["--port", "3", "http://a"], "unexpected '--port'; did you mean '--listen'?"),
        (["--store", "file", "http://a"], "expected memory or a URL such as redis://redis:6379/0"),
        (["--listen", "0.0.0.0:0", "http://a"], "/mcp on 0.0.0.0:0 would be open to whoever can"),
        (["--listn", "a", "http://a"], "unexpected '--listn'; did you mean '--listen'?"),
        (["--sessions", "5", "http://a"], "unexpected '--sessions': it is the key"),
        (["--config", "no.yaml"], "no.yaml: no such file or directory"),
    ],
)
def test_an_unusable_command_line_is_refused(
    words: list[str], reason: str, failure: Failure
) -> None:
    assert reason in " ".join(failure(*words).split())


def test_an_unusable_variable_is_refused_by_its_name(failure: Failure) -> None:
    assert failure("http://a", MCP_ABRIDGE_HEADER="A: 1\nB") == f"mcp-abridge serve: {HEADER}\n"
    reason = "mcp-abridge serve: MCP_ABRIDGE_LISTEN: expected HOST:PORT, PORT up to 65535"
    assert failure("http://a", MCP_ABRIDGE_LISTEN="x").startswith(reason)


def test_an_address_that_is_in_use_is_refused(failure: Failure) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        listen = f"127.0.0.1:{server.getsockname()[1]}"
        reason = failure("--listen", listen, "http://127.0.0.1:1")
        # The variable is for servers at a URL, and no mistake before a command.
        assert reason == failure("--listen", listen, "--", "cat", MCP_ABRIDGE_HEADER="X: y")
    assert reason.endswith(
        f"cannot listen on {listen}: address already in use; --listen says where\n"
    )


def test_help_fits_on_one_screen(run: Run) -> None:
    lines = run("serve", "--help").out.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) < 80
