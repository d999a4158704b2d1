"""`init`: without it, a first rule takes five commands and the reading of a long answer."""

import argparse
import asyncio
import re
import shlex
import sys
import tempfile
from functools import partial
from typing import Any

from mcp_abridge.cli import PROGRAM, check, options, test
from mcp_abridge.cli.call import UnusableCall, parsed, values_of
from mcp_abridge.cli.server import Listed, Tools, arguments_of, listing, with_needs
from mcp_abridge.cli.suggest import suggest
from mcp_abridge.cli.suggest.draft import short_list
from mcp_abridge.cli.terminal import ask, check_output, json_text, refuse_error, say
from mcp_abridge.replay.recordings import sessions

_WIDTH = 200  # characters of an error

Plan = list[tuple[str, dict[str, Any]]]
"""Calls: tools with their arguments."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    options.add_server(parser, "record", "redact")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the rule file to write (default: SERVER.yaml)"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it is there")
    parser.add_argument(
        "--sample",
        action="append",
        default=[],
        metavar="'TOOL ARGUMENTS'",
        help="also call this tool, with NAME=VALUE ... or one JSON object",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the rules. Returns 1 if no file was written; raises AbridgeError or OSError."""
    server = options.server_words(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.output:
            check_output(arguments.output, force=arguments.force)
        for _, words in map(_split, arguments.sample):
            parsed(words)  # a mistake should not wait for the server
        return _init(arguments, server, arguments.record or scratch)


def _init(arguments: argparse.Namespace, server: list[str], folder: str) -> int:
    async def call(client: Any, listed: Listed) -> list[str]:
        check_output(_path(arguments, listed), force=arguments.force)
        tools = listed.tools
        plan: Plan = [
            (name, {}) for name, tool in tools.items() if _reads(tool) and not _required(tool)
        ]
        samples = map(_split, arguments.sample)
        plan += [(name, values_of(name, words, tools)) for name, words in samples]
        plan += _asked_for(tools, plan) if sys.stdin.isatty() else []
        return await _call(client, plan, tools)

    words = ["--record", folder, *options.server_words(arguments, "redact", "header")]
    listed = asyncio.run(listing(words, arguments.deadline, call))
    for _, line in listed.log:
        _say(line)
    path = _path(arguments, listed)
    recordings = (
        each
        for each in sessions([folder], partial(refuse_error, "init"))
        if each.server == listed.server
    )
    suggestion = suggest(((each, []) for each in recordings), used=False)
    suggestion.show()
    drafted = {tool for rule in suggestion.rules for tool in rule.tools}
    others = drafted.union(suggestion.small, suggestion.unusable)
    if rest := [name for name in listed.answer if name not in others]:
        _say(f"no rule for {', '.join(rest)}: nothing to take off")
    if not suggestion.rules:
        reason = "nothing to take off" if listed.answer else "no call had a result"
        _say(f"no file written: {reason}")
        return 1
    suggestion.write(path, force=arguments.force)
    file = argparse.Namespace(
        rules=[path], allow_python=False, update=False, k="", junit=None, require_tests=True
    )
    code = check.run(file) or test.run(file)
    _say(
        f"next: read {path}; then put it to use:",
        f"{PROGRAM} --rules {shlex.quote(path)} {shlex.join(server)}",
        f"{PROGRAM} wrap NAME --rules {shlex.quote(path)}    (a server of your clients)",
    )
    return code


def _path(arguments: argparse.Namespace, listed: Listed) -> str:
    return arguments.output or re.sub(r"[^\w.-]+", "-", listed.server) + ".yaml"


def _reads(tool: dict[str, Any]) -> bool:
    return (tool.get("annotations") or {}).get("readOnlyHint") is True


def _required(tool: dict[str, Any]) -> list[str]:
    return [name for name, required in arguments_of(tool).items() if required]


def _split(text: str) -> tuple[str, list[str]]:
    name, _, rest = text.strip().partition(" ")
    return name, _words(rest.strip())


def _words(text: str) -> list[str]:
    try:
        return [text] if text.startswith("{") else shlex.split(text)
    except ValueError as error:
        raise UnusableCall(f"{text!r}: {error}") from None


def _asked_for(tools: Tools, plan: Plan) -> Plan:
    calls: Plan = []
    for name, tool in tools.items():
        if not _reads(tool) or any(name == each for each, _ in plan):
            continue
        others = [each for each, required in arguments_of(tool).items() if not required]
        optional = f" (optional: {', '.join(others)})" if others else ""
        prompt = (
            f"{name} needs {', '.join(_required(tool))}{optional}; NAME=VALUE ..., or nothing: "
        )
        text = ask(prompt)
        while text:
            try:
                calls.append((name, values_of(name, _words(text), tools)))
                break
            except UnusableCall as error:
                _say(str(error))
                text = ask(prompt)
    return calls


async def _call(client: Any, plan: Plan, tools: Tools) -> list[str]:
    results: dict[str, None] = {}
    for name, values in plan:
        try:
            result = await client.call_tool(name, values)
            state = f"an error{_first_line(result)}" if result.is_error else "done"
            results |= {} if result.is_error else {name: None}
        except Exception as error:  # a JSON-RPC error, which is no reason to stop
            state = str(error)
        _say(f"called {name} {json_text(values)}: {state}")
    _name_others([name for name in tools if not any(name == each for each, _ in plan)], tools)
    return list(results)


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


_say = partial(say, "init")
