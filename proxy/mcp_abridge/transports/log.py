"""The proxy's stderr: the server's own output unchanged, and the proxy's log, one line a message.

A stderr that is not read never blocks the protocol: the server's output is dropped after a second,
log lines are held back up to a bound, and the number of lost bytes is logged. If the platform can
poll a pipe, it is written if it is ready; else, as on Windows, a thread waits (`ThreadSink`).
"""

import os
import re
import select
from datetime import UTC, datetime
from threading import Condition, Lock, Thread
from time import monotonic
from typing import Literal

import msgspec

from mcp_abridge.document.printable import printable
from mcp_abridge.transports.stdio.pipes import ready

Level = Literal["error", "warning", "info", "debug"]
LogForm = Literal["text", "json"]
LogValue = str | int | float | None

TAIL = 2048
"""The number of last bytes of the server's stderr that are kept."""

_RANK: dict[Level, int] = {"error": 0, "warning": 1, "info": 2, "debug": 3}
_BACKLOG = 1 << 16  # bytes of log lines that wait for a reader
_LONGEST_MESSAGE = 600  # characters
_LONGEST_FIELD = 200  # characters of a text in an event
_PATIENCE = 1.0  # seconds
_ATOMIC = 4096  # bytes that a pipe takes without blocking if it takes any
_ROOM = 1 << 16  # bytes, as a pipe has
_PLAIN = re.compile(r"[\w./:*{}+-]+", re.ASCII)


class Log:
    """Write messages as detailed as `level`; JSON always has the time, text if it is `dated`."""

    def __init__(
        self,
        level: Level = "info",
        form: LogForm = "text",
        descriptor: int = 2,
        *,
        dated: bool = False,
    ) -> None:
        self._detail = _RANK[level]
        self._form = form
        sink = PollSink if hasattr(select, "poll") else ThreadSink
        self._sink: PollSink | ThreadSink = sink(descriptor)
        self._dated = dated
        self._lock = Lock()
        self._midline = False
        self._backlog = bytearray()
        self._unread = False
        self._dropped = 0
        self._noisy = False
        self.tail = b""
        """The end of what the server wrote to its stderr, at most TAIL bytes."""

    def error(self, message: str) -> None:
        """Log a failure that ended the session, or will, or of a store or recording asked for."""
        self._log("error", message)

    def warning(self, message: str) -> None:
        """Log a failure from which the proxy recovered."""
        self._log("warning", message)

    def info(self, message: str) -> None:
        """Log a fact that is useful once."""
        self._log("info", message)

    def debug(self, message: str) -> None:
        """Log a fact that is useful only for debugging."""
        self._log("debug", message)

    def event(self, name: str, level: Level = "info", **fields: LogValue) -> None:
        """Log an event with its fields; texts are not trusted, but cut and escaped."""
        if _RANK[level] > self._detail:
            return
        present = {
            key: _cut(value, _LONGEST_FIELD) if isinstance(value, str) else value
            for key, value in fields.items()
            if value not in (None, "")
        }
        text = name
        for key, value in present.items():
            plain = not isinstance(value, str) or _PLAIN.fullmatch(value)
            text += f" {key}={value if plain else _encode(value)}"
        self._put(self._line(level, {"event": name, **present}, text))

    def pass_on(self, raw: bytes) -> None:
        """Write bytes of the server's stderr unchanged."""
        self.tail = (self.tail + raw[-TAIL:])[-TAIL:]
        self._write(raw)

    def write_noise(self, raw: bytes) -> None:
        """Write output of the server that is not a message, as a line."""
        self._write(raw + b"\n")

    def noise(self, raw: bytes) -> None:
        """Write a line of the server's stdout that is not a message; warn at the first one."""
        with self._lock:
            first, self._noisy = not self._noisy, True
        if first:
            self.warning("the server writes lines that are no messages to its stdout")
        self.write_noise(raw)

    def flush(self) -> None:
        """Write the lines that are held back, as far as stderr is read within a second."""
        self._write(b"")
        self._sink.flush(_PATIENCE)

    def _log(self, level: Level, message: str) -> None:
        if _RANK[level] <= self._detail:
            text = _cut(message, _LONGEST_MESSAGE)
            self._put(self._line(level, {"message": text}, printable(text, json=True)))

    def _line(self, level: Level, fields: dict[str, LogValue], text: str) -> bytes:
        if self._form == "json":
            line = _encode({"time": _now("milliseconds"), "level": level, **fields})
        else:
            time = f"{_now('seconds')} " if self._dated else ""
            prefix = "" if level in ("info", "debug") else f"{level}: "
            line = f"{time}mcp-abridge: {prefix}{text}"
        return line.encode() + b"\n"

    def _put(self, line: bytes) -> None:
        with self._lock:
            self._drain()
            if self._midline and not self._backlog:
                # Never appended to an unfinished line of the server's.
                line = b"\n" + line
            if len(line) + len(self._backlog) <= _BACKLOG:
                self._backlog += line
                self._drain()
            else:
                self._dropped += len(line)

    def _write(self, raw: bytes) -> None:
        deadline = monotonic() + _PATIENCE
        rest = memoryview(raw)
        while True:
            with self._lock:
                count = self._send(rest) if self._drain() else 0
                rest = rest[count:]
                if not (rest or self._backlog or self._dropped):
                    return
                if not count and (self._unread or monotonic() > deadline):
                    self._unread = True
                    self._dropped += len(rest)
                    return
            if count:
                deadline = monotonic() + _PATIENCE
            else:
                self._sink.wait(0.1)

    def _drain(self) -> bool:
        while self._backlog:
            count = self._send(self._backlog)
            if not count:
                return False
            del self._backlog[:count]
        if self._dropped:
            notice = f"{self._dropped} bytes dropped: stderr was not read"
            if self._send(self._line("warning", {"message": notice}, notice)):
                self._dropped = 0
        return True

    def _send(self, raw: bytes | bytearray | memoryview) -> int:
        if not raw:
            return 0
        try:
            count = self._sink.write(raw)
        except OSError:  # it can never be read
            return len(raw)
        if count:
            self._unread = False
            self._midline = raw[count - 1 : count] != b"\n"
        return count


