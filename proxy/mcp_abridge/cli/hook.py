"""`hook`: without it, the answers of servers that cannot be wrapped reach the model uncut.

A client runs it for each answer, and shows the model what it prints. An answer beyond the client's
own limit may come as the name of a file, which is read. See `events` for the clients.
"""

import argparse
import os
import sys
from typing import Any

from mcp_abridge.cli import PROGRAM, options
from mcp_abridge.cli.events import BUILT_IN, FORMS, read, reply
from mcp_abridge.cli.terminal import refuse, say
from mcp_abridge.errors import AbridgeError

_SET_UP = f"{PROGRAM} wrap --hook"
_SMALL = 2000  # bytes of an event: no budget cuts an answer in it
_SECONDS = 3600  # that an answer is kept
_MOST, _FILES = 256_000_000, 2000  # bytes and files of answers; the oldest go first


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    options.add(parser, options.by_name("rules", "allow_python", "budget"))
    parser.add_argument("--client", metavar="C", choices=FORMS, help=f"only of: {', '.join(FORMS)}")
    parser.add_argument(
        "--tools",
        action="append",
        choices=BUILT_IN,
        help="cut answers of this tool of Claude Code's own, too",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read an event on stdin; print its answer in brief, or nothing if the answer stays as it is.

    Returns 1 if that fails: the client then tells the user why.
    """
    if sys.stdin.isatty():
        return refuse("hook", f"a client's event is expected on stdin; set it up: {_SET_UP}")
    raw = sys.stdin.buffer.read()
    if len(raw) <= _SMALL and b"aved to" not in raw and not arguments.rules:
        return 0
    try:
        output = _in_brief(raw, arguments)
    except (AbridgeError, OSError, ValueError) as error:
        say("hook", f"the answer stays as it is: {error}")
        return 1
    if output is not None:
        from mcp_abridge.replay.differences import to_json

        sys.stdout.buffer.write(to_json(output))
    return 0


def _in_brief(raw: bytes, arguments: argparse.Namespace) -> Any:
    from hashlib import sha256

    from msgspec import Raw

    from mcp_abridge.cli.view import answers_folder, command, count, replay_of
    from mcp_abridge.document import message
    from mcp_abridge.document.surrogates import replace_lone
    from mcp_abridge.document.tree import loads
    from mcp_abridge.replay import exchanges
    from mcp_abridge.replay.differences import to_json
    from mcp_abridge.storage.regular import make_room, write_private

    event = loads(replace_lone(raw))
    reading = read(event, arguments.client, arguments.tools or ())
    if reading is None:
        return None
    arguments.client, answer = reading
    call = exchanges.make(answer.tool, answer.arguments, Raw(to_json(answer.result)))
    recording = message.replaced(call.saved, server=answer.server)
    path = os.path.join(answers_folder(), f"{sha256(recording).hexdigest()[:12]}.json")
    replay = replay_of(call, arguments, lambda: command(arguments, path))
    cut = replay.outcome != "untouched"
    if cut:
        folder = os.path.dirname(path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        # Older answers go if they take too much room, as do the files beside them.
        make_room(folder, ".", _SECONDS, size=_MOST - len(recording), number=_FILES)
        write_private(path, recording)
    count(replay, call, answer.server)
    text = "\n".join(replay.answer.texts_for(replay.shows))
    return reply(arguments.client, event, replay.answer, text) if cut else None
