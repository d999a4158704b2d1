"""The ways in which the proxy stands between client and server, each started and asked."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Literal

from msgspec import Struct

from tests.benchmarks.commands import environment
from tests.conformance.suite import ROOT, free_port, serving
from tests.faults.sidecar import keys
from tests.soak import rules
from tests.soak.calls import LARGEST, calls
from tests.soak.clients import Lines, Posts, Work
from tests.wire import Wire

Way = Literal["stdio", "url", "http", "command"]

WAYS: dict[Way, str] = {
    "stdio": "the wrapper before a command",
    "url": "the wrapper before a URL",
    "http": "the sidecar before a URL",
    "command": "the sidecar before a command",
}
SERVER = "tests.soak.server"
CLIENTS = 4  # at once, over HTTP
FAULTS = re.compile(rb"Traceback|the proxy failed|was never (awaited|retrieved)|Error in ")


class Standing(Struct):
    """A way that is up: the proxy's process, its rule file, and what makes calls until told."""

    pid: int
    file: Path
    work: Callable[[Work, int], None]
    """Makes calls until so many were made in all, or the work is stopped; then all rests."""


@contextmanager
def standing(way: Way, proxy: Sequence[str] = ()) -> Iterator[Standing]:
    """Start a way, with `proxy` in place of the proxy's command where that is given.

    What it says on stderr is looked through at the end: AssertionError where it tells of a fault
    in the proxy itself.
    """
    with TemporaryDirectory(prefix="mcp-abridge-soak-") as folder, ExitStack() as stack:
        file, log = Path(folder) / "rules.yaml", Path(folder) / "log"
        file.write_text(rules.RULES)
        own = ["--rules", str(file), "--ledger", str(Path(folder) / "ledger.sqlite3")]
        python = [sys.executable, "-m"]
        upstream = ["--", *python, SERVER]
        if way in ("url", "http"):
            port = free_port()
            stack.enter_context(
                serving([*python, SERVER, "--http", str(port)], port, log, environment())
            )
            upstream = [f"http://127.0.0.1:{port}/mcp"]
        if way in ("stdio", "url"):
            command = [*(proxy or [*python, "proxy"]), *own, *upstream]
            wire = stack.enter_context(Wire(command, env=environment(), cwd=ROOT))
            client = Lines(wire, calls(Random(1)))
            yield Standing(wire.process.pid, file, client.run)
            said = wire.close().stderr
        else:
            port = free_port()
            own += [
                "--listen",
                f"127.0.0.1:{port}",
                *keys(limits={"idle_seconds": 2}),
                "--log-format",
                "json",
            ]
            command = [*(proxy or [*python, "proxy"]), "serve", *own, *upstream]
            errors = Path(folder) / "errors"
            process = stack.enter_context(serving(command, port, errors, environment()))
            yield Standing(process.pid, file, Crowd(port).run)
            said = errors.read_bytes()
        fault = FAULTS.search(said)
        assert fault is None, said[max(0, fault.start() - 500) : fault.end() + 2000].decode()


class Crowd:
    """Several clients over HTTP, at once."""

    def __init__(self, port: int) -> None:
        self.clients = [
            Posts(port, Random(number), calls(Random(100 + number), LARGEST))
            for number in range(CLIENTS)
        ]

    def run(self, work: Work, most: int) -> None:
        threads = [work.guarded(partial(client.run, work, most)) for client in self.clients]
        for thread in threads:
            thread.join()
