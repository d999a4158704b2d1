"""A server as the official client sees it through the wrapper: its tools, and one answer."""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Raw

from mcp_abridge.cli import PROGRAM, options
from mcp_abridge.document.tree import loads
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay.differences import to_json
from mcp_abridge.ruleset.loading import config_model
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.ruleset.selection import NO_RULES
from mcp_abridge.session import tool_lists
from mcp_abridge.session.tool_lists import RewrittenToolList
from mcp_abridge.transports.own_process import own_command

if TYPE_CHECKING:
    from mcp import StdioServerParameters

# Seconds to connect, and again to list the tools, without --deadline: `npx -y` may install first.
_PATIENCE = 30.0
_DISCOVER = 8.0  # of them for server/discover, which a server of an earlier revision may ignore
_STDERR_LINES = 10

Severity = Literal["ok", "warning", "error"]
Finding = tuple[Severity, str]
Tools = dict[str, dict[str, Any]]


class Listed(NamedTuple):
    """The tools that a client was sent, with the server, the revision and the seconds it took.

    `log` are the wrapper's lines, `stderr` the last of the server. `answer` is of `further`.
    """

    server: str
    version: str
    revision: str
    seconds: float
    tools: Tools
    log: list[Finding]
    stderr: list[str]
    answer: Any = None


Further = Callable[[Any, Listed], Awaitable[Any]]
"""The further work with the client, after the tools are listed."""


class Silent(AbridgeError):
    """A server did not list its tools: the wrapper's first error, else the cause, and stderr."""

    def __init__(self, cause: str, log: list[Finding], stderr: list[str]) -> None:
        super().__init__(next((text for level, text in log if level == "error"), cause))
        for line in stderr:
            self.add_note(line)
        self.log, self.stderr = log, stderr


def add(parser: argparse.ArgumentParser, *names: str) -> None:
    """Declare the options of a verb on a server, and those of these names."""
    parser.allow_abbrev = False
    options.add(parser, [*options.by_name(*names, "header"), options.LISTING_DEADLINE])


def without_url(arguments: argparse.Namespace, words: list[str]) -> list[str]:
    """Return the words but for the URL of a server, which `arguments` get."""
    urls = [each for each in words if each.startswith(("http://", "https://"))]
    arguments.url = urls[0] if urls and not arguments.command else None
    return [word for word in words if word not in urls]


def check(arguments: argparse.Namespace) -> None:
    """Raise AbridgeError unless the arguments name one server."""
    by_variable = not arguments.command and not arguments.url and os.environ.get(options.URL)
    if not by_variable and bool(arguments.command) == bool(arguments.url):
        raise AbridgeError(options.ONE_SERVER)
    if arguments.url:
        config_model.url(arguments.url)
        for line in arguments.header or ():
            config_model.header(line, os.environ)


async def listing(
    arguments: argparse.Namespace,
    further: Further | None = None,
    *,
    client: str = "",
    more: Sequence[str] = (),
) -> Listed:
    """Return the tools that a server lists through a wrapper without rules; `more` are its options.

    `deadline` of the arguments is the time limit in seconds to connect, again to list the tools,
    and of a call without progress. `client` is the name that the client tells the server. Raises
    Silent, or the AbridgeError of `further`.
    """
    from mcp.client.stdio import stdio_client

    check(arguments)
    patience: float = arguments.deadline or _PATIENCE
    wrapper = _wrapper(arguments, more)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            async with asyncio.timeout(patience) as limit:
                transport = stdio_client(wrapper, errors)
                listed = await _tools_of(transport, limit, patience, further, client)
        except TimeoutError:
            log, stderr = _outputs(errors)
            # The wrapper's errors only report that it was terminated here.
            log = [each for each in log if each[0] != "error"]
            raise Silent(_MUTE.format(patience), log, stderr) from None
        except Exception as error:  # from the client, alone or in an exception group
            reason: BaseException = error
            while isinstance(reason, BaseExceptionGroup):
                reason = reason.exceptions[0]
            if isinstance(reason, AbridgeError):
                raise reason from None
            what = str(reason) or type(reason).__name__
            cause = f"the server does not answer as an MCP server: {what}"
            raise Silent(cause, *_outputs(errors)) from error
        log, stderr = _outputs(errors)
        # A server/discover that was ignored is open until the end.
        log = [each for each in log if "the server ended with exit code 0" not in each[1]]
        return listed._replace(log=log, stderr=stderr)


