"""Recordings of real servers, as `run --record` writes them."""

import asyncio
import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcp_abridge.cli.server import listing

Calls = Sequence[tuple[str, dict[str, Any]]]


def record(folder: Path, command: Sequence[str], calls: Calls) -> str:
    """Make these calls through the wrapper, and return the folder with the recording."""

    async def further(client: Any, _: Any) -> None:
        for tool, arguments in calls:
            await client.call_tool(tool, arguments)

    server = Namespace(command=[*command], url=None, header=None, deadline=60.0)
    asyncio.run(listing(server, further, more=["--record", str(folder)]))
    return str(folder)


def write(folder: Path, *exchanges: tuple[str, dict[str, Any], Any]) -> str:
    """Write a recording of calls: tools with their arguments and documents."""
    for number, (tool, arguments, value) in enumerate(exchanges, 1):
        text = value if isinstance(value, str) else json.dumps(value)
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call"}
        request |= {"params": {"name": tool, "arguments": arguments}}
        result = {"content": [{"type": "text", "text": text}]}
        response = {"jsonrpc": "2.0", "id": number, "result": result}
        exchange = {"request": request, "response": response}
        (folder / f"{number:04}-{tool}.json").write_text(json.dumps(exchange))
    return str(folder)
