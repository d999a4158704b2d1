"""`mcp-abridge check`: load rule files, or list every problem in them with its place."""

import argparse

from mcp_abridge.cli import takes_rules
from mcp_abridge.cli.terminal import count_text, print_lines


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    takes_rules(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each valid file, and every problem of the other files.

    Returns 1 if there are problems, 2 if a file could not be read at all.
    """
    from mcp_abridge.replay.cases import absent_files
    from mcp_abridge.ruleset.selection import readings

    code = 0
    for reading in readings(arguments.rules, allow_python=arguments.allow_python):
        absent = [] if reading.rules is None else list(absent_files(reading.rules))
        print_lines(*map(str, (*reading.problems, *absent)), stderr=True)
        if reading.rules is not None and not absent:
            rules = reading.rules.rules
            tests = sum(len(rule.tests) for rule in rules)
            counts = f"{count_text(len(rules), 'rule')}, {count_text(tests, 'test')}"
            print_lines(f"ok: {reading.rules.name}: {counts}")
        else:
            code = max(code, 1 if reading.readable else 2)
    return code
