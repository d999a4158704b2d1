"""`python -m tests.callers`: two callers in random orders on all roads; neither may see the other.

CALLERS_PROGRAM=PATH names another release of mcp-abridge to be tried.

Prints how many combinations of road, era, store, fault and action it went through, and every
finding with the seed that it comes from: `--seed` begins with that one. Ends with 1 if there is
any. Linux only.
"""

import argparse
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from tests.callers.play import Finding, Play, steps
from tests.callers.roads import ROADS, TESTED, opened, two_callers
from tests.redis_server import PROGRAM

STEPS = 80  # of one play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.callers", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=float, default=300.0, help="how long (default: 300)")
    add("--seed", type=int, default=1, help="the first of the random orders (default: 1)")
    options = parser.parse_args()
    roads = [
        (road, store)
        for road, stores in ROADS.items()
        for store in stores
        if "redis" not in store or shutil.which(PROGRAM)
    ]
    print(f"{' '.join(TESTED[:1])}, seed {options.seed}; {len(roads)} roads with their stores")
    combinations: Counter[tuple[str, ...]] = Counter()
    shown: Counter[str] = Counter()
    findings: list[Finding] = []
    seed, end = options.seed, monotonic() + options.seconds
    with TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        while monotonic() < end:
            road, store = roads[seed % len(roads)]
            callers = two_callers()
            with opened(road, store, callers, Path(folder, str(seed))) as place:
                play = Play(place, store, callers)
                play.run(steps(place, seed, STEPS), end)
                play.close()
            combinations += play.combinations
            shown += play.shown
            for finding in play.findings:
                print(f"seed {seed}: {finding}")
            findings += play.findings
            seed += 1
    print_counts(combinations)
    print(f"secrets seen by whom they belong to: {shown.total()}")
    print(f"findings: {dict(Counter(each.kind for each in findings)) or 'none'}")
    return 1 if findings else 0


def print_counts(combinations: Counter[tuple[str, ...]]) -> None:
    """Print how often each part of a combination was tried, in how many combinations."""
    for part, name in enumerate(("road", "era", "store", "fault", "action")):
        steps_of: Counter[str] = Counter()
        for combination, count in combinations.items():
            steps_of[combination[part]] += count
        print(f"{name}: " + ", ".join(f"{key} {count}" for key, count in sorted(steps_of.items())))
    print(f"{len(combinations)} combinations of these in {combinations.total()} steps")


if __name__ == "__main__":
    sys.exit(main())
