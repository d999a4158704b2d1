"""`call`: without it, no answer can be seen before a client and a model are set up.

Without the name of a tool it lists all of them, and what their definitions cost in each request.
"""

import argparse
import asyncio
import os
from typing import Any

import msgspec
from msgspec import Raw

from mcp_abridge.cli import PROGRAM, options, server, tool_table
from mcp_abridge.cli.server import Listed, Tools, edited
from mcp_abridge.cli.terminal import check_output, put, say
from mcp_abridge.document.tokens import tokens
from mcp_abridge.document.tree import loads
from mcp_abridge.errors import AbridgeError, DocumentError, did_you_mean_or_known
from mcp_abridge.replay.differences import to_json
from mcp_abridge.replay.exchanges import RecordedExchange, request
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.clients import client_for
from mcp_abridge.storage.regular import write_private


class UnusableCall(AbridgeError):
    """A call that cannot be made: a tool or an argument that the server does not have."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    usage = "call [TOOL [NAME=VALUE]...] [OPTION]... (URL | -- COMMAND [ARG]...)"
    parser.usage = f"{PROGRAM} {usage}"
    parser.add_argument("call", nargs="*", default=[], metavar="TOOL", help=_CALL)
    parser.add_argument(
        "--client", metavar="NAME", help="the client, as in its clientInfo: codex-mcp-client"
    )
    parser.add_argument("--direct", action="store_true", help="print the server's own answer")
    parser.add_argument("--save", metavar="FILE", help="write the call and the server's answer")
    server.add(parser, "rules", "allow_python", "budget")
    tool_table.add(parser)


_NO_ANSWER: dict[str, Any] = {"result": {"content": []}}
_CALL = "the tool to call, with NAME=VALUE ... or one JSON object; without one, all are listed"


def run(arguments: argparse.Namespace) -> int:
    """Print the answer. Returns 1 if it is an error; raises AbridgeError if there is no call."""
    name, *words = server.without_url(arguments, arguments.call) or [""]
    server.check(arguments)
    if not name:
        return tool_table.run(arguments)

    async def call(client: Any, listed: Listed) -> tuple[RecordedExchange | None, Replay, bool]:
        rules = selection(listed.server, arguments.client).fitting(listed.tools)
        client_tools, edit = edited(listed.tools, rules)
        values = values_of(name, words, {**listed.tools, **client_tools})
        facts, result = edit.facts[name], None

        def replay(response: dict[str, Any]) -> Replay:
            exchange = _exchange(name, values, response)
            options = {"facts": facts, "client": arguments.client, "query_result": result}
            return Replay(rules, exchange, **options)

        # What reaches the server, and whether, is for the rules to say.
        trial = replay(_NO_ANSWER)
        for query in trial.queries[:1]:
            answer = await _response(client, query["tool"], query["arguments"])
            result = Raw(to_json(answer["result"])) if "result" in answer else None
            trial = replay(_NO_ANSWER)
        if not trial.calls:
            return None, trial, facts.app
        upstream = trial.calls[0]
        response = await _response(client, name, upstream)
        return _exchange(name, upstream, response), replay(response), facts.app

    parsed(words)
    if arguments.save:
        check_output(arguments.save, force=True)
    selection = options.selection(arguments, os.environ)
    listed = asyncio.run(server.listing(arguments, call, client=arguments.client or ""))
    exchange, replay, app = listed.answer
    if exchange is None:
        say("call", "the rules answer, and the server is not asked")
    elif arguments.save:
        write_private(arguments.save, msgspec.json.format(exchange.saved, indent=1) + b"\n")
    code = _print(replay, arguments)
    if app and replay.applied is replay.rules.otherwise is not None:
        say("call", f"{name}: a client that shows its widget (MCP Apps) gets its answers whole")
    return code


async def _response(client: Any, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    from mcp import MCPError

    try:
        result = await client.call_tool(tool, arguments)
        return {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}
    except MCPError as error:
        return {"error": error.error.model_dump(mode="json", exclude_none=True)}


def parsed(words: list[str]) -> dict[str, Any] | list[tuple[str, str]]:
    """Return the arguments of a call from one JSON object, else each name with its value's text.

    Raises UnusableCall.
    """
    if len(words) == 1 and words[0].startswith("{"):
        try:
            whole: dict[str, Any] = loads(words[0].encode(errors="replace"))
        except DocumentError as error:
            raise UnusableCall(f"the arguments are {error}") from None
        return whole
    pairs: list[tuple[str, str]] = []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            name = pairs[-1][0] if pairs else "NAME"
            advice = f"quote a value with spaces: {name}='...', or write JSON"
            raise UnusableCall(f"{word!r} is no argument; write NAME=VALUE; {advice}")
        pairs.append((key, value))
    return pairs


def values_of(name: str, words: list[str], tools: Tools) -> dict[str, Any]:
    """Return the arguments, each of the type that the inputSchema says. Raises UnusableCall."""
    if name not in tools:
        advice = did_you_mean_or_known(name, tools)
        raise UnusableCall(f"the server has no tool {name!r}{advice}")
    pairs = parsed(words)
    if isinstance(pairs, dict):
        return pairs
    properties = tools[name].get("inputSchema", {}).get("properties", {})
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key not in properties:
            advice = did_you_mean_or_known(key, properties)
            raise UnusableCall(f"{name} has no argument {key!r}{advice}")
        values[key] = _value(key, value, properties[key])
    return values


def _value(name: str, text: str, schema: Any) -> Any:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind == "string" or (isinstance(kind, list) and "string" in kind):
        return text
    try:
        return loads(text.encode(errors="replace"))
    except DocumentError:
        if kind is None:
            return text
        raise UnusableCall(f"{name} is of type {kind}, and {text!r} is not") from None


def _exchange(tool: str, arguments: dict[str, Any], response: dict[str, Any]) -> RecordedExchange:
    line = to_json({"jsonrpc": "2.0", "id": 1, **response})
    return RecordedExchange(tool, arguments, request(1, tool, arguments), line)


def _print(replay: Replay, arguments: argparse.Namespace) -> int:
    client = client_for(arguments.client)
    for line in replay.log:
        say("call", line)
    before, answer = map("\n".join, replay.texts)
    put(f"{before if arguments.direct else answer}\n")
    size, rest = replay.sizes
    cut = client.cut(size)
    alone = f" ({client.name.rstrip('*')} alone would show {size - cut:,})" if cut else ""
    say(
        "call",
        f"{size:,} bytes, about {tokens(before):,} tokens{alone};"
        f" {rest:,} bytes, about {tokens(answer):,} tokens, as the model gets it",
    )
    return int(replay.answer.failed)
