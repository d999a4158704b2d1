"""The answers of MCP tools in the transcripts that clients keep on disk, and in recordings.

Claude Code: a line for each message, in the form of the Messages API. Codex: items of the Responses
API, and beside them an event for each call of a server, which is all that tells of a script's calls
(code mode, Codex's default). The model reads what the script prints.
"""

import json  # orjson refuses lone surrogates, and rounds long integers
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec import Raw, Struct

from mcp_abridge.cli.terminal import count_text, json_text
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay import recordings
from mcp_abridge.replay.answers import read
from mcp_abridge.replay.differences import to_json
from mcp_abridge.replay.exchanges import RecordedExchange, make, text_result
from mcp_abridge.replay.recordings import SESSION, RecordedSession
from mcp_abridge.ruleset.clients import client_for
from mcp_abridge.storage.regular import open_regular

ENDING = ".jsonl"

Report = Callable[[AbridgeError | OSError], object]
"""What is done with the error of a file, or of a part of it, that is left out."""

_CLAUDE_FILE = re.compile(r"(?:Output has been|Full output) saved to:? ([^\n]+)")
_CLAUDE_CUT = re.compile(r"Error: result \([^)]*\) exceeds|<persisted-output>")
_CLAUDE_AGENT = re.compile(r"/subagents/(?:[^/]+/)?agent-[^/]+$")
_CODEX_CUT = re.compile(r"…(\d+) (?:chars|tokens) truncated…|^Warning: truncated output")
_CODEX_HEAD = re.compile(r"(?:Script [^\n]*\n)?Wall time:? [^\n]*\nOutput:\n?")
# A script goes on; `wait`, another call, returns what it prints later.
_CODEX_UNFINISHED = "Script running"
# Lines without these words hold no call and no answer of a tool; most lines are such.
_WORDS = (b'"mcp__', b'"tool_result"', b'"function_call', b'"custom_tool_call', b'"McpToolCall"')


class ToolAnswer(NamedTuple):
    """An answer as the model read it: the tool as `server/tool`, and whether the client cut it.

    `whole` is the answer of the server, if the client has saved it and it is still there;
    `exchange` is the call if it was recorded. An answer to a script has the bytes of the result as
    `to_script`, and its `text` is what the script printed; of several answers the largest has it.
    """

    client: str
    tool: str
    text: str
    cut: bool
    whole: str | None
    arguments: dict[str, Any]
    exchange: RecordedExchange | None = None
    to_script: int | None = None


def folders(environment: "os._Environ[str]") -> list[str]:
    """Return the folders in which clients keep transcripts, those that exist."""
    claude = environment.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
    codex = environment.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    every = (os.path.join(claude, "projects"), os.path.join(codex, "sessions"))
    return [folder for folder in every if os.path.isdir(folder)]


def files(paths: Iterable[str], since: float, ending: str, report: Report) -> Iterator[str]:
    """Yield the files with an `ending` in files and folders, written after a time in seconds.

    `report` gets the error of each file in a folder that is not there or no regular file.
    """
    for path in paths:
        if not os.path.isdir(path):
            if path.endswith(ending) and os.path.getmtime(path) >= since:
                yield path
            continue
        for folder, _, names in os.walk(path):
            for name in sorted(names):
                if name.endswith(ending):
                    file = os.path.join(folder, name)
                    try:
                        with open_regular(file) as content:
                            recent = os.fstat(content.fileno()).st_mtime >= since
                    except OSError as error:
                        report(error)
                        continue
                    if recent:
                        yield file


def answers(path: str, report: Report) -> Iterator[ToolAnswer]:
    """Return the answers of MCP tools in a transcript or a recording."""
    if os.path.basename(path) == SESSION:
        return _recorded(os.path.dirname(path), report)
    return (event for event in _events(path, _WORDS, report) if isinstance(event, ToolAnswer))


Words = list[tuple[int, str]]
"""The model's own words in a transcript, each with the number of the call that it comes before."""


def sessions_in(paths: Iterable[str], report: Report) -> Iterator[tuple[RecordedSession, Words]]:
    """Yield the sessions in recordings and transcripts: files, and folders of either."""
    for path in paths:
        talks = [*files([path], 0.0, ENDING, report)]
        for file in talks:
            yield from sessions(file, report)
        # Beside transcripts, other files are the client's own.
        for session in recordings.sessions([path], report) if not talks else ():
            yield session, []


