"""What goes to our stderr: the server's own words as they are, and ours, one line each.

A stderr that nobody reads never holds up the protocol: what the server says there is dropped where
none of it can be written for a second, lines of ours are held back up to a bound, and how much was
lost is said as soon as somebody reads again.
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
"""How many of the server's last bytes are kept."""

_RANK: dict[Level, int] = {"error": 0, "warning": 1, "info": 2, "debug": 3}
_ATOMIC = 4096  # so many bytes a pipe takes without blocking where it takes any
_HELD = 1 << 16  # bytes of our own lines that wait for a reader
_LONGEST = 600  # characters of a message
_PATIENCE = 1.0  # seconds
_CUTS = (200, 50, 10)  # characters of a text in an event: the first that makes its line fit


class Log:
    """Writes to `descriptor` what is at most as detailed as `level`.

    As text, a line begins with the time where it is `dated`; as JSON it always has one.
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
        """The last of what the server wrote, at most TAIL bytes."""

    def error(self, message: str) -> None:
        """Say what ended the session, or will."""
        self._say("error", message)

    def warning(self, message: str) -> None:
        """Say what went wrong and was got over."""
        self._say("warning", message)

    def info(self, message: str) -> None:
        """Say what is worth knowing once."""
        self._say("info", message)

    def debug(self, message: str) -> None:
        """Say what only somebody who is looking for something wants to know."""
        self._say("debug", message)

    def event(self, name: str, level: Level = "info", **fields: Field) -> None:
        """Say what happened, with its figures and names; fields that say nothing are left out.

        Texts may come from anybody: they are cut, and written so that they end no line or field.
        """
        if _RANK[level] <= self._most:
            said = {word: value for word, value in fields.items() if value not in (None, "")}
            self._put_line(lambda: self._event(name, level, said))

    def pass_on(self, raw: bytes) -> None:
        """Write what the server wrote to its stderr, as it is."""
        self.tail = (self.tail + raw[-TAIL:])[-TAIL:]
        self._write(raw)

    def put_aside(self, raw: bytes) -> None:
        """Write what the server said and is no message, as a line."""
        self._write(raw + b"\n")

    def noise(self, raw: bytes) -> None:
        """Put aside a line of the server's stdout, and say of the first that there are such."""
        with self._lock:
            self._noise += 1
            first = self._noise == 1
        if first:
            self.warning("the server writes lines that are no messages to its stdout")
        self.put_aside(raw)

    def sum_up(self) -> None:
        """Say how many lines were noise, where there were more than the one that was told of."""
        if self._noise > 1:
            self.warning(f"{self._noise} lines of the server's stdout were no messages")

    def flush(self) -> None:
        """Write what is held back, as far as somebody reads it within a second."""
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
        # Never glued to an unfinished line of the server's.
        # What is held back comes first, and ends with a newline.
        return b"\n" * (self._midline and not self._held) + line[: _ATOMIC - 2] + b"\n"

    def _put(self, raw: bytes) -> int:
        """Write what goes without waiting, after what is held; return how much of it that was."""
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
        except OSError:  # nobody will ever read it
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
    r"""Keep a text from another program from ending a line, hiding words or reordering them.

    Each character that a terminal does not print is written as JSON would escape it.

    >>> _escaped("find\u202e\x9b\n")
    'find\\u202e\\u009b\\n'
    """
    if text.isprintable():
        return text
    from json import dumps  # not loaded before it is needed

    return "".join(each if each.isprintable() else dumps(each)[1:-1] for each in text)
