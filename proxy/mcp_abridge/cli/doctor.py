"""`mcp-abridge doctor`: diagnose a set-up: its server, its rules, this machine."""

import argparse
import asyncio
import os
from collections.abc import Iterator

from mcp_abridge.cli import PROGRAM, options, server
from mcp_abridge.cli.server import Finding, Listed, Severity, Silent, Tools, edited, json_size
from mcp_abridge.cli.terminal import count_text, print_lines, short_list
from mcp_abridge.document.paths import matches
from mcp_abridge.errors import AbridgeError, RuleErrors, did_you_mean
from mcp_abridge.ruleset.clients import client_for
from mcp_abridge.ruleset.selection import NO_RULES, Selection
from mcp_abridge.session.tools.definitions import MOST_INPUT_SCHEMA

_Lines = tuple[str, ...]
"""The level of a finding, its text, and lines that stand below it."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb: those of the wrapper that matter to a diagnosis."""
    parser.usage = f"{PROGRAM} doctor [OPTION]... (URL | [--] COMMAND [ARG]...)"
    parser.add_argument("url", nargs="?", metavar="URL", help="the server's URL")
    server.add(parser, "rules", "allow_python", "budget", "ledger")


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each finding. Returns 1 if one is a warning or an error."""
    worst = 0
    for level, text, *more in _findings(arguments):
        print_lines(f"{level}: {text}", *(f"    {line}" for line in more))
        worst = max(worst, level != "ok")
    return worst


def _findings(settings: argparse.Namespace) -> Iterator[_Lines]:
    server.check(settings)
    yield _ledger(settings)
    yield from _entries()
    yield from _way(settings)
    selection = None
    try:
        selection = options.selection(settings)
    except RuleErrors as errors:
        yield from (("error", str(each)) for each in errors.problems)
    try:
        bare = asyncio.run(server.listing(settings))
    except Silent as silent:
        yield from silent.log
        if all(level != "error" for level, _ in silent.log):
            yield "error", str(silent)
        yield from _quoted("error", silent.stderr)
        return
    yield from bare.log
    yield from _quoted("ok", bare.stderr)
    about = f"{f'server {bare.server!r} {bare.version}'.rstrip()}, revision {bare.revision}"
    yield "ok", f"{about}: {_tools(bare.tools)} after {bare.seconds:.1f} s"
    if selection is not None and settings.rules != [NO_RULES]:
        yield from _rules(selection, bare)
    if selection is not None:
        yield from _clients(settings)


def _ledger(settings: argparse.Namespace) -> Finding:
    from mcp_abridge.storage.ledger import LedgerFile, default_path

    if settings.ledger == "off":
        return "ok", "no ledger"
    path = settings.ledger or default_path()
    try:
        LedgerFile(path).close()
    except Exception as error:  # from SQLite, the system, or the proxy
        return "warning", f"the ledger {path} cannot be written, nothing is recorded: {error}"
    return "ok", f"ledger {path}"


def _entries() -> Iterator[_Lines]:
    from mcp_abridge.cli.wrap.changes import Configs, faults
    from mcp_abridge.cli.wrap.records import recorded

    errors: list[AbridgeError] = []
    configs = Configs(None)
    configs.add(recorded(errors.append))
    yield from (("warning", str(each)) for each in (*errors, *faults(configs)))


def _way(settings: argparse.Namespace) -> Iterator[Finding]:
    from mcp_abridge.transports.client.forward_proxy import forward_proxy

    url = settings.url or (None if settings.command else os.environ.get(options.URL))
    if url is None:
        return
    try:
        proxy = forward_proxy(url, os.environ)
    except AbridgeError as error:
        yield "error", str(error)
    else:
        way = "directly to the server" if proxy is None else f"through {proxy}"
        yield "ok", f"requests go {way}"


def _quoted(level: Severity, stderr: list[str]) -> Iterator[_Lines]:
    if stderr:
        yield level, "what the server wrote beside its messages:", *stderr


def _tools(tools: Tools) -> str:
    size = sum(map(json_size, tools.values()))
    return f"{count_text(len(tools), 'tool')} in {size:,} bytes"


def _rules(selection: Selection, bare: Listed) -> Iterator[Finding]:
    ruleset = selection(bare.server, None).fitting(bare.tools)
    client_tools, edit = edited(bare.tools, ruleset)
    if edit.error is not None:
        yield "error", f"with the rules, its tools are not listed: {edit.error}"
    yield from (("warning", line) for line in edit.log_lines)
    yield "ok", f"with the rules: {_tools(client_tools)}"
    for file in selection(None, None).files:
        if file not in ruleset.files:
            if file.required:
                yield "error", f"{file.name}: it is for another server, so no tool runs"
                continue
            yield "warning", f"{file.name}: it is for another server; none of its rules apply"
    for file in ruleset.files:
        yield "ok", f"{file.name} applies"
        for place, pattern in [(rule.place, each) for rule in file.rules for each in rule.tools]:
            if not any(matches(pattern, tool) for tool in bare.tools):
                reason = f"{pattern!r}{did_you_mean(pattern, bare.tools)}"
                yield "warning", f"{place}: no tool of this server is called {reason}"
    covering = {tool: ruleset.covering(tool) for tool in bare.tools}
    alone = sorted(tool for tool, rules in covering.items() if not rules)
    bounded = sum(rules[:1] == (ruleset.otherwise,) for rules in covering.values())
    ruled = len(covering) - len(alone) - bounded
    yield "ok", f"tools with a rule: {ruled}; with the budget alone: {bounded}"
    if alone:
        many = f"tools whose answers pass whatever their length: {len(alone)} ({short_list(alone)})"
        yield "ok", f"{many}; --budget auto bounds them"
    for name, tool in bare.tools.items():
        size = json_size(tool.get("inputSchema"))
        if size > MOST_INPUT_SCHEMA and client_tools.get(name) == tool:  # of others, the edit warns
            reason = f"is {size} bytes; claude.ai drops tools above {MOST_INPUT_SCHEMA}"
            yield "warning", f"{name}: the server's own inputSchema {reason}"


def _clients(settings: argparse.Namespace) -> Iterator[Finding]:
    from mcp_abridge.cli.wrap.changes import Configs
    from mcp_abridge.cli.wrap.places import dialect

    servers: dict[str, dict[str, bool]] = {}
    for each in Configs(None).servers:
        servers.setdefault(each.place.client, {})[each.name] = each.own_words is not None
    for name, every in servers.items():
        client = client_for(dialect(name).says or name).within(os.environ)
        budget: object = settings.budget
        if budget in (None, "auto"):
            limit = client.limit_bytes
            reason = f"its limit is {limit:,}" if limit else "it has no known limit"
            budget = f"{client.budget_bytes:,} bytes, since {reason}"
        if client.writes_scripts(None, os.environ):
            budget = "none, since its models' scripts read the answers"
        bare = [server for server, is_own in every.items() if not is_own]
        advice = f"; not wrapped: {short_list(bare)}, see {PROGRAM} wrap" if bare else ""
        yield "ok", f"{name}: {count_text(len(every), 'server')}, budget {budget}{advice}"
