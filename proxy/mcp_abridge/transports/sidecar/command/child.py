"""Child processes of an event loop: each has a process group, and lines as input and output.

Invariants: a line is written whole or not at all; little is read ahead, so the pipe blocks a server
whose output is not read; no process group outlives the proxy, even if the proxy is killed.
"""

import asyncio
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress

from mcp_abridge.system import platform
from mcp_abridge.transports.aio import give_way, threaded
from mcp_abridge.transports.correlation import error_for_long_line
from mcp_abridge.transports.log import TAIL, Log
from mcp_abridge.transports.stdio.pipes import Lines, LineTruncated, LongLine
from mcp_abridge.transports.stdio.shutdown import end_of_server

_CHUNK = 64 << 10
_LARGE_CHUNK = 1 << 20
_STRAGGLERS = 0.5  # seconds for the output of others in the group after the server has ended
_LOOK = 0.02  # seconds between two checks for the end of a group

# Seconds from closing a server's stdin until SIGTERM, and from there until SIGKILL.
ORDERLY = (2.0, 2.0)
HASTY = (0.2, 1.0)


class ChildServer:
    """A server that runs, or has ended, made by `start`; `limit` bounds its lines, in bytes."""

    _transport: asyncio.SubprocessTransport
    _stdin: asyncio.StreamWriter
    _stdout: asyncio.StreamReader
    _forwarding: "asyncio.Task[None] | None" = None

    def __init__(self, guardian: platform.Guardian | None, log: Log, limit: int) -> None:
        self._group = platform.ProcessGroup(guardian)
        self._log = log
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self.tail = b""
        """The end of its stderr output, at most TAIL bytes."""
        self.deaf = False
        """True if it accepts no more input."""
        self._exited = asyncio.Event()
        self._reads: set[asyncio.Timeout] = set()
        self._pressing: asyncio.Task[None] | None = None
        self._end: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        guardian: platform.Guardian | None,
        log: Log,
        limit: int,
        env: Mapping[str, str] | None = None,
    ) -> "ChildServer":
        """Start a server, with `env` or the proxy's environment; raises OSError if that fails."""
        child = cls(guardian, log, limit)
        starting = child._loop.create_task(child._start(command, env))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # asyncio would kill the server alone, not the processes that it has started.
            await starting
            await child.end(HASTY)
            raise
        return child

    async def _start(self, command: Sequence[str], env: Mapping[str, str] | None) -> None:
        try:
            self._transport, protocol = await self._loop.subprocess_exec(
                lambda: _Protocol(self, self._loop),
                *platform.program(command),
                env=env,
                **self._group.options,
            )
            self._group.adopt(self._transport)
        except BaseException:
            self._group.leave()
            raise
        assert protocol.stdin is not None
        assert protocol.stdout is not None
        assert protocol.stderr is not None
        self._stdin, self._stdout = protocol.stdin, protocol.stdout
        self._forwarding = self._loop.create_task(self._forward(protocol.stderr))
        if self.deaf:
            self.on_deaf()

    @property
    def code(self) -> int | None:
        """Its exit code once it has ended; the negative number of a signal that ended it."""
        return self._transport.get_returncode()

    @property
    def cause(self) -> str:
        """The reason for its end, with the last lines of its stderr."""
        code = self.code
        reason = "the server does not answer any more" if code is None else end_of_server(code)
        tail = self.tail.decode("utf-8", "replace").strip()
        return f"{reason}; its stderr ends with:\n{tail}" if tail else reason

    async def messages(self, awaits: Callable[[bytes], bool]) -> AsyncIterator[bytes]:
        """Yield the lines of its stdout until the end, for one reader.

        Of a line that is too long, an error is left if it responds to an id that `awaits` accepts.
        """
        lines, wide = Lines(self._limit), False
        while True:
            chunk = await self._read(self._stdout)
            pipe = self._transport.get_pipe_transport(1)
            if len(chunk) >= _CHUNK and not wide and pipe is not None and not pipe.is_closing():
                platform.widen(pipe.get_extra_info("pipe").fileno())
                wide = True
            await give_way(len(chunk))  # its output may arrive faster than it is processed
            for event in lines.feed(chunk, len(chunk)) if chunk else lines.end():
                if isinstance(event, list):
                    for line in event:
                        await give_way(len(line))
                        yield line
                elif isinstance(event, LongLine):
                    for line in error_for_long_line(event, self._limit, self._log, awaits):
                        yield line
                elif isinstance(event, LineTruncated):
                    size = event.size
                    self._log.warning(f"the server ended within a line, after {size} bytes of it")
                # Let other tasks run: the server's output may come without a break.
                await asyncio.sleep(0)
            if not chunk:
                return

    def post(self, lines: list[bytes]) -> None:
        """Write whole lines, lost once it is `deaf`; `ready` waits until there is room."""
        if lines and not self.deaf:
            parts = [part for line in lines for part in (line, b"\n")]
            # Not joined, which would copy lines that may be very long.
            long = any(len(line) >= _CHUNK for line in lines)
            for part in parts if long else (b"".join(parts),):
                self._stdin.write(part)

    async def ready(self) -> None:
        with suppress(ConnectionError):
            await self._stdin.drain()

    async def end(self, pace: tuple[float, float] = ORDERLY) -> None:
        """Close its stdin and wait for its end; then SIGTERM and SIGKILL, to the whole group."""
        if self._end is None:
            self._end = self._loop.create_task(self._ending(pace))
        await asyncio.shield(self._end)

    def on_exit(self) -> None:
        """Record its end, whoever holds its pipes."""
        self._exited.set()
        for silence in self._reads:
            silence.reschedule(self._loop.time() + _STRAGGLERS)

    def on_deaf(self) -> None:
        self.deaf = True
        if self._forwarding is None:
            return  # its start is not over: `start` calls this again
        if self._end is None and self._pressing is None:
            self._pressing = self._loop.create_task(self._press(ORDERLY))

    async def _press(self, pace: tuple[float, float]) -> None:
        self.deaf = True
        # Not `close`, which would first wait until the server reads its input. If the server has
        # just closed the pipe, `abort` would end the transport a second time.
        if not self._stdin.transport.is_closing():
            self._stdin.transport.abort()
        first, then = pace
        await self._wait(first)
        if not self._exited.is_set():
            self._log.warning(f"a server {platform.TERMINATED}")
        if self._group.signal(platform.TERMINATE):
            end = self._loop.time() + then
            while self._group.signal(0) and self._loop.time() < end:
                await asyncio.sleep(_LOOK)
            self._group.signal(platform.KILL)
            await self._wait(then)

    async def _ending(self, pace: tuple[float, float]) -> None:
        await self._press(pace)
        if self._pressing is not None:
            self._pressing.cancel()
        assert self._forwarding is not None
        await asyncio.wait({self._forwarding}, timeout=_STRAGGLERS)
        self._forwarding.cancel()
        self._transport.close()
        await asyncio.sleep(0)  # the loop closes the descriptors
        self._group.leave()

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._exited.wait()

    async def _read(self, stream: asyncio.StreamReader) -> bytes:
        """Return the available bytes; no bytes at the end.

        Once the server has ended, silence is the end: other processes may hold the pipe open.
        """
        with suppress(OSError):  # of the pipe, or a TimeoutError
            ended = self._exited.is_set()
            async with asyncio.timeout(_STRAGGLERS if ended else None) as silence:
                self._reads.add(silence)
                try:
                    return await stream.read(_LARGE_CHUNK)
                finally:
                    self._reads.discard(silence)
        return b""

    async def _forward(self, stderr: asyncio.StreamReader) -> None:
        while chunk := await self._read(stderr):
            self.tail = (self.tail + chunk)[-TAIL:]
            # Blocks while the proxy's own stderr is not read.
            await threaded(self._log.pass_on, chunk)


class _Protocol(SubprocessStreamProtocol):
    """Also reports the end of the process, and that of its stdin."""

    def __init__(self, child: ChildServer, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=_CHUNK, loop=loop)
        self._child = child

    def process_exited(self) -> None:
        super().process_exited()
        self._child.on_exit()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        super().pipe_connection_lost(fd, exc)
        if fd == 0:
            self._child.on_deaf()


def unread(error: Exception) -> str:
    """Return the message that the server is read no further, with the reason."""
    return f"the proxy cannot read the server any more: {type(error).__name__}: {error}"
