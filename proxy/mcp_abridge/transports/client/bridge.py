"""Move lines between the client on the proxy's stdin and stdout and a remote server.

Invariants: lines go to the server in order; the proxy reads from the server only as fast as the
client reads; the end of one side is the end of the other.
"""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

from mcp_abridge.system import platform
from mcp_abridge.transports.client.endpoint import HttpClient
from mcp_abridge.transports.client.streamable import Streamable
from mcp_abridge.transports.correlation import refusal_of_long_line
from mcp_abridge.transports.driver import Driver
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.stdio.pipes import (
    Lines,
    LineTruncated,
    LongLine,
    PipeReader,
    PipeWriter,
    ready,
)

_FAILED = 70  # EX_SOFTWARE of sysexits.h
_LOST = 1

_LATE = 5.0  # seconds for late responses once the client sends no more requests
_HURRIED = 0.5  # the same after a signal
_LAST = 1.0  # seconds for the last messages
_QUESTION = 1.0  # seconds for a client's first request
_AHEAD = 8  # lines that are read ahead
_ATOMIC = 4096  # bytes that a pipe takes without blocking if it takes any


class End(NamedTuple):
    """The end of a session; `patience` are the seconds left for late responses."""

    code: int
    reason: str
    patience: float = 0.0
    refuses: bool = False


class Bridge:
    """One client, one remote server, and the session; `limit` bounds a message, in bytes."""

    def __init__(self, endpoint: HttpClient, driver: Driver, log: Log, limit: int) -> None:
        self._driver = driver
        self._log = log
        self._limit = limit
        self._loop = asyncio.new_event_loop()
        self._server = Streamable(
            endpoint,
            driver,
            log,
            self._say,
            lambda reason: self._ends.put_nowait(End(_LOST, reason)),
        )
        self._client = PipeWriter(1, lambda: self._tell(End(0, "the client reads no more")))
        self._saying = asyncio.Lock()
        self._first_input = asyncio.Event()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
        self._ends: asyncio.Queue[End] = asyncio.Queue()

    def run(self) -> int:
        """Move lines until either side ends; return the exit code, with which to exit at once.

        The main thread must call it, and block the signals until then.
        """
        return self._loop.run_until_complete(self._run())

    def refuse(self, code: int, reason: str) -> None:
        """End the session, from another thread, with this exit code, for this reason."""
        self._tell(End(code, reason, refuses=True))

    def _tell(self, end: End) -> None:
        self._loop.call_soon_threadsafe(self._ends.put_nowait, end)

    async def _run(self) -> int:
        for number in platform.END_SIGNALS:
            if not platform.ignores(number):
                reason = f"the proxy was ended by {signal.Signals(number).name}"
                platform.heed(number, self._ends.put_nowait, End(128 + number, reason, _HURRIED))
        platform.release_signals()
        reading = self._loop.create_task(self._guarded(self._read_client()))
        taking = self._loop.create_task(self._guarded(self._take_lines()))
        end = await self._ends.get()
        if end.refuses:
            # A client that has sent no request yet must still get a response.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._first_input.wait(), _QUESTION)
        end = await self._late_answers(end, taking)
        taking.cancel()
        self._server.stop()
        await self._say_last(end)
        reading.cancel()
        await self._server.close()
        return end.code

    # The end

    async def _late_answers(self, end: End, taking: "asyncio.Task[None]") -> End:
        async def hasten() -> None:
            nonlocal end
            while True:
                later = await self._ends.get()
                end = end if end.code else later
                deadline = self._loop.time() + later.patience
                patience.reschedule(min(deadline, patience.when() or deadline))

        self._log.debug(end.reason)
        with suppress(TimeoutError):
            async with asyncio.timeout(end.patience) as patience:
                hastening = self._loop.create_task(hasten())
                await asyncio.wait({taking})
                await self._server.answered()
        hastening.cancel()
        return end

    async def _say_last(self, end: End) -> None:
        while not self._lines.empty():
            if (line := self._lines.get_nowait()) is not None:
                await self._driver.from_client(line)
            await asyncio.sleep(0)  # the reader may wait to add another line
        lines = self._driver.session.fail_pending(end.reason)
        if lines:
            self._log.error(f"{end.reason}; requests answered with an error: {len(lines)}")
        elif end.code in (_LOST, _FAILED):
            self._log.error(end.reason)
        # The client may not be reading; the proxy ends anyway.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST):
                await asyncio.to_thread(self._client.finish, lines)

    # The client

    async def _read_client(self) -> None:
        reader, lines = PipeReader(0), Lines(self._limit)
        size = -1
        while size:
            buffer, size = await self._read(reader)
            self._first_input.set()
            for event in lines.feed(buffer, size) if size else lines.end():
                if isinstance(event, LongLine):
                    await self._say(refusal_of_long_line(event, self._limit, self._log))
                elif isinstance(event, list | LineTruncated):
                    # The server decides how to handle half a message.
                    for raw in event if isinstance(event, list) else [event.raw]:
                        await self._lines.put(raw)
        self._ends.put_nowait(End(0, "the client asks no more", _LATE))
        await self._lines.put(None)

    async def _read(self, reader: PipeReader) -> tuple[bytes | bytearray, int]:
        readable = asyncio.Event()
        try:
            self._loop.add_reader(0, readable.set)
        except (OSError, NotImplementedError):
            return await asyncio.to_thread(reader.read)
        try:
            await readable.wait()
        finally:
            self._loop.remove_reader(0)
        return reader.read()

    async def _guarded(self, side: Coroutine[Any, Any, None]) -> None:
        try:
            await side
        except Exception as error:  # a side that is not served would wait forever
            reason = f"the proxy failed: {type(error).__name__}: {error}"
            self._ends.put_nowait(End(_FAILED, reason))

    async def _take_lines(self) -> None:
        while (line := await self._lines.get()) is not None:
            if line.strip():
                routed = await self._driver.from_client(line)
                await self._say(routed.to_client)
                for raw in routed.all_to_server:
                    await self._server.send(raw)

    async def _say(self, lines: list[bytes]) -> None:
        if not lines:
            return
        async with self._saying:
            short = len(lines) == 1 and len(lines[0]) < _ATOMIC
            if short and ready(1, "POLLOUT", 0):
                self._client.send(lines)  # without blocking
            else:
                await asyncio.to_thread(self._client.send, lines)
