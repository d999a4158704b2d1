"""Counts of what `hook` and `view` show: without them, `report` knows of wrapped servers alone."""

import os
from contextlib import closing

import msgspec
from msgspec.structs import replace

from mcp_abridge.cli.terminal import say
from mcp_abridge.document.tree import encode
from mcp_abridge.replay.exchanges import RecordedExchange
from mcp_abridge.replay.play import Replay
from mcp_abridge.session.looks import Look
from mcp_abridge.storage.ledger import LedgerFile, default_path
from mcp_abridge.storage.meter import Looks, LookSign
from mcp_abridge.storage.regular import write_private
from mcp_abridge.storage.snapshots import digest


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
    row = replay.row
    if path == "off" or row is None:
        return
    try:
        signs = _signs(replay, call, server, view)
        looks = [Looks(row.tool, row.rule, server, row.client, **{sign: 1}) for sign in signs]
        with closing(LedgerFile(path, patience=1.0)) as file:
            file.write([replace(row, server=server), *looks])
    except Exception as error:  # SQLite's, too, which is imported late
        say("hook" if view is None else "view", f"ledger {path}: not recorded: {error}")


def _signs(
    replay: Replay, call: RecordedExchange, server: str | None, view: str | None
) -> list[LookSign]:
    """Return the signs that an answer counts as; a file keeps what was asked of the last one."""
    key = digest(replay.client, server, call.tool, encode(call.arguments, ordered=True).decode())
    path, look = os.path.join(answers_folder(), f"{key}.look"), None
    if os.path.exists(path):
        with open(path, "rb") as file:
            look = msgspec.json.decode(file.read(), type=Look)
    sign = None if look is None else look.sign_of(view)
    signs: list[LookSign] = [] if sign is None else [sign]
    if view is None and replay.outcome != "untouched":
        short = bool(replay.drain_looks())
        look = Look(judged=not short)
        signs += ["looks"] * short
    if look is not None:
        write_private(path, encode(look))
    return signs