def sessions(path: str, report: Report) -> Iterator[tuple[RecordedSession, Words]]:
    """Yield a session for each server in a transcript, with the model's own words.

    Each text of the model has the number of the call that it comes before; the arguments of calls
    that are not in the session are such texts.
    """
    events = list(_events(path, (b"{",), report))
    tools = (event.tool for event in events if isinstance(event, ToolAnswer))
    for server in dict.fromkeys(tool.partition("/")[0] for tool in tools):
        session, words = RecordedSession(path, server, None, {}, []), []
        for event in events:
            if isinstance(event, str):
                words.append((len(session.exchanges), event))
                continue
            owner, _, tool = event.tool.partition("/")
            if event.whole is None or owner != server:
                words.append((len(session.exchanges), json_text(event.arguments)))
                session.cut += [tool] if owner == server else []
            else:
                plain = make(tool, event.arguments, text_result(event.whole))
                session.exchanges.append((path, event.exchange or plain))
        yield session, words


def saved_answer(text: str, transcript: str) -> str | None:
    """Return the answer that Claude Code saved, if a text is its words in place of one."""
    match = _CLAUDE_FILE.search(text) if _CLAUDE_CUT.match(text) else None
    return session_file(match[1].removesuffix("."), transcript) if match else None


def session_file(path: str, transcript: str) -> str | None:
    """Return the content of a file that Claude Code saved, None if the path names another one.

    A server can write any path. So none is opened: it only names a file in the folder that the
    client has for the session of `transcript`.
    """
    if not transcript.endswith(ENDING):
        return None
    session = _CLAUDE_AGENT.sub("", os.path.abspath(transcript).removesuffix(ENDING))
    *_, owner, folder, name = f"//{path.replace(os.sep, '/')}".split("/")
    path = os.path.join(session, folder, name)
    # On Windows a name may begin with a drive.
    own = (os.path.basename(session), "tool-results") == (owner, folder)
    if not own or os.path.dirname(path) != os.path.join(session, folder):
        return None
    try:
        with open_regular(path, follow=False) as file:
            return file.read().decode(errors="replace")
    except (OSError, ValueError):  # ValueError: no file can have that name
        return None


def _events(path: str, lines_with: tuple[bytes, ...], report: Report) -> Iterator[ToolAnswer | str]:
    pending = _Pending()
    strange: list[int] = []
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not any(word in line for word in lines_with):
                    continue
                try:
                    record = _object(line)
                    yield from [
                        *_claude(record, pending.calls, path),
                        *_codex(record.get("payload"), pending),
                    ]
                except (AttributeError, LookupError, RecursionError, TypeError):
                    strange.append(number)
    except OSError as error:
        report(error)
    yield from pending.printed_by_script()
    if strange:
        many = count_text(len(strange), "line")
        reason = f"{many} left out, of another form than a client's; the first is {strange[0]}"
        report(AbridgeError(f"{path}: {reason}"))


def _recorded(folder: str, report: Report) -> Iterator[ToolAnswer]:
    for session in recordings.sessions([folder], report):
        shows = client_for(session.client).shows
        for _, exchange in session.exchanges:
            text = _encodable("\n".join(read(exchange.response).texts_for(shows)))
            tool, client = f"{session.server}/{exchange.tool}", session.client or ""
            yield ToolAnswer(client, tool, text, False, text, exchange.arguments, exchange)


def _claude(
    record: dict[str, Any], tools: "dict[str, _Call]", path: str
) -> Iterator[ToolAnswer | str]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        match block.get("type"):
            case "text" if record.get("type") == "assistant":
                yield str(block.get("text"))
            case "tool_use" if str(block.get("name")).startswith("mcp__"):
                tools[block["id"]] = (_name(block["name"]), block.get("input") or {})
            case "tool_use":
                yield json_text(block.get("input"))
            case "tool_result" if (call := tools.pop(block["tool_use_id"], None)) is not None:
                text = _text(block.get("content"))
                cut = _CLAUDE_CUT.match(text) is not None
                whole = saved_answer(text, path) if cut else text
                yield ToolAnswer("claude-code", call[0], text, cut, whole, call[1])