def _wrapper(arguments: argparse.Namespace, more: Sequence[str]) -> "StdioServerParameters":
    from mcp import StdioServerParameters

    limited = ["--deadline", str(arguments.deadline)] if arguments.deadline else []
    words = ["run", "--rules", NO_RULES, *limited, *more]
    environment = {**os.environ, "MCP_ABRIDGE_LEDGER": "off"}
    if arguments.command:
        words += ["--", *arguments.command]
    else:  # others would see a URL and headers among the words
        environment |= {options.URL: arguments.url} if arguments.url else {}
        environment |= {options.HEADER: "\n".join(arguments.header)} if arguments.header else {}
    program, *own = own_command(*words)
    return StdioServerParameters(command=program, args=own, env=environment)


_MUTE = (
    "the server gave no answer within {:g} s; is it an MCP server, and does it speak stdio if it is"
    " a command? --deadline 120 gives more time to one that is installed or loaded first"
)


async def _tools_of(
    transport: Any, limit: asyncio.Timeout, patience: float, further: Further | None, name: str
) -> Listed:
    from mcp import Client
    from mcp.client import session
    from mcp_types import Implementation

    clock = asyncio.get_running_loop().time
    started = clock()
    tools: Tools = {}
    client_info = Implementation(name=name, version="1") if name else None
    # The SDK has no parameter for it.
    default, session.DISCOVER_TIMEOUT_SECONDS = session.DISCOVER_TIMEOUT_SECONDS, _DISCOVER
    try:
        async with Client(transport, client_info=client_info) as client:
            limit.reschedule(clock() + patience)
            page = await client.list_tools()
            listed_tools = page.tools
            while page.next_cursor is not None:
                page = await client.list_tools(cursor=page.next_cursor)
                listed_tools += page.tools
            for tool in listed_tools:
                tools[tool.name] = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
            seconds, server = clock() - started, client.server_info
            limit.reschedule(None)
            title, version = (server.name, server.version) if server else ("unnamed", "")
            listed = Listed(title, version, str(client.protocol_version), seconds, tools, [], [])
            answer = await further(client, listed) if further is not None else None
    finally:
        session.DISCOVER_TIMEOUT_SECONDS = default
    return listed._replace(answer=answer)


def _outputs(errors: Any) -> tuple[list[Finding], list[str]]:
    """Return the wrapper's warnings and errors, and the last lines of the server on stderr."""
    errors.seek(0)
    log: dict[Finding, None] = {}
    stderr: list[str] = []
    for line in map(str.rstrip, errors):
        before, _, text = line.partition(f"{PROGRAM}: ")
        level, _, message = text.partition(": ")
        # The cause of an early end may have a line of its own before.
        message = message.partition("; requests answered with an error: ")[0]
        if before:
            stderr.append(line)
        elif level in ("warning", "error"):
            log[level, message] = None  # type: ignore[index]
    return list(log), stderr[-_STDERR_LINES:]


def arguments_of(tool: dict[str, Any]) -> dict[str, bool]:
    """Return the names of a tool's arguments, True for those that are required."""
    schema = tool.get("inputSchema") or {}
    required = schema.get("required") or ()
    return {name: name in required for name in (*required, *(schema.get("properties") or ()))}


def with_needs(name: str, arguments: dict[str, bool]) -> str:
    """Return the name of a tool with its required arguments.

    >>> with_needs("list_books", {"shelf": True, "count": False})
    'list_books (shelf)'
    """
    needs = ", ".join(each for each, required in arguments.items() if required)
    return f"{name} ({needs})" if needs else name


def edited(tools: Tools, rules: RuleSet) -> tuple[Tools, RewrittenToolList]:
    """Return the tools as rules send them to a client, and the whole outcome of the edit."""
    edit = tool_lists.edit(Raw(to_json({"tools": list(tools.values())})), rules)
    after = list(tools.values()) if edit.result is None else loads(bytes(edit.result))["tools"]
    return {tool["name"]: tool for tool in after}, edit


def json_size(value: Any) -> int:
    """Return the bytes of a value as JSON, as compact as servers send it."""
    return len(to_json(value))
