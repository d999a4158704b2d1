"""Calls of a server's tools that only read: without it, a first rule waits for recorded work."""

import argparse
import asyncio
import re
from functools import partial
from typing import Any

from mcp_abridge.cli.call import UnusableCall, parsed, values_of
from mcp_abridge.cli.server import Listed, Tools, arguments_of, listing, with_needs
from mcp_abridge.cli.terminal import check_output, json_text, say, short_list
from mcp_abridge.errors import AbridgeError
from mcp_abridge.system import platform

_WIDTH = 200  # characters of an error

Plan = list[tuple[str, dict[str, Any]]]
"""Calls: tools with their arguments."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the option for further calls."""
    parser.add_argument(
        "--sample",
        action="append",
        default=[],
        metavar="'TOOL ARGUMENTS'",
        help="also call this tool of the server, with NAME=VALUE ... or one JSON object",
    )


def record(arguments: argparse.Namespace, folder: str) -> str:
    """Call the tools of a server, and record that in a folder; return the server's name.

    Without a file for the rules, the arguments get one. Raises AbridgeError.
    """
    for _, words in map(_split, arguments.sample):
        parsed(words)  # a mistake should not wait for the server

    async def call(client: Any, listed: Listed) -> None:
        arguments.output = arguments.output or re.sub(r"[^\w.-]+", "-", listed.server) + ".yaml"
        check_output(arguments.output, force=arguments.force)
        tools = listed.tools
        plan: Plan = [
            (name, {}) for name, tool in tools.items() if _reads(tool) and not _required(tool)
        ]
        samples = map(_split, arguments.sample)
        plan += [(name, values_of(name, words, tools)) for name, words in samples]
        await _call(client, plan, tools)
        if not plan:
            raise AbridgeError("no tool was called, so that there is nothing to draft from")

    masks = [word for text in arguments.redact or () for word in ("--redact", text)]
    listed = asyncio.run(listing(arguments, call, more=["--record", folder, *masks]))
    for _, line in listed.log:
        _say(line)
    return listed.server


def _reads(tool: dict[str, Any]) -> bool:
    return (tool.get("annotations") or {}).get("readOnlyHint") is True


def _required(tool: dict[str, Any]) -> list[str]:
    return [name for name, required in arguments_of(tool).items() if required]


def _split(text: str) -> tuple[str, list[str]]:
    name, _, rest = text.strip().partition(" ")
    words = rest.strip()
    try:
        return name, [words] if words.startswith("{") else platform.split(words)
    except ValueError as error:
        raise UnusableCall(f"{words!r}: {error}") from None


async def _call(client: Any, plan: Plan, tools: Tools) -> None:
    for name, values in plan:
        try:
            result = await client.call_tool(name, values)
            state = f"an error{_first_line(result)}" if result.is_error else "done"
        except Exception as error:  # a JSON-RPC error, which is no reason to stop
            state = str(error)
        _say(f"called {name} {json_text(values)}: {state}")
    _name_others([name for name in tools if not any(name == each for each, _ in plan)], tools)


def _first_line(result: Any) -> str:
    lines = "\n".join(getattr(block, "text", "") for block in result.content).split("\n")
    return next((f": {line.strip()[:_WIDTH]}" for line in lines if line.strip()), "")


def _name_others(others: list[str], tools: Tools) -> None:
    reading = [name for name in others if _reads(tools[name])]
    changing = [name for name in others if name not in reading]
    for names, reason in ((reading, "need arguments"), (changing, "do not declare readOnlyHint")):
        if names:
            signatures = [with_needs(name, arguments_of(tools[name])) for name in names]
            _say(f"not called, since they {reason}: {short_list(signatures)}")
    if others:
        name = (reading or others)[0]
        words = " ".join([name, *(f"{each}='...'" for each in _required(tools[name]))])
        _say(f'--sample "{words}" calls such a tool; JSON will do, too')


_say = partial(say, "suggest")
