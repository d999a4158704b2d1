"""The clients of the official SDKs: what a user's program really waits for."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any

import msgspec
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tests.benchmarks.commands import HERE, ROOT, extra
from tests.servers.install import node


class Calls:
    """One call after the other of a connected `mcp` client, which lives in the portal's thread."""

    def __init__(self, portal: BlockingPortal, client: Any, tool: str) -> None:
        self.portal = portal
        self.client = client
        self.tool = tool

    def times(self, calls: int) -> list[float]:
        return self.portal.call(self._times, calls)

    async def _times(self, calls: int) -> list[float]:
        durations = []
        for _ in range(calls):
            start = perf_counter()
            await self.client.call_tool(self.tool, {})
            durations.append(perf_counter() - start)
        return durations

    def answer(self) -> bytes:
        result = self.portal.call(self.client.call_tool, self.tool, {})
        text: str = result.model_dump_json(by_alias=True, exclude_unset=True)
        return text.encode()


@contextmanager
def connected_clients(commands: Sequence[Sequence[str]], tool: str) -> Iterator[list[Calls]]:
    """Connect an `mcp` client to each command, all in one event loop."""
    from mcp import Client, StdioServerParameters

    with start_blocking_portal() as portal, ExitStack() as stack:
        sides = []
        for command, *arguments in commands:
            server = StdioServerParameters(command=command, args=arguments, env=extra(), cwd=ROOT)
            client = Client(server, mode="legacy")
            stack.enter_context(portal.wrap_async_context_manager(client))
            portal.call(client.list_tools)
            sides.append(Calls(portal, client, tool))
        yield sides


class Typescript(msgspec.Struct, frozen=True):
    """Measurements of a TypeScript client: milliseconds of each call, the last answer's size.

    `error` says why there are none.
    """

    milliseconds: list[float] = []
    size: int = 0
    error: str = ""


def typescript(command: Sequence[str], tool: str, calls: int) -> Typescript:
    """Run the client of the TypeScript SDK over a command. Raises NotInstalled without Node."""
    spec = {"command": command[0], "args": command[1:], "env": extra(), "cwd": str(ROOT)}
    completed = subprocess.run(
        [node(), str(HERE / "typescript.mjs"), json.dumps({**spec, "tool": tool, "calls": calls})],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    if completed.returncode:
        return Typescript(error=completed.stderr[-2000:].decode(errors="replace").strip())
    return msgspec.json.decode(completed.stdout, type=Typescript)
