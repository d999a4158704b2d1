"""`python -m tests.faults`: runs every test of a fault, and prints the table of faults.

Ends with 1 where a row is not held. Further arguments go to pytest.
"""

import argparse
import os
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    add = parser.add_argument
    add(
        "--short",
        action="store_true",
        help="what `make test` runs; the table says what is left out",
    )
    chosen, further = parser.parse_known_args()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "fault or long_form",
        "-p",
        "tests.faults.table",
    ]
    command += ["-o", "testpaths=tests"]  # documentation shows no faults
    if not chosen.short:
        command += [
            "-o",
            "faulthandler_timeout=900",
        ]  # for 10,000 sessions
    env = {**os.environ, "FAULTS": "short" if chosen.short else "long"}
    return subprocess.run([*command, *further], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
