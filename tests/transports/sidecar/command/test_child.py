"""Real processes under an event loop: lines both ways, an orderly end, nothing left behind."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp_abridge.system import platform
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.command.child import HASTY, ChildServer


@asynccontextmanager
async def started(
    command: list[str], guardian: platform.Guardian | None = None, limit: int = 1 << 24
) -> AsyncIterator[ChildServer]:
    child = await ChildServer.start(command, guardian, Log("error"), limit)
    try:
        yield child
    finally:
        await child.end(HASTY)


async def send(child: ChildServer, line: bytes) -> None:
    child.post([line])
    await child.ready()


def messages(child: ChildServer) -> AsyncIterator[bytes]:
    return child.messages(lambda id: False)


async def every(child: ChildServer) -> list[bytes]:
    return [line async for line in messages(child)]


async def lines(child: ChildServer, count: int) -> list[bytes]:
    output: list[bytes] = []
    async for line in messages(child):
        output.append(line)
        if len(output) >= count:
            break
    return output


async def test_many_senders_never_break_into_a_line() -> None:
    async with started(["cat"]) as child:
        long = [b"%d" % number * 5000 for number in range(40)]
        senders = [asyncio.create_task(send(child, line)) for line in long]
        assert sorted(await lines(child, 40)) == sorted(long)
        await asyncio.gather(*senders)


async def test_a_sender_that_is_cancelled_leaves_no_half_line() -> None:
    async with started(["cat"]) as child:
        long = b"x" * (1 << 22)
        sender = asyncio.create_task(send(child, long))
        await asyncio.sleep(0)
        assert not sender.done()
        sender.cancel()
        following = asyncio.create_task(send(child, b"next"))
        assert [len(line) for line in await lines(child, 2)] == [1 << 22, 4]
        await following


async def test_the_end_is_noticed_though_a_descendant_has_its_stdout() -> None:
    script = "import subprocess, os; subprocess.Popen(['sleep', '60']); os.write(1, b'last\\n')"
    async with started([sys.executable, "-c", script]) as child:
        assert await asyncio.wait_for(every(child), 10) == [b"last"]


async def test_a_server_that_closes_its_stdin_is_ended() -> None:
    script = "import os, time; os.close(0); os.write(1, b'up\\n'); time.sleep(60)"
    async with started([sys.executable, "-c", script]) as child:
        assert await asyncio.wait_for(every(child), 15) == [b"up"]
        assert child.deaf
        await child.end()
        assert child.code == -signal.SIGTERM


async def test_a_server_waits_for_a_reader_of_its_pipe() -> None:
    script = "import os\nfor _ in range(200): os.write(1, b'x' * 999_999 + b'\\n')\n"
    async with started([sys.executable, "-c", script + "os.write(2, b'done\\n')"]) as child:
        assert await anext(messages(child))
        assert child.tail == b""
        assert child.code is None
        await child.end(HASTY)
