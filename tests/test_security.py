"""SECURITY.md: each sentence about what the program does has a test, and this page names it."""

import re
import sys
from pathlib import Path

from tests.faults.mixer import __file__ as mixer
from tests.faults.sidecar import INITIALIZE, call, serving
from tests.wire import Wire

ROOT = Path(__file__).resolve().parents[1]
SERVER = [sys.executable, mixer]

# The program, which writes each address that it connects to or looks up.
WATCHED = """
import sys
from mcp_abridge.cli import main
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        with open(sys.argv[1], "a") as file:
            print(event, arguments[1:] if event == "socket.connect" else arguments[:2], file=file)
sys.addaudithook(watch)
sys.exit(main(sys.argv[2:]))
"""


def test_it_connects_to_nothing_but_the_server(tmp_path: Path) -> None:
    log = tmp_path / "connections"
    program = [sys.executable, "-c", WATCHED, str(log)]
    with Wire([*program, "--", *SERVER]) as wire:
        for raw in (INITIALIZE, call(2, "echo")):
            wire.write(raw + b"\n")
            assert b'"result"' in wire.line()
    assert not log.exists()
    with serving("--", *SERVER) as server:
        with Wire([*program, server.url()]) as wire:
            for raw in (INITIALIZE, call(2, "echo")):
                wire.write(raw + b"\n")
                assert b'"result"' in wire.line()
        addresses = set(re.findall(r"'[^']+', \d+", log.read_text()))
        assert addresses == {f"'127.0.0.1', {server.port}"}
