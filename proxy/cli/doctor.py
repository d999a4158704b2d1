"""`mcp-abridge doctor`: diagnose a set-up: its server, its rules, this machine.

The official client lists the server's tools twice through the wrapper: once without rules, once
with the given rules. The findings come from the differences and from the wrapper's log.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from proxy.cli import PROGRAM, options
from proxy.cli.options import Options
from proxy.cli.terminal import printable, refuse
from proxy.document.paths import matches
from proxy.errors import did_you_mean
from proxy.ruleset.rule import Rule
from proxy.ruleset.selection import Selection, load, readings
from proxy.session.tools.definitions import MOST_INPUT_SCHEMA

# Seconds for the first response, without --deadline. The official client waits 10 s for a response
# to server/discover, which a server of an earlier revision may ignore.
_FIRST_ANSWER = 12.0
_SECONDS = 30.0  # to list the tools after that
_STDERR_LINES = 10
_OPTIONS = ("rules", "allow_python", "budget", "ledger", "max_message", "deadline", "header")
_NONE = ["--rules", "none"]
_SHOWN = 5  # how many names of tools are printed

Level = Literal["ok", "warning", "error"]
Finding = tuple[Level, str]


class Listed(NamedTuple):
    """The tools that a client was sent, with the server, the revision and the seconds it took.

    `log` holds the wrapper's lines as level and text, `stderr` the last lines of the server.
    """

    server: str
    version: str
    revision: str
    seconds: float
    tools: dict[str, dict[str, Any]]
    log: list[Finding]
    stderr: list[str]


class Silent(Exception):
    """A server did not list its tools: the cause, the wrapper's log, the server's stderr."""

    def __init__(self, cause: str, log: list[Finding], stderr: list[str]) -> None:
        super().__init__(cause)
        self.log = log
        self.stderr = stderr

    def findings(self, what: str) -> Iterator[Finding]:
        """Yield the wrapper's log lines, an error titled `what` if it logged none, and stderr."""
        yield from self.log
        if all(level != "error" for level, _ in self.log):
            yield "error", f"{what}: {self}"
        yield from _quoted("error", self.stderr)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb: those of the wrapper that matter to a diagnosis."""
    parser.usage = f"{PROGRAM} doctor [OPTION]... (URL | [--] COMMAND [ARG]...)"
    parser.allow_abbrev = False
    parser.add_argument("url", nargs="?", metavar="URL", help="the server's URL")
    options.add(parser, [each for each in options.OPTIONS if each.name in _OPTIONS])
    parser.epilog = options.VARIABLES


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each finding. Returns 1 if one is a warning or an error."""
    words: list[str] = arguments.words
    try:
        settings = options.quick(words, os.environ)
    except ValueError as error:
        return refuse("doctor", str(error))
    if settings is None:
        return refuse("doctor", "no server: give its URL, or write its command after --")
    worst = 0
    for level, text in _findings(settings, words):
        print(f"{level}: {text}", flush=True)
        worst = max(worst, level != "ok")
    return worst


def _findings(settings: Options, words: list[str]) -> Iterator[Finding]:
    yield _ledger(settings)
    wrong = list(_rule_files(settings))
    yield from wrong
    command = [settings.url] if settings.url is not None else ["--", *settings.command]
    headers = [word for text in settings.header or () for word in ("--header", text)]
    patience = settings.deadline or _FIRST_ANSWER
    try:
        bare = asyncio.run(_listed([*_NONE, *headers, *command], patience))
    except Silent as silent:
        yield from silent.findings("the server does not list its tools")
        return
    yield from bare.log
    yield from _quoted("ok", bare.stderr)
    yield (
        "ok",
        f"server {bare.server!r} {bare.version}, revision {bare.revision}:"
        f" {_tools(bare)} after {bare.seconds:.1f} s",
    )
    if wrong:
        return
    try:
        ruled = asyncio.run(_listed(words, patience))
    except Silent as silent:
        yield from silent.findings("with the rules, its tools are not listed")
        return
    yield from (each for each in ruled.log if each not in bare.log)
    yield "ok", f"with the rules: {_tools(ruled)}"
    yield from _rules(settings, bare)
    yield from _large(bare, ruled)


def _ledger(settings: Options) -> Finding:
    from proxy.storage.ledger import LedgerFile, default_path

    if settings.ledger == "off":
        return "ok", "no ledger"
    path = settings.ledger or default_path()
    try:
        LedgerFile(path).close()
    except Exception as error:  # from SQLite, the system, or the proxy
        return "warning", f"the ledger {path} cannot be written, nothing is recorded: {error}"
    return "ok", f"ledger {path}"


def _rule_files(settings: Options) -> Iterator[Finding]:
    names = () if settings.rules == _NONE[1:] else settings.rules or ()
    for reading in readings(names, allow_python=settings.allow_python):
        for problem in reading.problems:
            yield "error", str(problem)


