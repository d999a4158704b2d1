"""`python -m tests.clients`: runs real clients against a stand-in model, and writes their page.

Ends with 1 if something that must hold does not, or a client could not run.
"""

import argparse
import ctypes
import fcntl
import os
import socket
import struct
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.clients import page
from tests.clients.cases import Bench, Check, cases
from tests.clients.install import install
from tests.clients.programs import CLIENTS, Client
from tests.clients.resources import resource_cases
from tests.clients.users import user_cases
from tests.clients.whole import whole_cases
from tests.servers.install import NotInstalled

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
SET_FLAGS, UP = 0x8914, 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    add = parser.add_argument
    names = [client.name for client in CLIENTS]
    add("--client", metavar="NAME", action="append", choices=names, help="only this one")
    add("-k", metavar="WORD", default="", help="only cases whose name has it; writes no page")
    add("--keep", type=Path, metavar="DIR", help="keep the clients' homes and logs")
    add("--at-once", metavar="N", type=int, default=1, help="so many clients run at a time")
    options = parser.parse_args()
    clients = [each for each in CLIENTS if not options.client or each.name in options.client]
    problems = installed(clients)
    isolate()
    failures, rows = len(problems), []
    for name, problem in problems.items():
        print(f"{name}: not installed, so its row stays as it was: {problem}", flush=True)
    with (
        TemporaryDirectory(prefix="clients-") as temporary,
        ThreadPoolExecutor(options.at_once) as pool,
    ):
        folder = options.keep or Path(temporary)
        there = (client for client in clients if client.name not in problems)
        benches = [Bench(client, folder / client.name) for client in there]
        runs = pool.map(lambda bench: run(bench, options.k), benches)
        for bench, checks in zip(benches, runs, strict=True):
            failures += sum(bool(check.problem) for check in checks)
            rows += page.rows(bench, checks) if not options.k else []
    if not options.k:
        page.write(rows)
    return int(failures > 0)


def installed(clients: list[Client]) -> dict[str, str]:
    problems = {}
    for client in clients:
        try:
            install(client.program or client.name, os.environ)
        except NotInstalled as problem:
            problems[client.name] = str(problem)
    return problems


def isolate() -> None:
    """Leave all networks but a loopback of this process's own, if the machine allows that."""
    library = ctypes.CDLL(None, use_errno=True)
    flags = NEW_NETWORK if os.geteuid() == 0 else NEW_USER | NEW_NETWORK
    if not hasattr(library, "unshare") or library.unshare(flags):
        print("no namespace without a network can be made here: clients may reach the network")
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh14x", b"lo", UP))


def run(bench: Bench, word: str) -> list[Check]:
    checks: list[Check] = []
    client = bench.client
    every = (*cases(client), *whole_cases(client), *resource_cases(client), *user_cases(client))
    for case in every:
        if word in case.__name__:
            try:
                checks += case(bench)
            except Exception:  # a client's answer of a form that nobody foresaw
                checks.append(Check(case.__name__, traceback.format_exc(limit=-2)))
    print(f"{bench.client.name}: {len(checks)} checks", flush=True)
    for check in checks:
        if check.problem:
            print(f"  {check.title}: {check.problem}", flush=True)
    return checks


if __name__ == "__main__":
    sys.exit(main())
