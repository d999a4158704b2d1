"""The Inspector's command line, which runs once for each call; the model is shown its output."""

import asyncio
import json
import subprocess
from pathlib import Path

from loop import play, script

FOLDER = Path(__file__).resolve().parents[3] / ".cache" / "clients" / "inspector"
INSPECTOR = FOLDER / "node_modules" / ".bin" / "mcp-inspector"


def inspect(*options):
    # A script, because the Inspector takes options of the server's command for its own.
    command = [INSPECTOR, "--cli", script(), *options]
    completed = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return completed.stdout.decode() or completed.stderr.decode()


async def call(name, arguments):
    options = [f"--tool-arg={key}={value}" for key, value in arguments.items()]
    return inspect("--method", "tools/call", "--tool-name", name, *options)


tools = json.loads(inspect("--method", "tools/list"))["tools"]
asyncio.run(play([tool["name"] for tool in tools], call))
