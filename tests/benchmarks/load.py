"""`python -m tests.benchmarks.load`: examples/agentdata under load, directly and through `serve`.

Each of several clients asks one thing after the other, without a pause: initialize, tools/list,
list_documents, get_document, batch_read. Ends with 1 if an answer was no success or not whole; a
missed target is a finding, no failure.
"""

import argparse
import os
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http.client import HTTPException
from itertools import count, cycle
from statistics import median, quantiles
from time import perf_counter
from typing import Any, Literal, NamedTuple

import msgspec

from tests.benchmarks import raw, table, web_client
from tests.benchmarks.commands import ROOT, service, sidecar, url
from tests.benchmarks.table import quantity
from tests.benchmarks.web_client import HttpClient, WrongAnswer
from tests.conformance.suite import free_port
from tests.soak.footprint import Footprint, footprint

Form = Literal["JSON", "stream"]
ACCEPT: dict[Form, str] = {"JSON": web_client.BOTH, "stream": web_client.STREAM}
SECONDS = 60.0
QUICK_SECONDS = 5.0
CLIENTS = (1, 5, 10)
STREAMED = 0.005  # seconds that an answer as a stream may take longer than as JSON
FIRST = 0.050  # seconds to the first byte of a stream, p95
LARGEST = 4 << 20  # bytes of an answer, at most
EXAMPLE = ROOT / "examples" / "agentdata"
PREFIX = "knowledge/"
PAGE = 50
PAGES = 40
READ_AT_ONCE = 3
HEAD = (
    *("clients", "kind", "direct p50", "p95", "JSON p50", "p95", "stream p50", "p95"),
    *("first byte p95", "target p95", ""),
)

# The kinds of requests: p95 may be so many seconds, for up to so many clients.
ANY = 10
KINDS: dict[str, dict[int, float]] = {
    "initialize": {ANY: 0.050},
    "tools/list": {ANY: 0.050},
    "list_documents": {1: 0.100, 5: 0.250, 10: 0.400},
    "get_document": {ANY: 0.200},
    "batch_read": {ANY: 0.300},
}


class Took(NamedTuple):
    """The seconds until an answer was whole, and until its body began."""

    whole: float
    first: float


