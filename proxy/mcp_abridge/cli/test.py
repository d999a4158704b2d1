"""`mcp-abridge test`: run the cases of rule files, and print a diff for each failure."""

import argparse
import time

from mcp_abridge.cli import takes_rules
from mcp_abridge.cli.terminal import print_lines, refuse
from mcp_abridge.replay import cases
from mcp_abridge.ruleset.selection import load


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    takes_rules(parser)
    parser.add_argument(
        "-k", metavar="NAME", default="", help="run only cases whose `rule: name` holds this text"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the cases.

    Returns 1 if a case fails, 2 if no case matches `-k`. Raises RuleErrors if a file does not load.
    """
    started = time.perf_counter()
    files = load(arguments.rules, allow_python=arguments.allow_python)
    results = [result for file in files for result in cases.run(file, arguments.k)]
    for result in results:
        if not result.ok:
            print_lines(f"FAILED {result.place}: {result.rule}: {result.case}")
            print_lines(*(f"    {line}" for line in result.message.split("\n")))
    failed = sum(not result.ok for result in results)
    counts = [f"{len(results) - failed} passed"]
    counts += [f"{failed} failed"] if failed else []
    print_lines(f"{', '.join(counts)} in {time.perf_counter() - started:.2f} s")
    if arguments.k and not results:
        return refuse("test", f"no case has {arguments.k!r} in its rule or its name")
    return int(failed > 0)
