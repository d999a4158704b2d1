"""`python -m tests.conformance`: runs the official suite directly and through each leg.

Ends with 1 if a check that passes directly does not pass through the proxy though the leg can
pass it, if an answer that no rule covers is altered, or if a leg could not be run.
"""

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance import report
from tests.conformance.checks import Run
from tests.conformance.install import everything, install_all
from tests.conformance.legs import LEGS, REVISIONS, Leg
from tests.conformance.suite import Unusable, free_port, run, serving
from tests.servers.install import NotInstalled


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    short = "fewer legs, each with one revision: less long"
    parser.add_argument("--short", action="store_true", help=short)
    options = parser.parse_args()
    # An end from outside ends what was started here too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        install_all(os.environ)
    except NotInstalled as problem:
        sys.exit(f"the conformance suite could not be installed: {problem}")
    revisions = {
        name: leg.short if options.short else tuple(REVISIONS)
        for name, leg in LEGS.items()
        if leg.short or not options.short
    }
    failed = False
    with TemporaryDirectory() as folder:
        try:
            for row in every(revisions, Path(folder)):
                print(row.text, *(f"  {each}" for each in row.findings), sep="\n", flush=True)
                failed |= bool(row.findings)
        except Unusable as problem:
            sys.exit(f"there is nothing to compare with: {problem}")
    return int(failed)


def every(revisions: Mapping[str, tuple[str, ...]], folder: Path) -> Iterator[report.Row]:
    """Run each leg, after the direct runs that it is compared with."""
    port = free_port()
    upstream = f"http://127.0.0.1:{port}/mcp"
    direct: dict[str, Run] = {}
    with serving(everything(port), port, folder / "everything.log", os.environ):
        for revision in (each for each in REVISIONS if each in {*sum(revisions.values(), ())}):
            direct[revision] = run(upstream, revision, folder / "direct" / revision)
            yield report.direct(revision, direct[revision], REVISIONS[revision])
        with ThreadPoolExecutor() as pool:
            running = {
                name: pool.submit(through, LEGS[name], own, upstream, folder / name)
                for name, own in revisions.items()
            }
            for name in running:
                try:
                    here = running[name].result()
                except Unusable as problem:
                    yield report.Row(f"{name} NOT RUN", [str(problem)])
                    continue
                for revision, result in here.items():
                    yield report.through(name, LEGS[name], revision, direct[revision], result)


def through(leg: Leg, revisions: tuple[str, ...], upstream: str, folder: Path) -> dict[str, Run]:
    """Run the suite through a leg. Raises Unusable."""
    folder.mkdir()
    port = free_port()
    # Neither the user's settings of the proxy nor their ledger have anything to do with it.
    env = {name: text for name, text in os.environ.items() if not name.startswith("MCP_ABRIDGE_")}
    env["XDG_STATE_HOME"] = str(folder / "state")
    with serving(leg.command(port, upstream), port, folder / "proxy.log", env):
        url = f"http://127.0.0.1:{port}/mcp"
        return {revision: run(url, revision, folder / revision) for revision in revisions}


if __name__ == "__main__":
    sys.exit(main())