async def _listed(words: Sequence[str], patience: float) -> Listed:
    """Return the tools listed through the wrapper. Raises Silent.

    `patience` is the time limit in seconds for the first response.
    """
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    arguments = ["-m", "proxy", "run", *words]
    wrapper = StdioServerParameters(
        command=sys.executable, args=arguments, env={**os.environ, "MCP_ABRIDGE_LEDGER": "off"}
    )
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        limit = asyncio.timeout(patience)
        first_limit = None
        try:
            async with limit:
                first_limit = limit.when()
                listed = await _tools_of(stdio_client(wrapper, errors), limit)
        except TimeoutError:
            cause = f"it gave no answer within {_SECONDS:g} s"
            if limit.when() == first_limit:
                cause = _mute(patience)
            log, stderr = _outputs(errors)
            # The wrapper's errors only report that it was terminated here.
            raise Silent(cause, [each for each in log if each[0] != "error"], stderr) from None
        except Exception as error:  # from the client, alone or in an exception group
            raise Silent(_innermost(error), *_outputs(errors)) from error
        log, stderr = _outputs(errors)
        return listed._replace(log=log, stderr=stderr)


def _mute(seconds: float) -> str:
    return (
        f"it gave no answer within {seconds:g} s; is it an MCP server, and does it speak stdio if"
        " it is a command? --deadline 120 gives more time to one that is installed or loaded first"
    )


async def _tools_of(transport: Any, limit: asyncio.Timeout) -> Listed:
    from mcp import Client

    clock = asyncio.get_running_loop().time
    started = clock()
    tools: dict[str, dict[str, Any]] = {}
    async with Client(transport) as client:
        limit.reschedule(clock() + _SECONDS)
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                tools[tool.name] = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
            cursor = page.next_cursor
            if cursor is None:
                break
        server, revision = client.server_info, str(client.protocol_version)
    seconds = clock() - started
    name, version = (server.name, server.version) if server else ("unnamed", "")
    return Listed(name, version, revision, seconds, tools, [], [])


def _innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def _outputs(errors: Any) -> tuple[list[Finding], list[str]]:
    """Return the wrapper's warnings and errors, and the last lines of the server.

    A server may report its failure on stderr; lines without the wrapper's prefix are the server's.
    """
    errors.seek(0)
    log: dict[Finding, None] = {}
    stderr: list[str] = []
    for line in map(str.rstrip, errors):
        before, _, text = line.partition(f"{PROGRAM}: ")
        level, _, message = text.partition(": ")
        if before:
            stderr.append(line)
        elif level in ("warning", "error"):
            log[level, message] = None  # type: ignore[index]
    return list(log), stderr[-_STDERR_LINES:]


def _quoted(level: Level, stderr: list[str]) -> Iterator[Finding]:
    if stderr:
        lines = map(printable, stderr)
        yield level, "\n    ".join(("what the server wrote beside its messages:", *lines))


def _tools(listed: Listed) -> str:
    size = sum(map(_size, listed.tools.values()))
    return f"{len(listed.tools)} tools in {size:,} bytes"


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _rules(settings: Options, bare: Listed) -> Iterator[Finding]:
    """Yield the rule files and rules without effect here, and the tools that no rule covers."""
    if settings.rules == _NONE[1:]:
        return
    files = None
    if settings.rules is not None:
        files = load(settings.rules, allow_python=settings.allow_python)
    selection = Selection(files, settings.budget, lambda _: None)
    ruleset = selection(bare.server, None).fitting(bare.tools)
    for file in files or ():
        if file not in ruleset.files:
            yield "warning", f"{file.name}: it is for another server; none of its rules apply"
    for file in ruleset.files:
        yield "ok", f"{file.name} applies"
        for rule in file.rules:
            yield from _idle(rule, bare)
    covering = {tool: ruleset.covering(tool) for tool in bare.tools}
    alone = sorted(tool for tool, rules in covering.items() if not rules)
    bounded = [tool for tool, rules in covering.items() if rules[:1] == (ruleset.otherwise,)]
    ruled = len(covering) - len(alone) - len(bounded)
    yield "ok", f"tools with a rule: {ruled}; with the budget alone: {len(bounded)}"
    if alone:
        names = ", ".join(alone[:_SHOWN]) + ", ..." * (len(alone) > _SHOWN)
        yield (
            "ok",
            f"tools whose answers pass whatever their length: {len(alone)} ({names});"
            " --budget auto bounds them",
        )


def _idle(rule: Rule, bare: Listed) -> Iterator[Finding]:
    """Yield a warning for each entry of a rule's `tools` that matches no tool."""
    for pattern in rule.tools:
        if not any(matches(pattern, tool) for tool in bare.tools):
            advice = did_you_mean(pattern, bare.tools)
            yield "warning", f"{rule.place}: no tool of this server is called {pattern!r}{advice}"


def _large(bare: Listed, ruled: Listed) -> Iterator[Finding]:
    """Yield a warning for each inputSchema too large by itself; the wrapper logs the others."""
    for name, tool in bare.tools.items():
        size = _size(tool.get("inputSchema"))
        if size > MOST_INPUT_SCHEMA and ruled.tools.get(name) == tool:
            yield (
                "warning",
                f"{name}: the server's own inputSchema is {size} bytes; claude.ai drops tools above"
                f" {MOST_INPUT_SCHEMA}",
            )
