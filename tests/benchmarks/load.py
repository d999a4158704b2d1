"""`python -m tests.benchmarks.load`: examples/agentdata under load, alone and through `serve`.

Each of several clients asks one thing after the other, without a pause: initialize, tools/list,
list_documents, get_document, batch_read. Every second list begins with the first page. Alone, the
server has neither pages nor event streams: a list is all of it. Ends with 1 if an answer was no
success or not whole.
"""

import argparse
import os
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import msgspec

from tests.benchmarks import raw, table
from tests.benchmarks.commands import ROOT, service, sidecar, url
from tests.benchmarks.table import quantity
from tests.benchmarks.web_client import HttpClient, WrongAnswer
from tests.conformance.suite import free_port
from tests.faults.sidecar import EVENTS
from tests.reference import markdown
from tests.soak.footprint import footprint

SECONDS = 60.0
QUICK_SECONDS = 5.0
CLIENTS = (1, 5, 10)
EXAMPLE = ROOT / "examples" / "agentdata"
PREFIX = "knowledge/"
PAGE = 50
PAGES = 40
READ_AT_ONCE = 3
HEAD = ("clients", "request", "alone p50", "p95", "through p50", "p95", "target")
STREAM, FIRST_BYTE = "get_document, SSE", "its first byte"
# The most milliseconds at p95 with as many clients as in CLIENTS, as users of the server asked for.
TARGETS = {
    "initialize": (50,),
    "tools/list": (50,),
    "list_documents": (100, 250, 400),
    "get_document": (200,),
    "batch_read": (300,),
    STREAM: (),
    FIRST_BYTE: (50,),
}
KINDS = tuple(TARGETS)


