"""`mcp-abridge schema`: the JSON Schemas of rule files and configurations; or a reference page.

All are files that `make reference` writes.
"""

import argparse

from mcp_abridge.cli.terminal import put
from mcp_abridge.ruleset.selection import shipped

_FILES = {
    "--reference": "rules/REFERENCE.md",
    "--config": "examples/sidecar/schema.json",
    "--sidecar": "examples/sidecar/REFERENCE.md",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    instead = parser.add_mutually_exclusive_group()
    for flag, help in (
        ("--reference", "print the reference of the rule language instead, as Markdown"),
        ("--config", "print the schema of a configuration of serve instead"),
        ("--sidecar", "print the reference of serve instead, as Markdown"),
    ):
        instead.add_argument(flag, dest="file", action="store_const", const=_FILES[flag], help=help)
    parser.set_defaults(file="rules/schema.json")


def run(arguments: argparse.Namespace) -> int:
    """Print a schema, or a reference."""
    put(shipped(arguments.file).read_text(encoding="utf-8"))
    return 0
