"""Shared by the scripts: the addresses of model and server, and an agent for clients without."""

import json
import os
import shlex
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

URL = os.environ["MODEL_URL"] + "/v1"
COMMAND, *ARGS = json.loads(os.environ["SERVER"])
ENV = {name: os.environ[name] for name in ("PATH", "HOME")}
PROMPT = "Call the tools as you are told and then say that you are done."


def script() -> Path:
    """Write a script that starts the server, for clients that a long command is too much for."""
    path = Path("server.sh").resolve()
    path.write_text(f"#!/bin/sh\nexec {shlex.join([COMMAND, *ARGS])}\n")
    path.chmod(0o755)
    return path


def ask(messages: list, tools: list) -> dict:
    body = json.dumps({"model": "stand-in", "messages": messages, "tools": tools}).encode()
    request = urllib.request.Request(f"{URL}/chat/completions", body)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]


async def play(names: list[str], call: Callable[[str, dict], Awaitable[str]]) -> None:
    """Call tools until the model says that it is done; `call` returns what it is to be shown."""
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    messages = [{"role": "user", "content": PROMPT}]
    while True:
        message = ask(messages, tools)
        messages.append(message)
        if not message.get("tool_calls"):
            break
        for each in message["tool_calls"]:
            function = each["function"]
            text = await call(function["name"], json.loads(function["arguments"]))
            messages.append({"role": "tool", "tool_call_id": each["id"], "content": text})
