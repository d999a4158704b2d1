"""Child processes of an event loop: each has a process group, and lines as input and output.

Invariants: a line is written whole or not at all, whatever is cancelled meanwhile; output is read
only on request, so the pipe blocks a server whose output is not read; and no process group outlives
the proxy, even if the proxy is killed.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from threading import Thread

from proxy.transports.aio import others, threaded
from proxy.transports.log import TAIL, Log
from proxy.transports.stdio.child import watching
from proxy.transports.stdio.lines import Event, Lines
from proxy.transports.stdio.pipes import widen

_CHUNK = 64 << 10
_LARGE_CHUNK = 1 << 20
_LONGEST = 4096  # bytes of an unfinished line of stderr that are held until its end
_STRAGGLERS = 0.5  # seconds for the output of others in the group after the server has ended
_LOOK = 0.02  # seconds between two checks for the end of a group

# Seconds from closing a server's stdin until SIGTERM, and from there until SIGKILL.
ORDERLY = (2.0, 2.0)
HASTY = (0.2, 1.0)

# Reads which groups exist, and ends them as the proxy would once its input ends.
_GUARDIAN = """
trap '' HUP INT TERM
guarded=' '
while read -r word group; do
    case $word in
    guard) guarded="$guarded$group " ;;
    leave) case $guarded in *" $group "*)
        guarded="${guarded%% "$group" *} ${guarded#* "$group" }" ;;
        esac ;;
    esac
done
[ "$guarded" = ' ' ] && exit
sleep 1
left=
for group in $guarded; do
    kill -s TERM -- "-$group" && left="$left $group"
done
[ -n "$left" ] || exit
sleep 2
for group in $left; do
    kill -s KILL -- "-$group"
done
"""


class Guardian:
    """A shell that ends the process groups it knows of if this process is killed.

    It holds nothing but the other end of a pipe. Raises OSError if there is no shell.
    """

    def __init__(self) -> None:
        self.pid, self._pipe = watching(_GUARDIAN)
        os.set_blocking(self._pipe, False)

    def guard(self, group: int) -> None:
        """Add a group that must end with this process."""
        self._say(b"guard %d\n" % group)

    def leave(self, group: int) -> None:
        """Remove a group that has ended."""
        self._say(b"leave %d\n" % group)

    def dismiss(self) -> None:
        """End the shell; no group is guarded any more."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        os.close(self._pipe)

    def _say(self, line: bytes) -> None:
        # If the shell was killed, its groups are unguarded, but the proxy continues.
        with suppress(OSError):
            os.write(self._pipe, line)


class _Process(subprocess.Popen[bytes]):
    """A process with a group of its own, which the guardian knows before anything else happens."""

    def __init__(self, command: Sequence[str], guardian: Guardian | None) -> None:
        def known() -> None:
            # In the child, since the parent may be killed before it knows the process id.
            if guardian is not None:
                guardian.guard(os.getpid())

        try:
            super().__init__(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                preexec_fn=None if guardian is None else known,
            )
        except BaseException:
            if guardian is not None and self.pid:
                guardian.leave(self.pid)
            raise


