"""`python -m tests.callers`: two callers in random orders on all roads; neither may see the other.

Prints how many combinations of road, era, store, fault and action it went through, and each finding
with its seed: `--seed` begins with that one. Ends with 1 if there is any. CALLERS_PROGRAM=PATH
tries another release of mcp-abridge. Linux only.
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
from tests.callers.roads import ROADS, TESTED, opened
from tests.redis_server import PROGRAM

STEPS = 80  # of one play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.callers", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=float, default=300.0, help="how long (default: 300)")
    add("--seed", type=int, default=1, help="the first of the random orders (default: 1)")
    options = parser.parse_args()
    stores = {(road, store) for road, stores in ROADS.items() for store in stores}
    ways = sorted(each for each in stores if "redis" not in each[1] or shutil.which(PROGRAM))
    print(f"{TESTED[0]}, {len(ways)} of {len(stores)} roads with their stores, seed {options.seed}")
    combinations: Counter[tuple[str, ...]] = Counter()
    findings: list[Finding] = []
    seed, sightings, end = options.seed, 0, monotonic() + options.seconds
    with TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        while monotonic() < end:
            road, store = ways[seed % len(ways)]
            with opened(road, store, Path(folder, str(seed))) as place:
                play = Play(place)
                play.run(steps(place, seed, STEPS), end)
            combinations += play.combinations
            findings += play.findings
            sightings += play.sightings.total()
            for finding in play.findings:
                print(f"seed {seed}: {finding}")
            seed += 1
    for part, name in enumerate(("roads", "eras", "stores", "faults", "actions")):
        counts: Counter[str] = Counter()
        for combination, count in combinations.items():
            counts[combination[part]] += count
        print(f"{name}: " + ", ".join(f"{key} {count}" for key, count in sorted(counts.items())))
    print(f"{len(combinations)} combinations of these in {combinations.total()} steps")
    print(f"secrets seen by those to whom they belong: {sightings}")
    print(f"findings: {dict(Counter(each.kind for each in findings)) or 'none'}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
