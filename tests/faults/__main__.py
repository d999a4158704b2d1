"""`python -m tests.faults`: runs every test of a fault, and prints the table of faults.

Ends with 1 if a row is not held. Further arguments go to pytest.
"""

import argparse
import os
import subprocess
import sys

TABLE = ["-m", "fault or long_form", "-p", "tests.faults.table"]
TABLE += ["-o", "testpaths=tests"]  # documentation shows no faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    about = "what `make test` runs; the table says what is left out"
    parser.add_argument("--short", action="store_true", help=about)
    options, further = parser.parse_known_args()
    slow = [] if options.short else ["-o", "faulthandler_timeout=900"]  # for 10,000 sessions
    env = {**os.environ, "FAULTS": "short" if options.short else "long"}
    command = [sys.executable, "-m", "pytest", *TABLE, *slow, *further]
    return subprocess.run(command, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