def _codex(payload: Any, pending: "_Pending") -> Iterator[ToolAnswer | str]:
    match payload.get("type") if isinstance(payload, dict) else None:
        case "message" if payload.get("role") == "assistant":
            yield _text(payload.get("content"))
        case "function_call":
            name = str(payload.get("name"))
            if str(payload.get("namespace")).startswith("mcp__"):
                name = f"{payload['namespace']}__{name}"
            if name.startswith("mcp__"):
                pending.calls[payload["call_id"]] = (_name(name), _object(payload.get("arguments")))
            else:
                pending.scripts |= {payload["call_id"]} if name == "wait" else set()
                yield str(payload.get("arguments"))
        case "custom_tool_call":
            pending.scripts.add(payload["call_id"])
            yield str(payload.get("input"))
        case "item_completed" if payload["item"]["type"] == "McpToolCall":
            item = payload["item"]
            if item["id"] in pending.calls:
                pending.events[item["id"]] = _event(item)
            else:
                pending.of_script.append(_event(item))
        case "function_call_output" | "custom_tool_call_output":
            id, output = payload["call_id"], _text(payload.get("output"))
            text = _CODEX_HEAD.sub("", output, count=1).removeprefix("\n")
            if (call := pending.calls.pop(id, None)) is not None:
                event, cut = pending.events.pop(id, None), _CODEX_CUT.search(text) is not None
                name = event.tool if event else call[0]  # in `call` without its hyphens
                whole = text if not cut else event and event.whole
                yield ToolAnswer("codex-mcp-client", name, text, cut, whole, call[1])
            elif id in pending.scripts:
                pending.printed.append(text)
                if not output.startswith(_CODEX_UNFINISHED):
                    yield from pending.printed_by_script()


def _event(item: dict[str, Any]) -> ToolAnswer:
    """Return the answer that an event tells of, as one to a script that printed nothing yet."""
    client, tool, arguments = "codex-mcp-client", str(item["tool"]), item.get("arguments") or {}
    error = {"content": [{"type": "text", "text": str(item.get("error"))}], "isError": True}
    result = item.get("result") or error
    text = _text(result.get("content"))
    whole = exchange = None
    if (left_out := _CODEX_CUT.search(text)) and left_out[1]:
        # The middle is left out of the result's JSON, or of its text, in characters.
        size = len(text.encode()) - len(left_out[0].encode()) + int(left_out[1])
    else:
        size = len(to_json(result))
        exchange = make(tool, arguments, Raw(to_json(result)))
        whole = "\n".join(read(exchange.response).texts_for(client_for(client).shows))
    name = f"{item['server']}/{tool}"
    return ToolAnswer(client, name, "", False, whole, arguments, exchange, size)


_Call = tuple[str, dict[str, Any]]


class _Pending(Struct):
    """The calls of a transcript whose answers are further down.

    `calls` are those of the model, by their ids; `events` tell of the same. `scripts` are the ids
    of calls whose output is a script's; `of_script` are the answers to it, `printed` its words.
    """

    calls: dict[str, _Call] = {}
    events: dict[str, ToolAnswer] = {}
    scripts: set[str] = set()
    of_script: list[ToolAnswer] = []
    printed: list[str] = []

    def printed_by_script(self) -> Iterator[ToolAnswer]:
        """Yield the answers to a script that has ended, the largest with what it printed."""
        text = "\n".join(filter(None, self.printed))
        largest = max(self.of_script, key=lambda answer: answer.to_script or 0, default=None)
        for answer in self.of_script:
            cut = _CODEX_CUT.search(text) is not None
            yield answer._replace(text=text, cut=cut) if answer is largest else answer
        self.of_script, self.printed = [], []


def _object(text: Any) -> dict[str, Any]:
    with suppress(TypeError, ValueError):
        value = json.loads(text)
        return value if isinstance(value, dict) else {}
    return {}


def _name(name: str) -> str:
    """Return `server/tool` for `mcp__server__tool`."""
    return name.removeprefix("mcp__").replace("__", "/", 1)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return _encodable(content)
    blocks = content if isinstance(content, list) else ()
    texts = (block["text"] for block in blocks if isinstance(block.get("text"), str))
    return _encodable("\n".join(texts))


def _encodable(text: str) -> str:
    """Return a text with a question mark in place of each lone surrogate."""
    return text.encode(errors="replace").decode()
