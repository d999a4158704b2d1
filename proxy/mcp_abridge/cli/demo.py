"""`demo`: the bytes that a model sees of real servers, directly and through the proxy."""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_abridge.cli.terminal import table
from mcp_abridge.ruleset.selection import shipped
from mcp_abridge.transports.own_process import own_command

if TYPE_CHECKING:
    from mcp_types import CallToolResult


class Act(NamedTuple):
    """One call: an example server, its rules (None: only a budget), the tool, the arguments."""

    server: str
    rules: str | None
    tool: str
    arguments: dict[str, Any]


_ACTS = (
    Act("fullsync", "rules.yaml", "roxtra_index_full_sync_status", {}),
    Act("fullsync", None, "roxtra_index_full_sync_status", {}),
    Act("obsidian", "rules.yaml", "list_vault_files", {}),
    Act("obsidian", "rules.yaml", "get_active_file", {}),
    Act("obsidian", "rules.yaml", "search_vault_simple", {"query": "migration"}),
    Act("obsidian", None, "list_vault_files", {}),
)


def add(parser: argparse.ArgumentParser) -> None:
    """Set the description of the verb; it has no options."""
    parser.description = (
        "Start two example servers, directly and through the proxy, make the same calls with the "
        "official client, and show how many bytes of each answer the model sees."
    )


def run(_: argparse.Namespace) -> int:
    """Make the calls and print the table."""
    from rich.console import Console

    with Console(stderr=True).status("asking the servers, directly and through the proxy"):
        sizes = asyncio.run(_perform())
    title = "bytes of the answer that the model sees"
    rows = table("server", "rules", "call", ">before", ">after", ">times\nsmaller", title=title)
    for act, (before, after) in zip(_ACTS, sizes, strict=True):
        arguments = ", ".join(f"{name}: {value!r}" for name, value in act.arguments.items())
        rules = act.rules or "none, 10 kB"
        cells = (f"{before:,}", f"{after:,}", f"{before / after:,.0f}")
        rows.add_row(act.server, rules, f"{act.tool}({arguments})", *cells)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(rows)
    console.print(
        "Each call ran once on the real server. 'none, 10 kB': without rules, bounded at 10 kB.\n"
        "A framework passes on all of a direct answer. A client cuts it: beyond 50,000 characters\n"
        "Claude Code shows an error and a file's name, so there you gain the rows.\n"
        "Try your own: mcp-abridge -- <the command of an MCP server>"
    )
    return 0


async def _perform() -> list[tuple[int, int]]:
    sizes: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory(prefix="mcp-abridge-demo-") as directory:
        for server, group in groupby(_ACTS, key=lambda act: act.server):
            acts = list(group)
            folder = shipped("examples") / server
            command = [sys.executable, str(folder / "server.py")]
            before = await _calls(command, acts, directory)
            for rules, ruled in groupby(acts, key=lambda act: act.rules):
                options = ["--rules", str(folder / rules)] if rules else ["--budget", "10kB"]
                wrapper = own_command("-q", "--ledger", "off", *options, "--")
                after = await _calls([*wrapper, *command], ruled, directory)
                sizes += [(before[tool], size) for tool, size in after.items()]
    return sizes


async def _calls(command: list[str], acts: Iterable[Act], directory: str) -> dict[str, int]:
    """Call each tool once; return the bytes of its answer that the model sees."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    program, *words = command
    server = StdioServerParameters(command=program, args=words, env=dict(os.environ), cwd=directory)
    with open(os.devnull, "w", encoding="utf-8") as quiet:
        async with Client(stdio_client(server, errlog=quiet)) as client:
            await client.list_tools()
            calls = {act.tool: act.arguments for act in acts}
            return {
                tool: _visible(await client.call_tool(tool, arguments))
                for tool, arguments in calls.items()
            }


def _visible(result: "CallToolResult") -> int:
    """Return the bytes that the model reads: structuredContent if there is one, else the text."""
    import msgspec
    from mcp_types import TextContent

    if result.structured_content is not None:
        return len(msgspec.json.encode(result.structured_content))
    texts = (block.text for block in result.content if isinstance(block, TextContent))
    return sum(len(text.encode()) for text in texts)
