"""`call` without a tool: nobody else says what a server's definitions cost in each request."""

import argparse
import asyncio
from functools import partial
from typing import Any

from mcp_abridge.cli import options
from mcp_abridge.cli.server import Listed, arguments_of, edited, json_size, listing, with_needs
from mcp_abridge.cli.terminal import console, count_text, print_lines, show, table
from mcp_abridge.document.tokens import tokens
from mcp_abridge.replay.differences import to_json
from mcp_abridge.ruleset.rule import Definition, Rule
from mcp_abridge.ruleset.rule_set import RuleSet

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the list."""
    parser.add_argument("--json", action="store_true", help="print the list of tools as JSON")
    parser.add_argument(
        "--definitions",
        type=int,
        metavar="N",
        help="list the tools as with definition: {max_bytes: N} in a rule, such as 300",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each tool. Raises Silent if the server does not list its tools."""
    selection = options.selection(arguments)
    bare = asyncio.run(listing(arguments))
    rules = selection(bare.server, None).fitting(bare.tools)
    show(arguments, _rows(bare, rules, arguments.definitions), partial(_print, bare))
    return 0


def _rows(bare: Listed, rules: RuleSet, limit: int | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    short = Rule(name="short", tools=("*",), view=False, definition=Definition(max_bytes=limit))
    tools, _ = edited(bare.tools, RuleSet(otherwise=short))
    client_tools, edit = edited(tools, rules)
    for name, tool in bare.tools.items():
        definition = to_json(tool)
        hints, as_sent = tool.get("annotations") or {}, client_tools.get(name)
        arguments = arguments_of(tool).items()
        rows.append(
            {
                "tool": name,
                "arguments": [{"name": each, "required": need} for each, need in arguments],
                "bytes": len(definition),
                "tokens": tokens(definition.decode()),
                "as_sent": None if as_sent is None else json_size(as_sent),
                "hints": [hint.removesuffix("Hint") for hint in _HINTS if hints.get(hint)],
                "rules": [rule.name for rule in rules.covering(name)],
                "widget": edit.facts[name].app,
            }
        )
    return sorted(rows, key=lambda row: -row["bytes"])


def _print(bare: Listed, rows: list[dict[str, Any]]) -> None:
    printed = table("tool", ">bytes", ">about tokens", ">as sent", "hints", "rules")
    for row in rows:
        as_sent = "hidden" if row["as_sent"] is None else f"{row['as_sent']:,}"
        sizes = (f"{row['bytes']:,}", f"{row['tokens']:,}", as_sent)
        name = with_needs(row["tool"], arguments_of(bare.tools[row["tool"]]))
        printed.add_row(name, *sizes, ", ".join(row["hints"]), ", ".join(row["rules"]))
    console().print(printed)
    total, count = sum(row["bytes"] for row in rows), sum(row["tokens"] for row in rows)
    as_sent_total = sum(row["as_sent"] or 0 for row in rows)
    print_lines(
        f"{bare.server} {bare.version}".rstrip()
        + f": {count_text(len(rows), 'tool')} in {total:,} bytes, about {count:,}"
        f" tokens; {as_sent_total:,} bytes as sent.",
        "As sent: the bytes that a client gets, with arguments that rules add, such as view; the"
        " rule budget cuts the answers of tools that no rule file covers.",
    )
    if widgets := [row["tool"] for row in rows if row["widget"]]:
        clients = "A client that shows widgets (MCP Apps) has no budget for"
        print_lines(f"{clients} {', '.join(widgets)}.")