class ChildServer:
    """A server that is running, or has ended.

    Made by `start`; `limit` is the maximum size of one of its lines in bytes.
    """

    def __init__(
        self, command: Sequence[str], guardian: Guardian | None, log: Log, limit: int
    ) -> None:
        self._guardian = guardian
        self._log = log
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._process = _Process(command, guardian)
        self.pid = self._process.pid
        self.tail = b""
        """The end of its stderr output, at most TAIL bytes."""
        self.deaf = False
        """True if it accepts no more input."""
        self._exited: asyncio.Future[None] = self._loop.create_future()
        self._watch()
        self._flow = _Flow(self._broken)
        self._stdin: asyncio.WriteTransport | None = None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdout = _Inlet(self._process.stdout.fileno(), self._loop, self._exited)
        self._stderr = _Inlet(self._process.stderr.fileno(), self._loop, self._exited)
        self._hearing = self._loop.create_task(self._hear())
        self._pressing: asyncio.Task[None] | None = None
        self._end: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, command: Sequence[str], guardian: Guardian | None, log: Log, limit: int
    ) -> "ChildServer":
        """Start a server; raises OSError if that fails."""
        child = cls(command, guardian, log, limit)
        try:
            assert child._process.stdin is not None
            child._stdin, _ = await child._loop.connect_write_pipe(
                lambda: child._flow, child._process.stdin
            )
        except BaseException:
            child._signal(signal.SIGKILL)
            await child.end(HASTY)
            raise
        return child

    @property
    def code(self) -> int | None:
        """Its exit code once it has ended; the negative number of a signal that ended it."""
        return self._process.returncode

    @property
    def cause(self) -> str:
        """The reason for its end, with the last lines of its stderr."""
        code = self.code
        if code is None:
            said = "the server does not answer any more"
        elif code >= 0:
            said = f"the server ended with exit code {code}"
        else:
            said = f"the server was ended by {_signal_name(-code)}"
        tail = self.tail.decode("utf-8", "replace").strip()
        return f"{said}; its stderr ends with:\n{tail}" if tail else said

    async def events(self) -> AsyncIterator[Event]:
        """Yield the lines of its stdout until the end, for one reader."""
        lines = Lines(self._limit)
        while chunk := await self._stdout.read():
            await others(len(chunk))  # its output may arrive faster than it is processed
            whole = lines.whole(chunk, len(chunk))
            if whole is not None:
                yield whole
            else:
                for event in lines.feed(chunk, len(chunk)):
                    yield event
        for event in lines.end():
            yield event

    async def send(self, lines: list[bytes]) -> None:
        """Write whole lines, given without newlines; wait while its input buffer is full.

        Lines for a server that accepts no more input are lost; then `deaf` is True.
        """
        self.post(lines)
        await self.ready()

    async def ready(self) -> None:
        """Wait while its input buffer is full."""
        await self._flow.free.wait()

    def post(self, lines: list[bytes]) -> None:
        """Write whole lines as `send` does, without waiting for the server."""
        if lines and not self.deaf and self._stdin is not None:
            parts = [part for line in lines for part in (line, b"\n")]
            # Not joined, which would copy lines that may be very long.
            long = any(len(line) >= _CHUNK for line in lines)
            for part in parts if long else (b"".join(parts),):
                self._stdin.write(part)

    async def end(self, pace: tuple[float, float] = ORDERLY) -> None:
        """Close its stdin and wait for its end; then SIGTERM and SIGKILL, to the whole group.

        A second call waits for the same end.
        """
        if self._end is None:
            self._end = self._loop.create_task(self._ending(pace))
        await asyncio.shield(self._end)

    def _broken(self) -> None:
        """End a server that does not read any more; its remaining output is read to the end."""
        self.deaf = True
        self._stdin = None
        if self._end is None and self._pressing is None:
            self._pressing = self._loop.create_task(self._press(ORDERLY))

    async def _press(self, pace: tuple[float, float]) -> None:
        self._close_stdin()
        first, then = pace
        await self._wait(first)
        if not self._exited.done():
            self._log.warning("a server did not end by itself: sent it SIGTERM")
        if self._signal(signal.SIGTERM):
            await self._gone(then)
            self._signal(signal.SIGKILL)
            await self._wait(then)

    async def _ending(self, pace: tuple[float, float]) -> None:
        await self._press(pace)
        if self._pressing is not None:
            self._pressing.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_STRAGGLERS):
                await asyncio.shield(self._hearing)
        self._hearing.cancel()
        self._stdout.close()
        self._stderr.close()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._process.stdout.close()
        self._process.stderr.close()
        if self._guardian is not None:
            self._guardian.leave(self.pid)

    def _close_stdin(self) -> None:
        self.deaf = True
        if self._stdin is not None:
            # Not `close`, which would first wait until the server reads its input. If the server
            # has just closed the pipe, `abort` would end the transport a second time.
            if not self._stdin.is_closing():
                self._stdin.abort()
        elif self._process.stdin is not None:
            self._process.stdin.close()

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._exited)

    async def _gone(self, seconds: float) -> None:
        """Wait until the group is empty."""
        end = self._loop.time() + seconds
        while self._signal(0) and self._loop.time() < end:
            await asyncio.sleep(_LOOK)

    def _signal(self, number: int) -> bool:
        """Send a signal to the whole group (0 only checks it); return False if it is empty."""
        try:
            os.killpg(self.pid, number)
        except OSError:
            return False
        return True

    def _watch(self) -> None:
        """Watch for its end, with a process descriptor if the system has these, else a thread."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            Thread(target=self._wait_for, name="child", daemon=True).start()
            return

        def ended() -> None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
            self._process.wait()
            self._noticed()

        self._loop.add_reader(descriptor, ended)

    def _wait_for(self) -> None:
        self._process.wait()
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._noticed)

    def _noticed(self) -> None:
        if not self._exited.done():
            self._exited.set_result(None)

    async def _hear(self) -> None:
        """Forward its stderr in whole lines, so that those of several servers do not mix."""
        held = b""
        while chunk := await self._stderr.read():
            self.tail = (self.tail + chunk)[-TAIL:]
            held += chunk
            cut = held.rfind(b"\n") + 1 or (len(held) if len(held) > _LONGEST else 0)
            if cut:
                whole, held = held[:cut], held[cut:]
                # Blocks while the proxy's own stderr is not read.
                await threaded(self._log.pass_on, whole)
        if held:
            await threaded(self._log.pass_on, held + b"\n")


class _Flow(asyncio.Protocol):
    """The flow control of a pipe: `free` is set while the pipe accepts data."""

    def __init__(self, broken: Callable[[], None]) -> None:
        self.free = asyncio.Event()
        self.free.set()
        self._tell = broken

    def pause_writing(self) -> None:
        self.free.clear()

    def resume_writing(self) -> None:
        self.free.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.free.set()
        self._tell()


class _Inlet:
    """The read end of a pipe, for one task.

    The descriptor stays watched between two reads, until data arrive that no read waits for. Once
    `exited` is done, the pipe counts as ended as soon as nothing more arrives for a moment: other
    processes may hold it open for ever.
    """

    def __init__(
        self, descriptor: int, loop: asyncio.AbstractEventLoop, exited: "asyncio.Future[None]"
    ) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._loop = loop
        self._exited = exited
        self._size = _CHUNK
        self._closed = False
        self._watched = False
        self._coming: asyncio.Future[bytes] = loop.create_future()
        exited.add_done_callback(lambda _: self._hurry())

    async def read(self) -> bytes:
        """Return the available bytes; no bytes at the end."""
        chunk = self._take()
        if chunk is not None:
            return chunk
        self._coming = self._loop.create_future()
        if not self._watched:
            self._watched = True
            self._loop.add_reader(self._descriptor, self._found)
        if self._exited.done():
            self._hurry()
        return await self._coming

    def close(self) -> None:
        """End a pending read, before the descriptor is closed."""
        self._closed = True
        self._unwatch()
        _settle(self._coming)

    def _take(self) -> bytes | None:
        """Return the available bytes, no bytes at the end, None if none are available yet."""
        if self._closed:
            return b""
        try:
            chunk = os.read(self._descriptor, self._size)
        except BlockingIOError:
            return None
        except OSError:
            return b""
        if len(chunk) == _CHUNK == self._size:
            widen(self._descriptor)
        # Not a megabyte each time: allocating and releasing that memory takes time.
        self._size = _LARGE_CHUNK if len(chunk) >= _CHUNK else _CHUNK
        return chunk

    def _found(self) -> None:
        if self._coming.done():
            self._unwatch()
            return
        chunk = self._take()
        if chunk is not None:
            self._coming.set_result(chunk)

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._loop.remove_reader(self._descriptor)

    def _hurry(self) -> None:
        self._loop.call_later(_STRAGGLERS, _settle, self._coming)


def _settle(coming: "asyncio.Future[bytes]") -> None:
    if not coming.done():
        coming.set_result(b"")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def unread(error: Exception) -> str:
    """Return the message that the server is read no further, with the reason."""
    return f"the proxy cannot read the server any more: {type(error).__name__}: {error}"


async def end_all(children: Iterable[ChildServer], pace: tuple[float, float] = ORDERLY) -> None:
    """End several servers at the same time."""
    await asyncio.gather(*(child.end(pace) for child in children))