class Tally:
    """The outcomes of all requests; several threads add to it."""

    def __init__(self) -> None:
        self.took: defaultdict[tuple[str, Form], list[Took]] = defaultdict(list)
        self.failures: Counter[str] = Counter()
        """The count of each failure: a status, a frame that was cut short, an error."""

    def summary(self, name: str) -> list[str]:
        answers, failures = sum(map(len, self.took.values())), self.failures.total()
        return [
            f"{answers} answers {name}, failures {failures}",
            *(f"{times} times: {failure}" for failure, times in self.failures.most_common(5)),
        ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.load", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=float, default=SECONDS, help="for each row of clients (default: 60)")
    add("--quick", action="store_true", help=f"{QUICK_SECONDS:.0f} seconds for each")
    add("-c", "--clients", type=int, action="append", help="how many at once (default: 1, 5, 10)")
    options = parser.parse_args()
    seconds = QUICK_SECONDS if options.quick else options.seconds
    start, load = time.monotonic(), os.getloadavg()[0]
    origin, port = free_port(), free_port()
    server = [sys.executable, str(EXAMPLE / "server.py"), "--http", str(origin)]
    own = ["--budget", "off", "--rules", str(EXAMPLE / "rules.yaml")]
    serve = [sys.executable, "-m", "proxy", *sidecar(port), *own, url(origin)]
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    failed = False
    with ExitStack() as stack:
        stack.enter_context(service(server, origin))
        serving = stack.enter_context(service(serve, port))
        ids = documents(port)
        run(port, ids, 2, min(1.0, seconds))  # what is made once is there from now on
        for clients in options.clients or CLIENTS:
            direct, _ = run(origin, ids, clients, seconds, paged=False)
            through, footprints = run(port, ids, clients, seconds, serving.pid)
            rows += [row(kind, clients, direct, through) for kind in KINDS]
            lines = [*direct.summary("directly"), *through.summary("through the sidecar")]
            lines.append("the sidecar: " + "; at the end ".join(map(footprint_text, footprints)))
            notes += [f"with {clients}: {line}" for line in lines]
            failed |= bool(direct.failures or through.failures)
    print(table.text(rows, HEAD, range(2, 9)))
    print("\n" + "\n".join(notes))
    took = f"{time.monotonic() - start:.0f} s, {seconds:g} s for each row of clients"
    print(f"\n{table.machine(load)}; {took}")
    return 1 if failed else 0


def run(
    port: int,
    ids: Sequence[str],
    clients: int,
    seconds: float,
    pid: int | None = None,
    paged: bool = True,
) -> tuple[Tally, list[Footprint]]:
    """Have so many clients ask for so long.

    Returns what came of it, and what the process `pid` had after a fifth of that and at the end.
    """
    tally, over = Tally(), threading.Event()
    threads = [
        threading.Thread(target=ask_on, args=(port, ids, number, tally, over, paged), daemon=True)
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    footprints: list[Footprint] = []
    for share in (1 / 5, 4 / 5):
        time.sleep(seconds * share)
        footprints += [footprint(pid)] if pid else []
    over.set()
    for thread in threads:
        thread.join()
    return tally, footprints


# What the clients ask


def ask_on(
    port: int,
    ids: Sequence[str],
    first: int,
    tally: Tally,
    over: threading.Event,
    paged: bool,
) -> None:
    """Send one request after the other until it is over, each round in another form.

    If lists are not `paged`, each comes whole, and there is one form.
    """
    memory = memoryview(bytearray(LARGEST))
    client = HttpClient(port, memory=memory)
    client.connect()
    numbers = count(10)
    forms: Sequence[Form] = ("JSON", "stream") if paged else ("JSON",)
    for form, requests in zip(cycle(forms), rounds(ids, first, paged), strict=False):
        client.wants(ACCEPT[form])
        for kind, arguments in requests:
            if over.is_set():
                client.close()
                return
            try:
                tally.took[kind, form].append(once(client, kind, next(numbers), arguments))
            except (WrongAnswer, OSError, EOFError, ValueError, HTTPException) as problem:
                tally.failures[f"{kind}: {type(problem).__name__}: {problem}"] += 1
                client.close()
                client = HttpClient(port, ACCEPT[form], memory=memory)
                client.connect()


def rounds(
    ids: Sequence[str], first: int, paged: bool
) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Yield what a client asks in turn, other pages and documents each time."""
    for turn in count(first * 7):
        page = {"limit": PAGE, "offset": turn % PAGES * PAGE} if paged else {}
        some = [ids[(turn * 5 + place) % len(ids)] for place in range(READ_AT_ONCE)]
        yield [
            ("initialize", {}),
            ("tools/list", {}),
            ("list_documents", {"prefix": PREFIX, **page}),
            ("get_document", {"document_id": some[0]}),
            ("batch_read", {"paths": some}),
        ]


def request(kind: str, number: int, arguments: dict[str, Any]) -> bytes:
    if kind == "initialize":
        return raw.INITIALIZE.replace(b'"id":0', b'"id":%d' % number)
    if kind == "tools/list":
        return raw.TOOLS_LIST.replace(b'"id":1', b'"id":%d' % number)
    return raw.tools_call(kind, msgspec.json.encode(arguments).decode(), number)


def documents(port: int) -> list[str]:
    """Return the ids of some documents that can be read, as the sidecar at that port lists them."""
    arguments = {"prefix": PREFIX, "limit": 100}
    with HttpClient(port) as client:
        client.connect()
        message = msgspec.json.decode(client.fetch(request("list_documents", 2, arguments)))
    listed = msgspec.json.decode(message["result"]["content"][0]["text"])["items"]
    return [row["document_id"] for row in listed]


def once(client: HttpClient, kind: str, number: int, arguments: dict[str, Any]) -> Took:
    """Send one request, and see that its answer is whole and no error.

    Raises WrongAnswer; EOFError and OSError if the connection ends, ValueError and HTTPException if
    what came is cut short.
    """
    body = request(kind, number, arguments)
    start = perf_counter()
    answer = client.ask(body)
    took = Took(perf_counter() - start, answer.first - start)
    message = answer.message()
    read = msgspec.json.decode(message, type=dict[str, msgspec.Raw])
    if bytes(read["id"]) != b"%d" % number or "result" not in read or b'"isError":true' in message:
        raise WrongAnswer(message[:200].decode(errors="replace"))
    return took


# What is told


def row(kind: str, clients: int, direct: Tally, through: Tally) -> tuple[str, ...]:
    plain = direct.took[kind, "JSON"]
    json, stream = through.took[kind, "JSON"], through.took[kind, "stream"]
    bound = next((limit for most, limit in KINDS[kind].items() if clients <= most), 0.0)
    cells = [str(clients), kind]
    for took in (plain, json, stream):
        whole = [each.whole for each in took]
        cells += [quantity(median(whole), "s"), quantity(p95(whole), "s")] if took else ["", ""]
    cells.append(quantity(p95([each.first for each in stream]), "s") if stream else "")
    cells += [f"< {quantity(bound, 's')}" if bound else "", verdict(bound, json, stream)]
    return tuple(cells)


def verdict(bound: float, json: Sequence[Took], stream: Sequence[Took]) -> str:
    if not json or not stream:
        return "not measured: too few answers"
    whole = p95([each.whole for each in (*json, *stream)])
    first = p95([each.first for each in stream])
    more = median(each.whole for each in stream) - median(each.whole for each in json)
    misses = []
    if bound and whole > bound:
        misses.append(f"MISSED by {whole / bound - 1:.0%}")
    if more > STREAMED:
        misses.append(f"stream MISSED: JSON and {quantity(more, 's')}")
    if first > FIRST:
        misses.append(f"first byte MISSED by {first / FIRST - 1:.0%}")
    return "; ".join(misses) or "met"


def footprint_text(at: Footprint) -> str:
    workers = f" and {at.workers:.1f} MB in workers" if at.workers else ""
    counted = f"{at.threads} threads, {at.descriptors} descriptors"
    return f"{at.resident:.1f} MB{workers}, {counted}"


def p95(seconds: Sequence[float]) -> float:
    return quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


if __name__ == "__main__":
    sys.exit(main())
