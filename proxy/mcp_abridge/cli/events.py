"""Events of clients' hooks: without it, `hook` could serve one client alone.

A form reads the answer of a tool in the events of one client. To an event of any other form the
reply is silence: some programs run the hooks of Claude Code's settings, and say other things to
them.
"""

import json  # orjson tells not where a document ends
import os
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_abridge.cli import PROGRAM

if TYPE_CHECKING:
    from mcp_abridge.replay.answers import ClientView

Event = dict[str, Any]

BUILT_IN = {"Bash": "stdout", "WebFetch": "result"}
"""Claude Code's own tools that `--tools` may name, and the member of their output that is cut."""

_COPILOT_FILE = re.compile(
    r"Output too large to read at once \([^)\n]*\)[.] Saved to: [^\n]*"
    r"[/\\](\d+-copilot-tool-output-[0-9a-f]{32}[.]txt)\n"
)
# Gemini CLI shows the model as an error what replaces an answer.
_NO_ERROR = "The tool has succeeded. Its answer:\n"


class Answer(NamedTuple):
    """An answer in an event: the tool and its arguments, and the result as MCP has it.

    `server` is the name that the client has for it, None for its own tools.
    """

    server: str | None
    tool: str
    arguments: dict[str, Any]
    result: dict[str, Any]


def read(event: Event, client: str | None, tools: Collection[str]) -> tuple[str, Answer] | None:
    """Return the client that an event is of, and the answer in it; None if it has none to cut.

    `client` is the only one that is tried. Of BUILT_IN tools, only `tools` have answers.
    """
    for name in FORMS if client is None else (client,):
        with suppress(AttributeError, LookupError, TypeError, ValueError):
            if event.get("tool_name") in BUILT_IN.keys() - tools:
                return None
            answer = FORMS[name](event)
            if answer is not None and isinstance(answer.arguments, dict):
                return name, answer
    return None


def _claude(event: Event) -> Answer | None:
    from mcp_abridge.cli.transcripts import saved_answer

    name, arguments, response = (event[f"tool_{part}"] for part in ("name", "input", "response"))
    if event["hook_event_name"] != "PostToolUse":
        return None
    if name in BUILT_IN:
        text = _bash(event) if name == "Bash" else response[BUILT_IN[name]]
        return None if text is None else Answer(None, name, arguments, _texts(text))
    prefix, server, tool = name.split("__", 2)
    result = {"content": response}
    if isinstance(response, str):
        whole = saved_answer(response, event["transcript_path"])
        result = _texts(response if whole is None else whole)
    is_answer = prefix == "mcp" and isinstance(response, str | list)
    return Answer(server, tool, arguments, result) if is_answer else None


def _bash(event: Event) -> str | None:
    """Return the output of a command, but not of one that reads the rest of an answer."""
    from mcp_abridge.cli.transcripts import session_file

    response = event["tool_response"]
    if response["interrupted"] or response["isImage"] or PROGRAM in event["tool_input"]["command"]:
        return None
    if path := response.get("persistedOutputPath"):
        return session_file(path, event["transcript_path"])
    output: str = response["stdout"]
    return output


def _for_claude(event: Event, view: "ClientView", text: str) -> Any:
    from mcp_abridge.document.tree import loads

    output: dict[str, Any] = {"hookEventName": "PostToolUse"}
    if member := BUILT_IN.get(event["tool_name"]):
        own = event["tool_response"].items()
        rest = {name: value for name, value in own if not name.startswith("persisted")}
        output["updatedToolOutput"] = {**rest, member: text}
    else:
        blocks = loads(view.line)["result"]["content"]
        # The second is the name in earlier versions.
        output |= {"updatedToolOutput": blocks, "updatedMCPToolOutput": blocks}
    return {"hookSpecificOutput": output}


def _codex(event: Event) -> Answer | None:
    from mcp_abridge.replay.differences import to_json
    from mcp_abridge.ruleset.clients import client_for

    result = event["tool_response"]
    _, of_script = client_for("codex").code_mode or ((), "")
    if event["tool_use_id"].startswith(of_script) or result.get("isError"):
        return None
    if "turn_id" not in event or any(block["type"] != "text" for block in result["content"]):
        return None  # a text would replace pictures, too
    if (structured := result.get("structuredContent")) is not None:
        result = _texts(to_json(structured).decode())  # the copy that its models read
    _, server, tool = event["tool_name"].split("__", 2)
    return Answer(server, tool, event["tool_input"], result)


def _copilot(event: Event) -> Answer | None:
    name, result = event["toolName"], event["toolResult"]
    server, hyphen, tool = name.rpartition("-")  # the client's own tools have none
    if not hyphen or result["resultType"] != "success":
        return None
    text = result["textResultForLlm"]
    return Answer(server, tool, event["toolArgs"], _texts(_once(_copilot_file(text) or text)))


def _once(text: str) -> str:
    """Return the first of two equal JSON documents: the copies of a result."""
    with suppress(ValueError):
        document, end = json.JSONDecoder().raw_decode(text)
        if document == json.loads(text[end:]):
            return text[:end]
    return text


def _copilot_file(text: str) -> str | None:
    """Return the answer that Copilot CLI saved, if a text is its words in place of one.

    A server can write the same words. So no path of a text is opened: it only names a file in the
    folder that the client has, and no server knows the random names of those.
    """
    import tempfile

    from mcp_abridge.storage.regular import open_regular

    if match := _COPILOT_FILE.match(text):
        with (
            suppress(OSError),
            open_regular(os.path.join(tempfile.gettempdir(), match[1]), follow=False) as file,
        ):
            return file.read().decode(errors="replace")
    return None


def _gemini(event: Event) -> Answer | None:
    response = event["tool_response"]
    if event["hook_event_name"] != "AfterTool" or "error" in response:
        return None
    texts = [part["text"] for part in response["llmContent"]]
    server, tool = (event["mcp_context"][f"{part}_name"] for part in ("server", "tool"))
    return Answer(server, tool, event["tool_input"], _texts(*texts))


def _vibe(event: Event) -> Answer | None:
    from mcp_abridge.replay.differences import to_json

    server, _, tool = event["tool_name"].partition(".")
    if event["hook_event_name"] != "post_tool" or event["tool_status"] != "success":
        return None
    if not tool or not server.startswith(("mcp_", "connector_")):
        return None
    structured = event["tool_output"]  # which scripts get, if there is any
    text = event["tool_output_text"] if structured is None else to_json(structured).decode()
    server = server.partition("_")[2]
    return Answer(server, tool, event["tool_input"], _texts(text))


def _texts(*texts: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts]}


FORMS: dict[str, Callable[[Event], Answer | None]] = {
    "claude-code": _claude,
    "codex": _codex,
    "copilot-cli": _copilot,
    "gemini-cli": _gemini,
    "mistral-vibe": _vibe,
}


def reply(client: str, event: Event, view: "ClientView", text: str) -> Any:
    """Return the output by which a client shows its model a `view`, whose texts are `text`."""
    if client == "claude-code":
        return _for_claude(event, view, text)
    if client == "copilot-cli":
        return {"modifiedResult": {"textResultForLlm": text, "resultType": "success"}}
    if client == "gemini-cli":
        text = _NO_ERROR + text
    return {"decision": "block" if client == "codex" else "deny", "reason": text}
