"""`mcp-abridge schema`: the JSON Schema of rule files or configurations; or a reference.

All are files that `make reference` writes.
"""

import argparse

from mcp_abridge.cli.terminal import put
from mcp_abridge.ruleset.selection import shipped

_RULES = "rules/REFERENCE.md"
_PAGE = "rules/reference/{}.md"
PAGES = ("steps", "values", "keys", "tests", "views", "clients", "resources", "contracts", "errors")
"""The pages that the reference of the rule language leads to, in its order."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--reference",
        nargs="?",
        choices=PAGES,
        const=True,
        metavar="PAGE",
        help=f"print the reference of the rule language instead, as Markdown: all of it, or one of "
        f"its pages: {', '.join(PAGES)}",
    )
    for flag, file, noun in (
        ("--config", "examples/sidecar/schema.json", "the schema of a configuration of serve"),
        ("--sidecar", "examples/sidecar/REFERENCE.md", "the reference of serve"),
    ):
        help = f"print {noun} instead{', as Markdown' * file.endswith('.md')}"
        instead.add_argument(flag, dest="file", action="store_const", const=file, help=help)
    parser.set_defaults(file="rules/schema.json")


def run(arguments: argparse.Namespace) -> int:
    """Print a schema, or a reference."""
    match arguments.reference:
        case None:
            files = [arguments.file]
        case True:
            files = [_RULES, *map(_PAGE.format, PAGES)]
        case page:
            files = [_PAGE.format(page)]
    put("\n".join(shipped(file).read_text(encoding="utf-8") for file in files))
    return 0
