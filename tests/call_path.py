"""Prints the files of proxy/ that a tool call runs through: `python -m tests.call_path`.

Lists, each of the second message of its kind, since the first one also fills caches:

response   one response that a rule with `keep` reshapes, from its bytes to the new bytes
stdio      one call of that tool and its response, from stdin to the server and back to stdout
json       the same by `serve URL`, before a server that answers in JSON
stream     the same, before one that answers in an event stream
session    the same by `serve -- command`, in a session of the handshake era
stateless  the same, of the stateless era
"""

import http.client
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "proxy" / "mcp_abridge"
RULE = "{tools: list, response: [{keep: items.id}]}"
SERVER = """
import json, sys
for line in sys.stdin:
    result = {"content": [{"type": "text", "text": '{"items": [{"id": 1, "more": 2}]}'}]}
    response = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": result}
    print(json.dumps(response), flush=True)
"""


class Profile:
    """Records the files of proxy/ in which a function was entered."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(PACKAGE)):
            self.files.add(os.path.relpath(name, PACKAGE))


def in_thread(client: Callable[[], None]) -> None:
    """Run the client, which ends the process; if it fails, nothing else would."""

    def run() -> None:
        try:
            client()
        except BaseException:
            traceback.print_exc()
        os._exit(1)

    threading.Thread(target=run).start()


def of_response() -> list[str]:
    """Return the files that shape one response."""
    from mcp_abridge.shaping.job import ShapeJob
    from mcp_abridge.shaping.pipeline import shape

    from tests.builders import answer, document, rule

    raw = answer(document({"items": [{"id": 1, "more": 2}]}))
    job = ShapeJob(rule=rule(RULE), tool="list", id=b"1", raw=raw)
    shape(job)
    profile = Profile()
    sys.setprofile(profile)
    try:
        assert b"more" not in shape(job).raw
    finally:
        sys.setprofile(None)
    return sorted(profile.files)


def of_stdio() -> list[str]:
    """Return the files that one call and its response run through by stdio; needs its own process.

    The process is its own client: pipes take the places of its stdin and stdout.
    """
    from mcp_abridge.session.session import Session
    from mcp_abridge.session.state import SessionState
    from mcp_abridge.storage.meter import Meters
    from mcp_abridge.storage.snapshots import Memory
    from mcp_abridge.system import platform
    from mcp_abridge.transports.log import Log
    from mcp_abridge.transports.stdio.relay import Relay

    from tests.builders import call, rules

    server = platform.spawn([sys.executable, "-c", SERVER], platform.hold_signals())
    (stdin, to_proxy), (from_proxy, stdout) = os.pipe(), os.pipe()
    printed = os.dup(1)
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    ruleset, meters, log, profile = rules(f"- {RULE}"), Meters(), Log("error"), Profile()
    session = Session(SessionState(lambda *_: ruleset, meters.of, log.warning, Memory()))

    def client() -> None:
        for id in (1, 2):
            profile.files.clear()
            os.write(to_proxy, call("list", {}, id=id) + b"\n")
            assert b"more" not in os.read(from_proxy, 1 << 16)
            sleep(0.1)  # what follows the response belongs to it
        os.write(printed, "\n".join(sorted(profile.files)).encode())
        os._exit(0)

    in_thread(client)
    threading.setprofile(profile)
    Relay(server, session, log, 1 << 20).run()
    raise AssertionError("the client ends the process")


RESULT = {"content": [{"type": "text", "text": '{"items": [{"id": 1, "more": 2}]}'}]}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
STATELESS = {
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "list",
}


class Upstream(BaseHTTPRequestHandler):
    """Answers each request with the same result, in the form that its path names."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": RESULT}).encode()
        kind = "application/json"
        if self.path == "/stream":
            body, kind = b"data: %s\n\n" % body, "text/event-stream"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def of_serve(kind: str) -> None:
    """Print the files that one call runs through by `serve`; needs its own process."""
    from mcp_abridge.cli import main as run

    from tests.conformance.suite import free_port

    port, profile = free_port(), Profile()
    server = ["--", sys.executable, "-c", SERVER]
    if kind in ("json", "stream"):
        upstream = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        server = [f"http://127.0.0.1:{upstream.server_port}/{kind}"]

    def ask(
        id: int, method: str, params: dict[str, Any], **headers: str
    ) -> http.client.HTTPResponse:
        accept = "application/json, text/event-stream"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        fields = {"Content-Type": "application/json", "Accept": accept, **headers}
        connection.request("POST", "/mcp", body, fields)
        return connection.getresponse()

    def client() -> None:
        for _ in range(200):
            sleep(0.05)
            try:
                http.client.HTTPConnection("127.0.0.1", port).connect()
                break
            except OSError:
                continue
        params: dict[str, Any] = {"name": "list", "arguments": {}}
        headers: dict[str, str] = {}
        if kind == "session":
            session = ask(0, "initialize", {"protocolVersion": "2025-06-18"}).headers
            headers = {"Mcp-Session-Id": session["Mcp-Session-Id"]}
        elif kind == "stateless":
            params["_meta"], headers = META, STATELESS
        for id in (1, 2):
            profile.files.clear()
            answer = ask(id, "tools/call", params, **headers).read()
            assert b"items" in answer, answer
            assert b"more" not in answer, answer
            sleep(0.1)  # what follows the response belongs to it
        print("\n".join(sorted(profile.files)), flush=True)
        os._exit(0)

    with TemporaryDirectory() as folder:
        rule = Path(folder) / "rules.yaml"
        rule.write_text(f"version: 1\nrules:\n  - {RULE}\n")
        in_thread(client)
        sys.setprofile(profile)
        options = ["--listen", f"127.0.0.1:{port}", "--rules", str(rule), "--ledger", "off"]
        code = run(["serve", *options, *server])
    raise AssertionError(f"the client ends the process: {code}")


OF_SERVE = ("json", "stream", "session", "stateless")


def main() -> None:
    """Print all lists."""
    import subprocess

    if sys.argv[1:] == ["stdio"]:
        of_stdio()
    if sys.argv[1:]:
        of_serve(sys.argv[1])
    print_list("response", of_response())
    for kind in ("stdio", *OF_SERVE):
        command = [sys.executable, "-m", "tests.call_path", kind]
        completed = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=60
        )
        print_list(kind, completed.stdout.splitlines())


def print_list(name: str, files: list[str]) -> None:
    """Print the number of files, and each."""
    print(f"{name}: {len(files)}", *files, sep="\n  ")


if __name__ == "__main__":
    main()
