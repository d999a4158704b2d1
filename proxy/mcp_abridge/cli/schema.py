"""`mcp-abridge schema`: the JSON Schemas of rule files and configurations; or a reference page.

All are files that `make reference` writes.
"""

import argparse

from mcp_abridge.cli.terminal import put
from mcp_abridge.ruleset.selection import shipped


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    instead = parser.add_mutually_exclusive_group()
    for flag, file, noun in (
        ("--reference", "rules/REFERENCE.md", "the reference of the rule language"),
        ("--config", "examples/sidecar/schema.json", "the schema of a configuration of serve"),
        ("--sidecar", "examples/sidecar/REFERENCE.md", "the reference of serve"),
    ):
        help = f"print {noun} instead{', as Markdown' * file.endswith('.md')}"
        instead.add_argument(flag, dest="file", action="store_const", const=file, help=help)
    parser.set_defaults(file="rules/schema.json")


def run(arguments: argparse.Namespace) -> int:
    """Print a schema, or a reference."""
    put(shipped(arguments.file).read_text(encoding="utf-8"))
    return 0
