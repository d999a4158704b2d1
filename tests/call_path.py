"""Prints the files of proxy/ that a tool call runs through: `python -m tests.call_path`.

Two lists, each of the second message of its kind, since the first one also fills caches:

response  one response that a rule with `keep` reshapes, from its bytes to the new bytes
stdio     one call of that tool and its response, from stdin to the server and back to stdout
"""

import os
import sys
import threading
from pathlib import Path
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
    from mcp_abridge.transports.log import Log
    from mcp_abridge.transports.stdio import child
    from mcp_abridge.transports.stdio.relay import Relay

    from tests.builders import call, rules

    server = child.spawn([sys.executable, "-c", SERVER], child.hold_signals())
    (stdin, to_proxy), (from_proxy, stdout) = os.pipe(), os.pipe()
    printed = os.dup(1)
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    ruleset, meters, log, profile = rules(f"- {RULE}"), Meters(), Log("error"), Profile()
    session = Session(SessionState(lambda *_: ruleset, meters.of, log.warning))

    def client() -> None:
        for id in (1, 2):
            profile.files.clear()
            os.write(to_proxy, call("list", {}, id=id) + b"\n")
            assert b"more" not in os.read(from_proxy, 1 << 16)
            sleep(0.1)  # what follows the response belongs to it
        os.write(printed, "\n".join(sorted(profile.files)).encode())
        os._exit(0)

    threading.Thread(target=client).start()
    threading.setprofile(profile)
    Relay(server, session, Memory(), log, 1 << 20).run()
    raise AssertionError("the client ends the process")


def main() -> None:
    """Print both lists."""
    import subprocess

    if sys.argv[1:] == ["stdio"]:
        of_stdio()
    command = [sys.executable, "-m", "tests.call_path", "stdio"]
    completed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    for name, files in ("response", of_response()), ("stdio", completed.stdout.splitlines()):
        print(f"{name}: {len(files)}", *files, sep="\n  ")


if __name__ == "__main__":
    main()
