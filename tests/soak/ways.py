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
from tests.soak.calls import LARGEST, calls
from tests.soak.clients import Lines, Posts, Work
from tests.soak.rules import RULES
from tests.wire import Wire

Way = Literal["stdio", "url", "http", "command"]

WAYS: dict[Way, str] = {
    "stdio": "the wrapper before a command",
    "url": "the wrapper before a URL",
    "http": "the sidecar before a URL",
    "command": "the sidecar before a command",
}
SERVER = "tests.soak.server"
PYTHON = (sys.executable, "-m")
PROXY = (*PYTHON, "mcp_abridge")
CLIENTS = 4  # at once, over HTTP
FAULTS = re.compile(rb"Traceback|the proxy failed|was never (awaited|retrieved)|Error in ")


class Standing(Struct):
    """A way that is up: the proxy's process, its rule file, and what makes calls until told."""

    pid: int
    file: Path
    work: Callable[[Work, int], None]
    """Makes calls until so many were made in all, or the work is stopped; then all rests."""


@contextmanager
def standing(way: Way, proxy: Sequence[str] = PROXY) -> Iterator[Standing]:
    """Start a way; AssertionError at the end if its stderr tells of a fault in the proxy itself."""
    with TemporaryDirectory(prefix="mcp-abridge-soak-") as name, ExitStack() as stack:
        folder = Path(name)
        file = folder / "rules.yaml"
        file.write_text(RULES)
        own = ["--rules", str(file), "--ledger", str(folder / "ledger.sqlite3")]
        upstream = ["--", *PYTHON, SERVER]

        if way in ("url", "http"):
            port = free_port()
            server = [*PYTHON, SERVER, "--http", str(port)]
            stack.enter_context(serving(server, port, folder / "log", environment()))
            upstream = [f"http://127.0.0.1:{port}/mcp"]
        if way in ("stdio", "url"):
            wire = stack.enter_context(Wire([*proxy, *own, *upstream], environment(), ROOT))
            yield Standing(wire.process.pid, file, Lines(wire, calls(Random(1))).run)
            errors = wire.close().stderr
        else:
            port = free_port()
            own += ["--listen", f"127.0.0.1:{port}", "--log-format", "json"]
            # Kept answers have their room while the run warms up: what grows later is no store.
            limits = {"idle_seconds": 2, "snapshots": "2MB"}
            serve = [*proxy, "serve", *own, *keys(limits=limits), *upstream]
            error_file = folder / "errors"
            process = stack.enter_context(serving(serve, port, error_file, environment()))
            yield Standing(process.pid, file, crowd(port))
            errors = error_file.read_bytes()
        fault = FAULTS.search(errors)
        assert fault is None, errors[max(0, fault.start() - 500) : fault.end() + 2000].decode()


def crowd(port: int) -> Callable[[Work, int], None]:
    """Return the work of several clients over HTTP, at once."""
    clients = [
        Posts(port, Random(number), calls(Random(100 + number), LARGEST))
        for number in range(CLIENTS)
    ]

    def run(work: Work, most: int) -> None:
        for thread in [work.start_thread(partial(client.run, work, most)) for client in clients]:
            thread.join()

    return run