class Tally:
    """The seconds of each kind of request, and the count of each failure; of several threads."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.failures: Counter[str] = Counter()

    def summary(self, name: str) -> list[str]:
        counted = (len(seconds) for kind, seconds in self.seconds.items() if kind != FIRST_BYTE)
        answers, failures = sum(counted), self.failures.total()
        return [
            f"{answers:,} answers {name}, failures {failures}",
            *(f"{times} times: {failure}" for failure, times in self.failures.most_common(5)),
        ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.load", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=float, default=SECONDS, help="for each row of clients (default: 60)")
    add("--quick", action="store_true", help=f"{QUICK_SECONDS:.0f} seconds for each")
    add("--write", action="store_true", help="write the table into the README of the example")
    add("-c", "--clients", type=int, action="append", help="how many at once (default: 1, 5, 10)")
    options = parser.parse_args()
    seconds = QUICK_SECONDS if options.quick else options.seconds
    start, load = time.monotonic(), os.getloadavg()[0]
    origin, port = free_port(), free_port()
    server = [sys.executable, str(EXAMPLE / "server.py"), "--http", str(origin)]
    own = ["--budget", "off", "--rules", str(EXAMPLE / "rules.yaml")]
    serve = [sys.executable, "-m", "mcp_abridge", *sidecar(port), *own, url(origin)]
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    failed = False
    with ExitStack() as stack:
        stack.enter_context(service(server, origin))
        pid = stack.enter_context(service(serve, port)).pid
        ids = documents(port)
        run(port, ids, 10, min(3.0, seconds))  # what is made once is there from now on
        before = footprint(pid)
        for clients in options.clients or CLIENTS:
            alone = run(origin, ids, clients, seconds, through=False)
            through = run(port, ids, clients, seconds)
            rows += [row(kind, clients, alone, through) for kind in KINDS]
            lines = [*alone.summary("alone"), *through.summary("through the sidecar")]
            notes += [f"with {clients}: {line}" for line in lines]
            failed |= bool(alone.failures or through.failures)
        after = footprint(pid)
    print(table.text(rows, HEAD, range(2, 7)))
    print("\n" + "\n".join(notes))
    print(
        f"the sidecar: {before.resident:.0f} MB and {before.threads} threads before, "
        f"{after.resident:.0f} MB and {after.threads} after"
    )
    took = f"{time.monotonic() - start:.0f} s, {seconds:g} s for each row of clients"
    machine = f"{table.machine(load)}; {took}"
    print(f"\n{machine}")
    if options.write:
        page = EXAMPLE / "README.md"
        block = f"{markdown.table(HEAD, rows)}\n\n{machine}."
        page.write_text(markdown.rendered(page.read_text(), {"load": block}))
    return 1 if failed else 0


def run(
    port: int, ids: Sequence[str], clients: int, seconds: float, *, through: bool = True
) -> Tally:
    """Have so many clients ask for so long, `through` the sidecar or the server alone."""
    tally, over = Tally(), threading.Event()
    threads = [
        threading.Thread(target=ask_on, args=(port, rounds(ids, number, through), tally, over))
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    over.set()
    for thread in threads:
        thread.join()
    return tally


Request = tuple[str, dict[str, Any]]


def ask_on(port: int, requests: Iterator[Request], tally: Tally, over: threading.Event) -> None:
    client = HttpClient(port)
    client.connect()
    for number, (kind, arguments) in enumerate(requests, 10):
        if over.is_set():
            break
        try:
            first_byte, seconds = once(client, kind, number, arguments)
            tally.seconds[kind].append(seconds)
            if kind == STREAM:
                tally.seconds[FIRST_BYTE].append(first_byte)
        except (WrongAnswer, OSError, EOFError, ValueError) as problem:
            tally.failures[f"{kind}: {type(problem).__name__}: {problem}"] += 1
            client.socket.close()
            client = HttpClient(port)
            client.connect()
    client.socket.close()


def rounds(ids: Sequence[str], first: int, through: bool) -> Iterator[Request]:
    for turn in count(first * 7):
        offset = turn % 2 * (turn % PAGES) * PAGE
        page = {"limit": PAGE, "offset": offset} if through else {}
        some = [ids[(turn * 5 + place) % len(ids)] for place in range(READ_AT_ONCE)]
        yield "initialize", {}
        yield "tools/list", {}
        yield "list_documents", {"prefix": PREFIX, **page}
        yield "get_document", {"document_id": some[0]}
        yield "batch_read", {"paths": some}
        if through:
            yield STREAM, {"document_id": some[0]}


def request(kind: str, number: int, arguments: dict[str, Any]) -> bytes:
    if kind == "initialize":
        return raw.INITIALIZE.replace(b'"id":0', b'"id":%d' % number)
    if kind == "tools/list":
        return raw.TOOLS_LIST.replace(b'"id":1', b'"id":%d' % number)
    return raw.tools_call(kind.partition(",")[0], msgspec.json.encode(arguments).decode(), number)


def documents(port: int) -> list[str]:
    """Return the ids of some documents that can be read, as the sidecar at that port lists them."""
    arguments = {"prefix": PREFIX, "limit": 100}
    with HttpClient(port) as client:
        client.connect()
        message = msgspec.json.decode(client.fetch(request("list_documents", 2, arguments)))
    listed = msgspec.json.decode(message["result"]["content"][0]["text"])["items"]
    return [row["document_id"] for row in listed]


def once(
    client: HttpClient, kind: str, number: int, arguments: dict[str, Any]
) -> tuple[float, float]:
    """Send one request; return the seconds until its answer begins, and until it is whole.

    Raises WrongAnswer; EOFError and OSError if the connection ends, ValueError if what came is cut.
    """
    body = request(kind, number, arguments)
    start = perf_counter()
    response = client.ask(body, *([EVENTS] if kind == STREAM else []))
    took = perf_counter() - start
    message = response.messages[-1]
    read = msgspec.json.decode(message, type=dict[str, msgspec.Raw])
    if bytes(read["id"]) != b"%d" % number or "result" not in read or b'"isError":true' in message:
        raise WrongAnswer(message[:200].decode(errors="replace"))
    return client.first_byte - start, took


def row(kind: str, clients: int, alone: Tally, through: Tally) -> tuple[str, ...]:
    cells = [str(clients), kind]
    for seconds in (alone.seconds[kind], through.seconds[kind]):
        figures = (median(seconds), p95(seconds)) if seconds else ()
        cells += [quantity(each, "s") for each in figures] or ["", ""]
    targets = dict(zip(CLIENTS, TARGETS[kind], strict=False))
    return (*cells, f"< {targets[clients]} ms" if clients in targets else "")


def p95(seconds: Sequence[float]) -> float:
    return quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


if __name__ == "__main__":
    sys.exit(main())