def _now(unit: str) -> str:
    return datetime.now(UTC).isoformat(timespec=unit).replace("+00:00", "Z")


def _cut(text: str, limit: int) -> str:
    return text[:limit].encode("utf-8", "replace").decode()


def _encode(value: object) -> str:
    return printable(msgspec.json.encode(value).decode(), json=True)


class PollSink:
    """A descriptor that is written if the system says that there is room."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def write(self, raw: bytes | bytearray | memoryview) -> int:
        """Write as much as there is room for, perhaps nothing; return how much. Raises OSError."""
        if not self._poll.poll(0):
            return 0
        try:
            return os.write(self._descriptor, raw[:_ATOMIC])
        except BlockingIOError:
            return 0

    def wait(self, seconds: float) -> None:
        """Wait until there may be more room."""
        # With an object of its own: another thread may write, and none polls while another does.
        ready(self._descriptor, "POLLOUT", seconds)

    def flush(self, seconds: float) -> None:
        """Wait until all is written, as what was accepted is."""


class ThreadSink:
    """A descriptor whose thread waits in place of the caller; as a PollSink in all else."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._bytes = bytearray()
        self._change = Condition()
        self._error: OSError | None = None
        # From the start: later there may be no memory for it.
        Thread(target=self._write_all, name="log", daemon=True).start()

    def write(self, raw: bytes | bytearray | memoryview) -> int:
        with self._change:
            if self._error is not None:
                raise self._error
            count = min(len(raw), _ROOM - len(self._bytes))
            self._bytes += raw[:count]
            self._change.notify_all()
            return count

    def wait(self, seconds: float) -> None:
        with self._change:
            self._change.wait_for(lambda: len(self._bytes) < _ROOM, seconds)

    def flush(self, seconds: float) -> None:
        with self._change:
            self._change.wait_for(lambda: not self._bytes or self._error is not None, seconds)

    def _write_all(self) -> None:
        try:
            while True:
                with self._change:
                    self._change.wait_for(lambda: self._bytes)
                    raw = bytes(self._bytes)
                count = os.write(self._descriptor, raw)
                with self._change:
                    del self._bytes[:count]
                    self._change.notify_all()
        except OSError as error:  # it can never be read
            with self._change:
                self._error = error
                self._bytes.clear()
                self._change.notify_all()
