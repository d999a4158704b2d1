"""`python -m tests.benchmarks.lines`: lines of 1, 20 and 100 MB through each way, time and memory.

What no rule touches must take less than 2 s for 100 MB, and at most three times the line in memory;
what a rule makes of a line is measured, not bounded. Ends with 1 if something could not be
measured; a missed target is a finding. Linux only.
"""

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from msgspec import Struct

from tests.benchmarks import raw, services, table, web_client
from tests.benchmarks.__main__ import cause, progress
from tests.benchmarks.commands import direct, options
from tests.benchmarks.server import MEGABYTES
from tests.benchmarks.table import quantity
from tests.benchmarks.web_client import WrongAnswer
from tests.conformance.suite import free_port
from tests.faults.sidecar import keys
from tests.soak.footprint import workers

REPEATED = 3
SECONDS = 0.02  # for each MB: 2 s for 100 MB
TIMES = 3.0  # of a line's size, in memory
SPARE = 16.0  # MB: of the memory that anything may cost
WAYS = ("command", "run URL", "serve URL", "serve -- command")
HEAD = ("way", "what", "MB", "direct", "through", "memory", "workers", "× the line", "")


class Case(Struct, frozen=True):
    """What is sent: a call of `tool`, with what `arguments` say, or `padding` of its own.

    `server` are options of the server, `rules` those of the proxy. Where it is `touched` by a rule,
    there are no bounds.
    """

    name: str
    tool: str = "text"
    arguments: str = "{}"
    rules: str = "none"
    server: tuple[str, ...] = ()
    touched: bool = False
    padding: bool = False


CASES = (
    Case("untouched, id first"),
    Case("untouched, id last", server=("--tail",)),
    Case("untouched, rules for others", rules="other"),
    Case("a request, untouched", "small", padding=True),
    Case("a request, rules for others", "small", padding=True, rules="other"),
    Case("looked at and left alone", "text", '{"cut":"none"}', "lines", touched=True),
    Case("rows, looked at and left alone", "rows", '{"cut":"none"}', "lines", touched=True),
    Case("text, truncate", "text", '{"cut":"page"}', "lines", touched=True),
    Case("rows, paginate", "rows", '{"cut":"page"}', "lines", touched=True),
    Case("rows, paginate, id last", "rows", '{"cut":"page"}', "lines", ("--tail",), touched=True),
    Case("rows, keep of all", "rows", '{"cut":"all"}', "lines", touched=True),
    Case("both copies, paginate", "both", '{"cut":"page"}', "lines", touched=True),
    Case("rows, no options", "rows", rules="", touched=True),
)


class Found(Struct, frozen=True):
    """Seconds of each repetition, and MB at the peak: the proxy's and its workers'."""

    direct: tuple[float, ...]
    through: tuple[float, ...]
    memory: float
    workers: float = 0.0


class Took(Struct, frozen=True):
    """How long a call took, how much came, and its beginning."""

    seconds: float
    size: int
    start: bytes

    def checked(self, case: Case, megabytes: int) -> float:
        """Return the seconds. Raises WrongAnswer."""
        least = 0 if case.touched or case.padding else megabytes * 900_000
        failed = b'"error":' in self.start or b'"isError":true' in self.start
        if failed or self.size < least:
            raise WrongAnswer(f"{self.size} bytes: {self.start.decode(errors='replace')}")
        return self.seconds


Client = raw.Client | web_client.Client
MEMORY: dict[int, memoryview] = {}


def memory(megabytes: int) -> memoryview:
    """Return memory for an answer; answers of one size share it."""
    size = (megabytes + 30) << 20
    return MEMORY.setdefault(size, memoryview(bytearray(size)))


@contextmanager
def through(way: str, case: Case, megabytes: int) -> Iterator[tuple[Client, Client, int]]:
    """Start a client of the server itself, and one through the proxy, with the proxy's pid."""
    with ExitStack() as stack:
        enter = stack.enter_context
        one: Client
        if "URL" in way:
            origin = free_port()
            enter(services.service(services.web_server(origin, case.server), origin))
            one = enter(web_client.Client(origin, memory=memory(megabytes)))
            upstream = [services.url(origin)]
        else:
            command = direct(case.server)
            one = enter(raw.Client(command, memory(megabytes)))
            upstream = ["--", *command]
        if way in ("command", "run URL"):
            run = [sys.executable, "-m", "proxy", "run", *options(case.rules), *upstream]
            wrapper = enter(raw.Client(run, memory(megabytes)))
            yield one, wrapper, wrapper.process.pid
            return
        port = free_port()
        command = services.sidecar(port, case.rules, *keys(limits={"body": "256MB"}), *upstream)
        process = enter(services.service(command, port))
        yield one, enter(web_client.Client(port, memory=memory(megabytes))), process.pid


