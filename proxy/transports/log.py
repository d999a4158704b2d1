"""The proxy's stderr: the server's own output unchanged, and the proxy's log, one line a message.

A stderr that is not read never blocks the protocol. The server's output is dropped if none of it
can be written for a second. Log lines are held back up to a bound. The number of lost bytes is
logged as soon as stderr is read again.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Lock
from time import monotonic
from typing import Literal

import msgspec

Level = Literal["error", "warning", "info", "debug"]
Form = Literal["text", "json"]
Field = str | int | float | None

TAIL = 2048
"""The number of last bytes of the server's stderr that are kept."""

_RANK: dict[Level, int] = {"error": 0, "warning": 1, "info": 2, "debug": 3}
_ATOMIC = 4096  # bytes that a pipe takes without blocking if it takes any
_HELD = 1 << 16  # bytes of log lines that wait for a reader
_LONGEST = 600  # characters of a message
_PATIENCE = 1.0  # seconds
_CUTS = (200, 50, 10)  # characters of a text in an event: the first bound with which its line fits


class Log:
    """Write messages at most as detailed as `level` to `descriptor`.

    A text line begins with the time if `dated`; a JSON line always has the time.
    """

    def __init__(
        self,
        level: Level = "info",
        form: Form = "text",
        descriptor: int = 2,
        *,
        dated: bool = False,
    ) -> None:
        self._most = _RANK[level]
        self._form = form
        self._descriptor = descriptor
        self._dated = dated
        self._lock = Lock()
        self._midline = False
        self._held: deque[bytes] = deque()
        self._unread = False
        self._dropped = 0
        self._noise = 0
        self.tail = b""
        """The end of what the server wrote to its stderr, at most TAIL bytes."""

    def error(self, message: str) -> None:
        """Log a failure that ended the session, or will."""
        self._say("error", message)

    def warning(self, message: str) -> None:
        """Log a failure from which the proxy recovered."""
        self._say("warning", message)

    def info(self, message: str) -> None:
        """Log a fact that is useful once."""
        self._say("info", message)

    def debug(self, message: str) -> None:
        """Log a fact that is useful only for debugging."""
        self._say("debug", message)

    def event(self, name: str, level: Level = "info", **fields: Field) -> None:
        """Log an event with its fields; fields that are None or empty are left out.

        Texts are not trusted: they are cut, and escaped so that they end no line or field.
        """
        if _RANK[level] <= self._most:
            said = {word: value for word, value in fields.items() if value not in (None, "")}
            self._put_line(lambda: self._event(name, level, said))

    def pass_on(self, raw: bytes) -> None:
        """Write bytes of the server's stderr unchanged."""
        self.tail = (self.tail + raw[-TAIL:])[-TAIL:]
        self._write(raw)

    def put_aside(self, raw: bytes) -> None:
        """Write output of the server that is not a message, as a line."""
        self._write(raw + b"\n")

    def noise(self, raw: bytes) -> None:
        """Put aside a line of the server's stdout that is not a message; warn at the first one."""
        with self._lock:
            self._noise += 1
            first = self._noise == 1
        if first:
            self.warning("the server writes lines that are no messages to its stdout")
        self.put_aside(raw)

    def sum_up(self) -> None:
        """Log the number of noise lines if there were more than the first, which was logged."""
        if self._noise > 1:
            self.warning(f"{self._noise} lines of the server's stdout were no messages")

    def flush(self) -> None:
        """Write the lines that are held back, as far as stderr is read within a second."""
        self._write(b"")

    def _write(self, raw: bytes) -> None:
        deadline = monotonic() + _PATIENCE
        at = 0
        while at < len(raw) or self._held:
            with self._lock:
                sent = self._put(raw[at : at + _ATOMIC])
                at += sent
                if not sent and (self._unread or monotonic() > deadline):
                    self._unread = True
                    self._dropped += len(raw) - at
                    return
            if sent:
                deadline = monotonic() + _PATIENCE
            elif at < len(raw) or self._held:
                self._ready(0.1)

    def _say(self, level: Level, message: str) -> None:
        if _RANK[level] <= self._most:
            self._put_line(lambda: self._line(level, message))

    def _put_line(self, made: Callable[[], bytes]) -> None:
        with self._lock:
            line = made()
            rest = line[self._put(line) :]
            if rest and len(rest) + sum(map(len, self._held)) <= _HELD:
                self._held.append(rest)
            else:
                self._dropped += len(rest)

    def _line(self, level: Level, message: str) -> bytes:
        line = b""
        for limit in (_LONGEST, *_CUTS):  # an escape may have twelve bytes
            text = message[:limit].encode("utf-8", "replace").decode()
            if self._form == "json":
                line = _encoded({**_head(level), "message": text})
            else:
                line = self._start(level) + _escaped(text).encode()
            if len(line) <= _ATOMIC - 2:
                break
        return self._whole(line)

    def _event(self, name: str, level: Level, fields: Mapping[str, Field]) -> bytes:
        line = b""
        for most in _CUTS:
            if self._form == "json":
                cut = {word: _cut(value, most) for word, value in fields.items()}
                line = _encoded({**_head(level), "event": name, **cut})
            else:
                words = [f"{word}={_spelled(value, most)}" for word, value in fields.items()]
                line = self._start(level) + " ".join([name, *words]).encode()
            if len(line) <= _ATOMIC - 2:
                break
        return self._whole(line)

    def _start(self, level: Level) -> bytes:
        time = f"{_now('seconds')} " if self._dated else ""
        word = "" if level in ("info", "debug") else f"{level}: "
        return f"{time}mcp-abridge: {word}".encode()

    def _whole(self, line: bytes) -> bytes:
        # Never appended to an unfinished line of the server's.
        # Lines that are held back come first, and end with a newline.
        return b"\n" * (self._midline and not self._held) + line[: _ATOMIC - 2] + b"\n"

    def _put(self, raw: bytes) -> int:
        """Write without blocking, after the held lines; return the number of bytes of `raw`."""
        while self._held:
            line = self._held.popleft()
            if rest := line[self._send(line) :]:
                self._held.appendleft(rest)
                return 0
        if self._dropped and self._ready(0):
            said = f"{self._dropped} bytes dropped: stderr was not read"
            if self._send(self._line("warning", said)):
                self._dropped = 0
        return self._send(raw)

    def _send(self, raw: bytes) -> int:
        if not raw or not self._ready(0):
            return 0
        try:
            sent = os.write(self._descriptor, raw)
        except BlockingIOError:
            return 0
        except OSError:  # it can never be read
            return len(raw)
        self._unread = False
        self._midline = raw[sent - 1 : sent] != b"\n"
        return sent

    def _ready(self, seconds: float) -> bool:
        import select

        if not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return bool(poll.poll(seconds * 1000))


def _head(level: Level) -> dict[str, Field]:
    return {"time": _now("milliseconds"), "level": level}


def _now(unit: str) -> str:
    return datetime.now(UTC).isoformat(timespec=unit).replace("+00:00", "Z")


def _cut(value: Field, most: int) -> Field:
    return value[:most].encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _spelled(value: Field, most: int) -> str:
    if not isinstance(value, str):
        return str(value)
    value = value[:most]
    return value if _PLAIN.fullmatch(value) else _encoded(_cut(value, most)).decode()


_PLAIN = re.compile(r"[\w./:*{}+-]+", re.ASCII)


def _encoded(value: object) -> bytes:
    return _escaped(msgspec.json.encode(value).decode()).encode()


def _escaped(text: str) -> str:
    r"""Escape a foreign text, which else could end a line, hide words or reorder them.

    Each character that a terminal does not print is written as JSON would escape it.

    >>> _escaped("find\u202e\x9b\n")
    'find\\u202e\\u009b\\n'
    """
    if text.isprintable():
        return text
    from json import dumps  # not loaded before it is needed

    return "".join(each if each.isprintable() else dumps(each)[1:-1] for each in text)
