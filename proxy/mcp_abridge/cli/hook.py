"""`hook`: without it, the answers of servers that cannot be wrapped reach Claude Code uncut.

Claude Code runs it for each answer, and shows the model what it prints. An answer beyond Claude
Code's own limit comes as the name of a file of the session, which is read. See
`updatedMCPToolOutput` of PostToolUse in https://code.claude.com/docs/en/hooks.
"""

import argparse
import os
import re
import sys
import time
from contextlib import suppress
from typing import Any

from mcp_abridge.cli import options
from mcp_abridge.cli.terminal import say
from mcp_abridge.errors import AbridgeError

_SMALL = 2000  # bytes of an event: no budget cuts an answer in it
_SECONDS = 3600  # that an answer is kept
_OTHER_FORM = (AttributeError, LookupError, TypeError)

Block = dict[str, Any]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    options.add(parser, options.by_name("rules", "allow_python", "budget"))


def run(arguments: argparse.Namespace) -> int:
    """Read an event on stdin; print its answer in brief, or nothing if the answer stays as it is.

    Returns 1 if that fails: Claude Code then tells the user why.
    """
    raw = sys.stdin.buffer.read()
    if len(raw) <= _SMALL and b"has been saved to" not in raw and not arguments.rules:
        return 0
    try:
        blocks = _in_brief(raw, arguments)
    except (AbridgeError, OSError, ValueError, *_OTHER_FORM) as error:
        form = "its event has another form than Claude Code's, "
        reason = f"{form}{error!r}" if isinstance(error, _OTHER_FORM) else error
        say("hook", f"the answer stays as it is: {reason}")
        return 1
    if blocks is not None:
        from mcp_abridge.replay.differences import to_json

        output = {"hookEventName": "PostToolUse", "updatedMCPToolOutput": blocks}
        sys.stdout.buffer.write(to_json({"hookSpecificOutput": output}))
    return 0


def _in_brief(raw: bytes, arguments: argparse.Namespace) -> list[Block] | None:
    from msgspec import Raw

    from mcp_abridge.cli.view import answer_of, command, replay_of
    from mcp_abridge.document.tree import loads
    from mcp_abridge.replay import exchanges
    from mcp_abridge.replay.differences import to_json

    event = loads(raw)
    name = event["tool_name"]
    if not re.match("mcp__.+__", name):
        raise AbridgeError(f"{name!r} is no tool of a server; set the hook's matcher to mcp__.*")
    tool = name.split("__", 2)[2]
    content = [_as_mcp(block) for block in _blocks(event)]
    result = Raw(to_json({"content": content}))
    recording = exchanges.make(tool, event["tool_input"], result)
    replay = replay_of(recording, arguments)
    if replay.outcome == "untouched":
        return None
    answer = answer_of(replay, command(arguments, _keep(recording.saved)))
    return [_as_sent(block) for block in loads(answer.line)["result"]["content"]]


def _blocks(event: dict[str, Any]) -> list[Block]:
    from mcp_abridge.cli.transcripts import saved_answer

    response = event["tool_response"]
    if isinstance(response, list) and all(isinstance(block, dict) for block in response):
        return response
    if not isinstance(response, str):
        raise AbridgeError("its tool_response is neither a text nor a list of content blocks")
    whole = saved_answer(response, event["transcript_path"])
    return [{"type": "text", "text": response if whole is None else whole}]


def _as_mcp(block: Block) -> Block:
    source = block.get("source", {})
    if block.get("type") != "image" or source.get("type") != "base64":
        return block
    return {"type": "image", "data": source["data"], "mimeType": source["media_type"]}


def _as_sent(block: Block) -> Block:
    if block.get("type") != "image" or "data" not in block:
        return block
    source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
    return {"type": "image", "source": source}


def _keep(recording: bytes) -> str:
    """Store an answer for an hour, in a file that only its owner can read; return its path."""
    from hashlib import sha256

    from mcp_abridge.storage.ledger import default_path
    from mcp_abridge.storage.regular import write_private

    folder = os.path.join(os.path.dirname(default_path()), "answers")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for entry in os.scandir(folder):
        with suppress(OSError):  # it is gone, or read just now
            if entry.stat().st_mtime < time.time() - _SECONDS:
                os.unlink(entry.path)
    path = os.path.join(folder, f"{sha256(recording).hexdigest()[:12]}.json")
    write_private(path, recording)
    return path
