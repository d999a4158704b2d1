"""The commands that are compared, and what they are started with."""

import atexit
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp

from tests.conformance.suite import serving

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SERVER = HERE / "server.py"
RULES = HERE / "rules"


def cores() -> list[int]:
    """Return two cores to measure on, or none if a thread cannot be put on one.

    Two processes that take turns are sometimes put on the same core, where they wake each other at
    a quarter of the cost, and stay there. Comparing means to leave that to luck on neither side.
    """
    if not hasattr(os, "sched_getaffinity"):
        return []
    available = sorted(os.sched_getaffinity(0))
    return [available[0], available[-1]] if len(available) > 1 else []


def environment() -> dict[str, str]:
    """Return the environment of both commands: the user's, but for what would change the run.

    That is settings of the wrapper, and of Python: without its compiled modules
    (PYTHONDONTWRITEBYTECODE) the wrapper would take three times as long to start.
    """
    ours = ("MCP_ABRIDGE_", "PYTHON")
    return {k: v for k, v in os.environ.items() if not k.startswith(ours)} | extra()


@cache
def extra() -> dict[str, str]:
    """Return further variables: a folder for the ledger, which is kept as in real use."""
    state = mkdtemp(prefix="mcp-abridge-bench-")
    atexit.register(rmtree, state, ignore_errors=True)
    return {"XDG_STATE_HOME": state}


def direct(server: Sequence[str] = ()) -> list[str]:
    return [sys.executable, str(SERVER), *server]


def web_server(port: int, server: Sequence[str] = ()) -> list[str]:
    return [sys.executable, "-m", "tests.benchmarks.web_server", f"--port={port}", *server]


def proxy(rules: str, upstream: Sequence[str], *verb: str) -> list[str]:
    """Return the command of the proxy before a URL, or before a command behind `--`.

    `rules` is `none`, the name of a rule file here, or empty: then the proxy gets no options.
    """
    file = RULES / f"{rules}.yaml"
    # With rules, tools that no rule covers have no budget: what is measured passes untouched.
    options = ["--rules", str(file) if file.is_file() else rules, "--budget", "off"]
    return [sys.executable, "-m", "mcp_abridge", *verb, *(options if rules else ()), *upstream]


def sidecar(port: int) -> tuple[str, ...]:
    return "serve", "--listen", f"127.0.0.1:{port}"


def url(port: int) -> str:
    return f"http://127.0.0.1:{port}/mcp"


@contextmanager
def service(command: Sequence[str], port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Have a command running that listens at a port; what it logs goes to a file, as in use."""
    with (
        TemporaryDirectory(prefix="mcp-abridge-bench-") as folder,
        serving(command, port, Path(folder) / "log", environment()) as process,
    ):
        yield process
