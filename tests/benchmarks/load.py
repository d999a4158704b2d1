"""`python -m tests.benchmarks.load`: examples/agentdata under load, directly and through `serve`.

Each of several clients asks one thing after the other, without a pause: initialize, tools/list,
list_documents, get_document, batch_read. Ends with 1 where an answer was no success or not whole; a
missed target is a finding, no failure.
"""

import argparse
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median, quantiles

from tests.benchmarks import table
from tests.benchmarks.commands import ROOT, service, sidecar, url
from tests.benchmarks.mix import KINDS, Form, Kind, Tally, Took, ask_on, documents
from tests.benchmarks.table import quantity
from tests.conformance.suite import free_port
from tests.soak.footprint import Footprint, footprint

SECONDS = 60.0
QUICK_SECONDS = 5.0
CLIENTS = (1, 5, 10)
STREAMED = 0.005  # seconds that an answer as a stream may take longer than as JSON
FIRST = 0.050  # seconds to the first byte of a stream, p95
EXAMPLE = ROOT / "examples" / "agentdata"
HEAD = (
    *("clients", "kind", "direct p50", "p95", "JSON p50", "p95", "stream p50", "p95"),
    *("first byte p95", "target p95", ""),
)
FORMS: tuple[Form, ...] = ("JSON", "stream")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.load", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=float, default=SECONDS, help="for each row of clients (default: 60)")
    add("--quick", action="store_true", help=f"{QUICK_SECONDS:.0f} seconds for each")
    add("-c", "--clients", type=int, action="append", help="how many at once (default: 1, 5, 10)")
    chosen = parser.parse_args()
    seconds = QUICK_SECONDS if chosen.quick else chosen.seconds
    began, load = time.monotonic(), os.getloadavg()[0]
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
        run(port, ids, 2, min(1.0, seconds), FORMS)  # what is made once is there from now on
        for clients in chosen.clients or CLIENTS:
            direct, _ = run(origin, ids, clients, seconds, FORMS[:1], paged=False)
            through, footprints = run(port, ids, clients, seconds, FORMS, serving.pid)
            rows += [row(kind, clients, direct, through) for kind in KINDS]
            notes += [f"with {clients}: {line}" for line in said(direct, through, footprints)]
            failed |= bool(direct.failures or through.failures)
    print(table.text(rows, HEAD, range(2, 9)))
    print("\n" + "\n".join(notes))
    took = f"{time.monotonic() - began:.0f} s, {seconds:g} s for each row of clients"
    print(f"\n{table.machine(load)}; {took}")
    return 1 if failed else 0


def run(
    port: int,
    ids: Sequence[str],
    clients: int,
    seconds: float,
    forms: Sequence[Form],
    pid: int | None = None,
    paged: bool = True,
) -> tuple[Tally, list[Footprint]]:
    """Have so many clients ask for so long.

    Returns what came of it, and what the process `pid` had after a fifth of that and at the end.
    """
    tally, over = Tally(), threading.Event()
    asking = [
        threading.Thread(
            target=ask_on, args=(port, ids, number, forms, tally, over, paged), daemon=True
        )
        for number in range(clients)
    ]
    for thread in asking:
        thread.start()
    time.sleep(seconds / 5)
    footprints = [footprint(pid)] if pid else []
    time.sleep(seconds * 4 / 5)
    footprints += [footprint(pid)] if pid else []
    over.set()
    for thread in asking:
        thread.join()
    return tally, footprints


def row(kind: Kind, clients: int, direct: Tally, through: Tally) -> tuple[str, ...]:
    plain = direct.took[kind.name, "JSON"]
    json, stream = (through.took[kind.name, form] for form in FORMS)
    bound = kind.bound(clients)
    cells = [str(clients), kind.name]
    for took in (plain, json, stream):
        whole = [each.whole for each in took]
        cells += [quantity(median(whole), "s"), quantity(p95(whole), "s")] if took else ["", ""]
    cells.append(quantity(p95([each.first for each in stream]), "s") if stream else "")
    cells += [f"< {quantity(bound, 's')}" if bound else "", verdict(bound, json, stream)]
    return tuple(cells)


def verdict(bound: float, json: Sequence[Took], stream: Sequence[Took]) -> str:
    if not json or not stream:
        return "not measured: too few answers"
    found = p95([each.whole for each in (*json, *stream)])
    first = p95([each.first for each in stream])
    more = median(each.whole for each in stream) - median(each.whole for each in json)
    missed = []
    if bound and found > bound:
        missed.append(f"MISSED by {found / bound - 1:.0%}")
    if more > STREAMED:
        missed.append(f"stream MISSED: JSON and {quantity(more, 's')}")
    if first > FIRST:
        missed.append(f"first byte MISSED by {first / FIRST - 1:.0%}")
    return "; ".join(missed) or "met"


def said(direct: Tally, through: Tally, footprints: Sequence[Footprint]) -> list[str]:
    lines = [
        f"{direct.answers()} answers directly, {through.answers()} through the sidecar, "
        f"failures {direct.failures.total()} and {through.failures.total()}"
    ]
    for name, tally in (("directly", direct), ("through the sidecar", through)):
        most = tally.failures.most_common(5)
        lines += [f"{name}, {times} times: {failure}" for failure, times in most]
    if footprints:
        lines.append("the sidecar: " + "; at the end ".join(map(held, footprints)))
    return lines


def held(at: Footprint) -> str:
    workers = f" and {at.workers:.1f} MB in workers" if at.workers else ""
    counted = f"{at.threads} threads, {at.descriptors} descriptors"
    return f"{at.resident:.1f} MB{workers}, {counted}"


def p95(seconds: Sequence[float]) -> float:
    """Return the 95th percentile.

    >>> p95([0.1] * 99 + [9.0])
    0.1
    """
    return quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


if __name__ == "__main__":
    sys.exit(main())