def measured(way: str, case: Case, megabytes: int) -> Found:
    """Make the call a few times directly and through the proxy; its first time tells the memory."""
    request = raw.tools_call(f"{case.tool}_{megabytes}", case.arguments)
    if case.padding:
        padding = "x" * (megabytes * 1_000_000)
        request = raw.tools_call(case.tool, f'{{"text":"{padding}"}}')
    with through(way, case, megabytes) as (one, other, pid):
        for each in (one, other):
            each.connect()
            each.call(raw.tools_call("small"))
        timed(one, request)
        with peak(pid) as costs:
            took = [timed(other, request)]
        took += [timed(other, request) for _ in range(REPEATED - 1)]
        plain = [timed(one, request).seconds for _ in range(REPEATED)]
    return Found(tuple(plain), tuple(each.checked(case, megabytes) for each in took), *costs)


def timed(client: Client, line: bytes) -> Took:
    # A body has no newline, as a rule.
    request = line if isinstance(client, raw.Client) else line[:-1]
    began = time.perf_counter()
    answer = client.call(request)
    return Took(time.perf_counter() - began, len(answer), bytes(answer[:600]))


@contextmanager
def peak(pid: int) -> Iterator[list[float]]:
    """Fill a list with the MB that a process, and that its workers, take at most meanwhile."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    before = held(pid, "VmRSS")
    there = {each: held(each, "VmRSS") for each in workers(pid, "server.py")}
    costs: list[float] = []
    yield costs
    costs.append(held(pid, "VmHWM") - before)
    now = workers(pid, "server.py")
    costs.append(sum(held(each, "VmHWM") - there.get(each, 0.0) for each in now))


def held(pid: int, what: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(rf"{what}:\s+(\d+)", status)[0]) * 1024 / 1e6


# The table


def row(way: str, case: Case, megabytes: int, found: Found) -> tuple[str, ...]:
    times = found.memory / megabytes
    return (
        way,
        case.name,
        str(megabytes),
        quantity(median(found.direct), "s") if found.direct else "",
        quantity(median(found.through), "s") if found.through else "",
        f"{found.memory:.0f} MB",
        f"{found.workers:.0f} MB" if found.workers >= 1 else "",
        f"×{times:.1f}",
        verdict(case, megabytes, found),
    )


def verdict(case: Case, megabytes: int, found: Found) -> str:
    if case.touched:
        return ""
    missed = []
    most = max(TIMES * megabytes, SPARE)
    if found.memory + found.workers > most:
        missed.append(f"memory MISSED: at most {most:.0f} MB")
    if found.through and median(found.through) > max(SECONDS * megabytes, 0.1):
        missed.append(f"time MISSED: at most {SECONDS * megabytes:.1f} s")
    return "; ".join(missed) or "met"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.lines", description=__doc__)
    add = parser.add_argument
    add("-k", metavar="CASE", action="append", help="only cases with this in their name")
    add("--way", choices=WAYS, action="append", help="one way only; may be given again")
    add("--megabytes", type=int, choices=MEGABYTES, action="append", help="one size only")
    chosen = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    failures = 0
    began, load = time.monotonic(), os.getloadavg()[0]
    for way in chosen.way or WAYS:
        for case in CASES:
            if chosen.k and not any(word in case.name for word in chosen.k):
                continue
            for megabytes in chosen.megabytes or MEGABYTES:
                progress(f"{way}: {case.name}, {megabytes} MB ...")
                try:
                    found = measured(way, case, megabytes)
                except Exception as problem:
                    failures += 1
                    cells = ("",) * (len(HEAD) - 4)
                    said = f"NOT MEASURED: {cause(problem)}"
                    rows.append((way, case.name, str(megabytes), *cells, said))
                else:
                    rows.append(row(way, case, megabytes, found))
    progress("")
    print(table.text(rows, HEAD, range(2, 8)))
    print(f"\n{table.machine(load)}; {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
