"""The programs that pages start: each is the real one, and does not wait for a person.

What speaks MCP on stdin is asked for its handshake, then its stdin is closed. What listens goes on
in the background, until the page ends or another one wants its port. `npx` starts the package that
the tests have pinned, and a small server for one that a page makes up.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from mcp_abridge.cli import OLD_VERBS, VERBS

SECONDS = 30  # for those before it to end
_NO_SERVER = (*(VERBS.keys() - {"run"}), *OLD_VERBS, "--version")
_INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"page","version":"1"}}}\n'
)


def mcp_abridge(folder: Path, words: Sequence[str]) -> int:
    command = [sys.executable, "-m", "mcp_abridge", *words]
    if words[0] == "serve":
        return _listen(folder, command, lambda log: ": serving " in log)
    if "--watch" in words:
        return _listen(folder, command, lambda log: "http://127.0.0.1:" in log)
    return _become(command) if words[0] in _NO_SERVER else _ask(command)


def python(folder: Path, words: Sequence[str]) -> int:
    command = [sys.executable, *words]
    if port := _port(words):
        return _listen(folder, command, lambda _: _is_open(port))
    return _ask(command) if words[0].endswith("server.py") else _become(command)


def redis_server(folder: Path, words: Sequence[str]) -> int:
    ours, _, others = os.environ["PATH"].partition(os.pathsep)
    program = shutil.which("redis-server", path=others)
    assert ours == str(folder / "bin")
    assert program, "redis-server is not installed"
    return _listen(folder, [program, *words], lambda log: "Ready to accept" in log)


def npx(folder: Path, words: Sequence[str]) -> int:
    from tests.servers.install import CACHE, node

    flag, package, *rest = words
    script = CACHE / "node" / "node_modules" / package / "dist" / "index.js"
    assert flag == "-y"
    assert script.exists() or package == "some-server", package
    return _become([node(), str(script), *rest]) if script.exists() else uvx(folder, words)


def uvx(folder: Path, _: Sequence[str]) -> int:
    return _become([sys.executable, str(folder / "server.py")])


def _become(command: Sequence[str]) -> NoReturn:
    os.execv(command[0], [*command])


def _ask(command: Sequence[str]) -> int:
    if os.fstat(0).st_rdev != os.stat(os.devnull).st_rdev:
        _become(command)  # it has a client already
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(_INITIALIZE)
        server.stdin.flush()
        answer = server.stdout.readline()
    if b'"serverInfo"' not in answer:
        print(f"no server: it said {answer!r}", file=sys.stderr)
    return server.returncode or b'"serverInfo"' not in answer


def _port(words: Sequence[str]) -> int:
    """Return the port that a server is told to listen at, 0 if it is told none."""
    return next((int(to) for flag, to in pairwise(words) if flag in ("--http", "--port")), 0)


def _is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _listen(folder: Path, command: Sequence[str], ready: Callable[[str], bool]) -> int:
    """Start a program and leave it once it is ready; end those before it if they have its port."""
    pids, log = folder / "pids", folder / f"log of {os.getpid()}"
    until = time.monotonic() + SECONDS
    while True:
        with log.open("w") as output:
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        while started.poll() is None and not ready(log.read_text()):
            time.sleep(0.02)
        if started.returncode is None:
            with pids.open("a") as file:
                print(started.pid, file=file)
            return 0
        if "address already in use" not in log.read_text() or time.monotonic() > until:
            print(log.read_text(), file=sys.stderr)
            return started.returncode or 1
        for pid in pids.read_text().split() if pids.exists() else ():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGTERM)
        pids.unlink(missing_ok=True)
        time.sleep(0.2)  # they answer open requests first


PROGRAMS = {
    "mcp-abridge": mcp_abridge,
    "npx": npx,
    "python": python,
    "redis-server": redis_server,
    "uvx": uvx,
}

if __name__ == "__main__":
    sys.exit(PROGRAMS[sys.argv[1]](Path(sys.argv[2]), sys.argv[3:]))
