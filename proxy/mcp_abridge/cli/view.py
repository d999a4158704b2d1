"""`view`: without it, a model could not read the rest of an answer that `hook` has cut.

What both show is counted here, so that `report` knows of servers that are not wrapped.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import closing

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from mcp_abridge.cli import PROGRAM, options
from mcp_abridge.cli.terminal import content, put, refuse, say
from mcp_abridge.document.message import members
from mcp_abridge.document.tree import encode, plain
from mcp_abridge.replay.exchanges import ExchangeError, RecordedExchange, as_json, recorded
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.selection import NO_RULES, absolute
from mcp_abridge.session.looks import Look
from mcp_abridge.storage.ledger import LedgerFile, default_path
from mcp_abridge.storage.meter import Looks, Row
from mcp_abridge.storage.regular import write_private
from mcp_abridge.storage.snapshots import digest

_CLIENT = "claude-code"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("file", metavar="FILE", help="a saved answer, or - for stdin")
    parser.add_argument("view", metavar="VIEW", help="items[0:20], grep('error'), help ...")
    options.add(parser, options.by_name("rules", "allow_python", "budget"))
    parser.add_argument("--client", metavar="NAME", default=_CLIENT, help="whose budget it has")


def run(arguments: argparse.Namespace) -> int:
    """Print the view. Returns 1 if it is refused; raises AbridgeError or OSError."""
    name = arguments.file
    try:
        recording = as_json(content(name))
        first = recorded(recording, otherwise="tool")
        exchange = recorded(recording, first.tool, {**first.arguments, "view": arguments.view})
    except FileNotFoundError:
        return refuse("view", f"{name}: no such file; `hook` keeps an answer for an hour")
    except ExchangeError as error:
        return refuse("view", f"{name}: {error}")
    reader = command(arguments, name)
    if arguments.rules == [NO_RULES]:
        arguments.rules, arguments.budget = [], "off"
    if arguments.budget == "off":
        arguments.budget = sys.maxsize  # no budget, no views
    replay = replay_of(exchange, arguments, lambda: reader)
    if replay.shaped and replay.shaped[-1][0].asks_for_blob and not replay.answer.failed:
        return refuse("view", f"{arguments.view}: no text; the answer has it as it came")
    put(f"{replay.answer.text}\n")
    if os.path.dirname(os.path.abspath(name)) == answers_folder():
        server = plain(members(recording).get("server", Raw(b"null")))
        count(replay, first, server, arguments.view)
    return int(replay.answer.failed)


def replay_of(
    exchange: RecordedExchange, arguments: argparse.Namespace, reader: Callable[[], str]
) -> Replay:
    """Answer a recorded call as its client gets it; see Replay on `reader`. Raises RuleErrors."""
    rules = options.selection(arguments, os.environ)(None, arguments.client)
    return Replay(rules, exchange, client=arguments.client, reader=reader)


def command(arguments: argparse.Namespace, file: str) -> str:
    """Return the command line, but for the view, that reads `file` with the same options."""
    from mcp_abridge.cli.wrap.entry import launcher
    from mcp_abridge.cli.wrap.text import NotPossible

    try:
        # A shell of other clients may read a profile that sets another PATH, as Codex's does.
        program = launcher(shared=arguments.client == _CLIENT)
    except NotPossible:
        program = [PROGRAM]
    flags = [f"--rules={absolute(name)}" for name in arguments.rules or ()]
    flags += ["--allow-python"] if arguments.allow_python else []
    flags += [f"--budget={arguments.budget}"] if arguments.budget else []
    flags += [f"--client={arguments.client}"] if arguments.client != _CLIENT else []
    return shlex.join([*program, "view", *flags, file])


def answers_folder() -> str:
    """Return the folder of the answers that `hook` keeps."""
    return os.path.join(os.path.dirname(default_path()), "answers")


def count(
    replay: Replay, call: RecordedExchange, server: str | None, view: str | None = None
) -> None:
    """Record the answer to a call of `server`, or to a `view` of that answer, in the ledger.

    If that fails, a line on stderr says so: the model gets its answer.
    """
    path = os.environ.get("MCP_ABRIDGE_LEDGER") or default_path()
    if path == "off" or replay.row is None:
        return
    try:
        looks = _looks(replay, replay.row, call, server, view)
        own = [replace(each, server=server) for each in looks]
        with closing(LedgerFile(path, patience=1.0)) as file:
            file.write([replace(replay.row, server=server), *own])
    except Exception as error:  # SQLite's, too, which is imported late
        say("hook" if view is None else "view", f"ledger {path}: not recorded: {error}")


def _looks(
    replay: Replay, row: Row, call: RecordedExchange, server: str | None, view: str | None
) -> Iterator[Looks]:
    """Yield the signs that an answer counts as; a file keeps what was asked of the last one."""
    key = digest(replay.client, server, call.tool, encode(call.arguments, ordered=True).decode())
    path, look = os.path.join(answers_folder(), f"{key}.look"), None
    if os.path.exists(path):
        look = msgspec.json.decode(content(path), type=Look)
    if look is not None and (sign := look.sign_of(view)) is not None:
        yield Looks(row.tool, row.rule, server, row.client, **{sign: 1})
    if view is None and replay.outcome != "untouched":
        looks = replay.drain_looks()
        yield from looks
        look = Look(judged=not looks)
    if look is not None:
        write_private(path, encode(look))
