"""`init`: without it, a first rule takes five commands and the reading of a long answer."""

import argparse
import asyncio
import json
import os
import re
import shlex
import sys
import tempfile
from typing import Any

from proxy.cli import PROGRAM, check, options, test
from proxy.cli.call import UnusableCall, values_of
from proxy.cli.server import FIRST_ANSWER, WITHOUT_RULES, Silent, Tools, listing
from proxy.cli.suggest import suggest
from proxy.cli.terminal import refuse
from proxy.errors import AbridgeError
from proxy.testing.recordings import sessions

Plan = list[tuple[str, dict[str, Any]]]
"""Calls: tools with their arguments."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.usage = f"{PROGRAM} init [OPTION]... (URL | [--] COMMAND [ARG]...)"
    parser.allow_abbrev = False
    parser.add_argument("url", nargs="?", metavar="URL", help="the server's URL")
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
    options.add(parser, options.by_name("record", "redact", "deadline", "header"))


def run(arguments: argparse.Namespace) -> int:
    """Write the rules. Returns 1 if no call had a result, 2 if the server cannot be called."""
    if not (server := options.server_words(arguments)):
        return refuse("init", "one server: give its URL, or write its command after --")
    if arguments.output and os.path.exists(arguments.output) and not arguments.force:
        return refuse("init", f"{arguments.output} is there already; --force replaces it")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            return _init(arguments, server, arguments.record or scratch)
        except Silent as silent:
            return refuse("init", silent.report)
        except (AbridgeError, OSError) as error:
            return refuse("init", str(error))


def _init(arguments: argparse.Namespace, server: list[str], folder: str) -> int:
    flags = options.flag_words(arguments, "redact", "header")

    async def call(client: Any, tools: Tools) -> int:
        plan = [*_harmless(tools), *(_sample(text, tools) for text in arguments.sample)]
        plan += _asked_for(tools, plan) if sys.stdin.isatty() else []
        return await _call(client, plan, tools)

    words = [*WITHOUT_RULES, "--record", folder, *flags, *server]
    listed = asyncio.run(listing(words, arguments.deadline or FIRST_ANSWER, call))
    for _, line in listed.log:
        _say(line)
    path = arguments.output or re.sub(r"[^\w.-]+", "-", listed.server) + ".yaml"
    recordings = (each for each in sessions([folder]) if each.server == listed.server)
    suggestion = suggest(((each, []) for each in recordings), used=False)
    suggestion.show()
    if not suggestion.rules:
        return int(not listed.answer)
    try:
        suggestion.write(path, force=arguments.force)
    except FileExistsError:
        return refuse("init", f"{path} is there already; --force replaces it, -o names another")
    file = argparse.Namespace(
        rules=[path], allow_python=False, update=False, k="", junit=None, require_tests=True
    )
    code = check.run(file) or test.run(file)
    _say(
        f"next: read {path}; then put it to use:\n"
        f"  {PROGRAM} --rules {shlex.quote(path)} {shlex.join(server)}\n"
        f"  {PROGRAM} wrap NAME --rules {shlex.quote(path)}    (a server of your clients)"
    )
    return code


def _harmless(tools: Tools) -> Plan:
    """Return the calls that change nothing and need no arguments."""
    return [(name, {}) for name, tool in tools.items() if _reads(tool) and not _required(tool)]


def _reads(tool: dict[str, Any]) -> bool:
    return (tool.get("annotations") or {}).get("readOnlyHint") is True


def _required(tool: dict[str, Any]) -> list[str]:
    return list(tool.get("inputSchema", {}).get("required") or ())


def _sample(text: str, tools: Tools) -> tuple[str, dict[str, Any]]:
    """Return the call of a --sample. Raises UnusableCall."""
    name, _, rest = text.strip().partition(" ")
    return name, _values(name, rest, tools)


def _values(name: str, text: str, tools: Tools) -> dict[str, Any]:
    try:
        words = [text] if text.lstrip().startswith("{") else shlex.split(text)
    except ValueError as error:
        raise UnusableCall(f"{text!r}: {error}") from None
    return values_of(name, [word.strip() for word in words], tools)


def _asked_for(tools: Tools, plan: Plan) -> Plan:
    """Ask for the arguments of the other tools that only read."""
    calls: Plan = []
    for name, tool in tools.items():
        if not _reads(tool) or any(name == each for each, _ in plan):
            continue
        needs = ", ".join(_required(tool))
        while True:
            print(f"{name} needs {needs}; NAME=VALUE ..., or nothing: ", end="", file=sys.stderr)
            sys.stderr.flush()
            text = sys.stdin.readline().strip()
            if not text:
                break
            try:
                calls.append((name, _values(name, text, tools)))
                break
            except UnusableCall as error:
                _say(str(error))
    return calls


async def _call(client: Any, plan: Plan, tools: Tools) -> int:
    """Make the calls, and return how many had a result."""
    results = 0
    for name, values in plan:
        try:
            result = await client.call_tool(name, values)
            results += not result.is_error
            state = "an error" if result.is_error else "done"
        except Exception as error:  # a JSON-RPC error, which is no reason to stop
            state = str(error)
        _say(f"called {name} {json.dumps(values, ensure_ascii=False)}: {state}")
    others = [name for name in tools if not any(name == each for each, _ in plan)]
    reading = [name for name in others if _reads(tools[name])]
    if reading:
        _say(f"not called, since they need arguments: {', '.join(reading)}")
    if len(others) > len(reading):
        changing = ", ".join(name for name in others if name not in reading)
        _say(f"not called, since they do not declare readOnlyHint: {changing}")
    if others:
        first = (reading or others)[0]
        _say(f"--sample '{first} NAME=VALUE ...' calls such a tool; JSON will do, too")
    return results


def _say(text: str) -> None:
    print(f"{PROGRAM} init: {text}", file=sys.stderr)
