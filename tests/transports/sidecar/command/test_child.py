"""Real processes under an event loop: lines both ways, an orderly end, nothing left behind."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from proxy.transports.log import Log
from proxy.transports.sidecar.command.child import HASTY, ChildServer
from proxy.transports.stdio.child import Guardian
from proxy.transports.stdio.lines import Event
from tests.transports.processes import wait_gone


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


@asynccontextmanager
async def started(
    command: list[str], guardian: Guardian | None = None, limit: int = 1 << 24
) -> AsyncIterator[ChildServer]:
    child = await ChildServer.start(command, guardian, Log("error"), limit)
    try:
        yield child
    finally:
        await child.end(HASTY)


async def send(child: ChildServer, line: bytes) -> None:
    child.post([line])
    await child.ready()


async def events(child: ChildServer) -> list[Event]:
    return [event async for event in child.events()]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def lines(child: ChildServer, count: int) -> list[bytes]:
    output: list[bytes] = []
    async for event in child.events():
        assert isinstance(event, list)
        output += event
        if len(output) >= count:
            break
    return output


async def test_many_senders_never_break_into_a_line() -> None:
    async with started(["cat"]) as child:
        messages = [b"%d" % number * 5000 for number in range(40)]
        senders = [asyncio.create_task(send(child, line)) for line in messages]
        assert sorted(await lines(child, 40)) == sorted(messages)
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


async def test_a_server_that_does_not_read_delays_only_its_sender() -> None:
    async with started(python("import sys, time; sys.stdin.read(1); time.sleep(60)")) as child:
        sender = asyncio.create_task(send(child, b"x" * (1 << 20)))
        finished, _ = await asyncio.wait([sender], timeout=0.2)
        assert not finished
        await child.end(HASTY)
        await asyncio.wait_for(sender, 5)
        assert child.code == -signal.SIGTERM


@pytest.mark.parametrize("steps", [3, 5, 8])
async def test_a_start_that_is_cancelled_leaves_no_descendant(steps: int, tmp_path: Path) -> None:
    descendant = tmp_path / "pid"
    script = 'sleep 600 & echo $! >"$0.new"; mv "$0.new" "$0"; wait'
    command = ["sh", "-c", script, str(descendant)]
    start = asyncio.create_task(ChildServer.start(command, None, Log("error"), 100))
    for _ in range(steps):
        await asyncio.sleep(0)
    # The event loop stands still, so that the descendant is there before the start is over.
    while not start.done() and not descendant.exists():
        time.sleep(0.01)
    start.cancel()
    with suppress(asyncio.CancelledError):
        await (await start).end(HASTY)
    wait_gone(int(descendant.read_text()))


async def test_a_missing_command_is_an_error_and_leaves_no_descriptor() -> None:
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        await ChildServer.start(["/nowhere/at-all"], None, Log("error"), 100)
    assert descriptors() == before


async def test_the_end_is_noticed_though_a_descendant_has_its_stdout() -> None:
    script = "import subprocess, os; subprocess.Popen(['sleep', '60']); os.write(1, b'last\\n')"
    async with started(python(script)) as child:
        assert await asyncio.wait_for(events(child), 10) == [[b"last"]]


async def test_a_server_that_closes_its_stdin_is_ended() -> None:
    script = "import os, time; os.close(0); os.write(1, b'up\\n'); time.sleep(60)"
    async with started(python(script)) as child:
        assert await asyncio.wait_for(events(child), 15) == [[b"up"]]
        assert child.deaf
        await child.end()
        assert child.code == -signal.SIGTERM


async def test_a_server_that_closes_its_stdin_before_its_start_is_over_is_ended() -> None:
    command = python("import os, time; os.close(0); time.sleep(60)")
    start = asyncio.create_task(ChildServer.start(command, None, Log("error"), 100))
    for _ in range(3):
        await asyncio.sleep(0)
    time.sleep(0.5)  # the event loop stands still meanwhile
    child = await start

    assert await asyncio.wait_for(events(child), 15) == []
    await child.end()
    assert child.code == -signal.SIGTERM


async def test_no_descriptor_stays_open_after_the_end() -> None:
    async with started(["cat"]):
        pass
    before = descriptors()
    for _ in range(5):
        async with started(["cat"]) as child:
            await send(child, b"x")
    assert descriptors() == before


async def test_a_server_waits_for_a_reader_of_its_pipe() -> None:
    script = "import os\nfor _ in range(200): os.write(1, b'x' * 999_999 + b'\\n')\n"
    async with started(python(script + "os.write(2, b'done\\n')")) as child:
        events = child.events()
        assert await anext(events)
        assert child.tail == b""
        assert child.code is None
        await child.end(HASTY)
