"""The two commands that are compared, and what they are started with."""

import atexit
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SERVER = HERE / "server.py"
RULES = HERE / "rules"


def cores() -> list[int]:
    """Return two cores to measure on, or none where a thread cannot be put on one.

    Two processes that take turns are sometimes put on the same core, where they wake each other at
    a quarter of the cost, and stay there. Comparing means to leave that to luck on neither side.
    """
    if not hasattr(os, "sched_getaffinity"):
        return []
    found = sorted(os.sched_getaffinity(0))
    return [found[0], found[-1]] if len(found) > 1 else []


def environment() -> dict[str, str]:
    """Return the environment of both commands: the user's, but for what would change the run.

    That is settings of the wrapper, and of Python: without its compiled modules
    (PYTHONDONTWRITEBYTECODE) the wrapper would take three times as long to start.
    """
    ours = ("MCP_ABRIDGE_", "PYTHON")
    return {k: v for k, v in os.environ.items() if not k.startswith(ours)} | extra()


@cache
def extra() -> dict[str, str]:
    """Return what is set in addition: a folder for the ledger, which is kept as in real use."""
    state = mkdtemp(prefix="mcp-abridge-bench-")
    atexit.register(rmtree, state, ignore_errors=True)
    return {"XDG_STATE_HOME": state}


def direct(server: Sequence[str] = ()) -> list[str]:
    return [sys.executable, str(SERVER), *server]


def wrapped(rules: str, server: Sequence[str] = ()) -> list[str]:
    """Return the same command behind the wrapper.

    `rules` is `none`, the name of a rule file here, or empty: then the wrapper gets no options.
    """
    return [sys.executable, "-m", "proxy", *options(rules), "--", *direct(server)]


def options(rules: str) -> list[str]:
    """Return the options that name rules: `none`, a rule file here, or nothing at all.

    With rules, tools that no rule covers have no budget: the legs measure what passes untouched.
    """
    file = RULES / f"{rules}.yaml"
    named = str(file) if file.is_file() else rules
    return ["--rules", named, "--budget", "off"] if rules else []
