"""The answers of MCP tools in the transcripts that clients keep on disk; nothing is written.

Claude Code: a file for each session in `projects`, a line for each message, in the form of the
Messages API. Codex: a file for each session in `sessions`, with items of the Responses API. The
recordings of `record` are read, too.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from proxy.ruleset.clients import client_for
from proxy.testing.answer import read
from proxy.testing.recordings import SESSION, sessions

_CLAUDE_FILE = re.compile(r"(?:Output has been|Full output) saved to:? ([^\n]+?)\.?\n")
_CLAUDE_CUT = re.compile(r"Error: result \([^)]*\) exceeds|<persisted-output>")
_CODEX_CUT = re.compile(r"…\d+ tokens truncated…|^Warning: truncated output")
_CODEX_HEAD = re.compile(r"Wall time: [^\n]*\nOutput:\n?")
# Lines without these words hold no call and no answer of a tool; most lines are such.
_WORDS = (b'"mcp__', b'"tool_result"', b'"function_call_output"')


class ToolAnswer(NamedTuple):
    """An answer as the model read it: the tool as `server/tool`, and whether the client cut it.

    `whole` is the answer of the server, if the client has saved it and it is still there.
    """

    client: str
    tool: str
    text: str
    cut: bool
    whole: str | None


def folders(environment: "os._Environ[str]") -> list[str]:
    """Return the folders in which clients keep transcripts, those that exist."""
    home = os.path.expanduser("~")
    claude = environment.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    codex = environment.get("CODEX_HOME") or os.path.join(home, ".codex")
    every = (os.path.join(claude, "projects"), os.path.join(codex, "sessions"))
    return [folder for folder in every if os.path.isdir(folder)]


def files(paths: Iterable[str], since: float) -> Iterator[str]:
    """Yield the transcripts in files and folders that were written after a time in seconds.

    A session that `record` wrote is named by its session.json.
    """
    for path in paths:
        if os.path.isdir(path):
            for folder, _, names in os.walk(path):
                yield from files((os.path.join(folder, name) for name in sorted(names)), since)
        elif path.endswith((".jsonl", f"/{SESSION}")) and os.path.getmtime(path) >= since:
            yield path


def answers(path: str) -> Iterator[ToolAnswer]:
    """Yield the answers of MCP tools in a transcript; lines that are no JSON are skipped.

    Raises ExchangeError for a recording that cannot be read.
    """
    if os.path.basename(path) == SESSION:
        yield from _recorded(os.path.dirname(path))
        return
    tools: dict[str, str] = {}  # by the call's id
    with open(path, "rb") as file:
        for line in file:
            if not any(word in line for word in _WORDS):
                continue
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                record = _with_lone_surrogates(line)
            if isinstance(record, dict):
                yield from _claude(record, tools)
                yield from _codex(record.get("payload"), tools)


def _recorded(folder: str) -> Iterator[ToolAnswer]:
    """Yield recorded answers as a client that does not cut them shows them."""
    for session in sessions([folder]):
        shows = client_for(session.client).shows
        for _, exchange in session.exchanges:
            text = "\n".join(read(exchange.response).texts_for(shows))
            tool = f"{session.server}/{exchange.tool}"
            yield ToolAnswer(session.client or "", tool, text, False, text)


def _with_lone_surrogates(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _claude(record: dict[str, Any], tools: dict[str, str]) -> Iterator[ToolAnswer]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "tool_use" and str(block.get("name")).startswith("mcp__"):
            tools[block["id"]] = _name(block["name"])
        elif block.get("type") == "tool_result" and (tool := tools.pop(block["tool_use_id"], "")):
            text = _text(block.get("content"))
            cut = _CLAUDE_CUT.match(text) is not None
            yield ToolAnswer("claude-code", tool, text, cut, _saved(text) if cut else text)


def _codex(payload: Any, tools: dict[str, str]) -> Iterator[ToolAnswer]:
    kind = payload.get("type") if isinstance(payload, dict) else None
    if kind == "function_call" and str(payload.get("namespace")).startswith("mcp__"):
        tools[payload["call_id"]] = _name(f"{payload['namespace']}__{payload['name']}")
    elif kind == "function_call" and str(payload.get("name")).startswith("mcp__"):
        tools[payload["call_id"]] = _name(payload["name"])
    elif kind == "function_call_output" and (tool := tools.pop(payload["call_id"], "")):
        text = _CODEX_HEAD.sub("", _text(payload.get("output")), count=1).removeprefix("\n")
        cut = _CODEX_CUT.search(text) is not None
        yield ToolAnswer("codex-mcp-client", tool, text, cut, None if cut else text)


def _name(name: str) -> str:
    """Return `server/tool` for `mcp__server__tool`."""
    return name.removeprefix("mcp__").replace("__", "/", 1)


def _text(content: Any) -> str:
    """Return the texts of an answer: a text, or blocks of which some have one."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    return "\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))


def _saved(text: str) -> str | None:
    """Return the file that a client has put in place of an answer."""
    match = _CLAUDE_FILE.search(text)
    try:
        with open(match[1] if match else "", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None
