"""Whole exchanges in files that only their owner can read, for `suggest`, `replay` and tests.

A thread writes them: a slow disk must not hold up messages. The format is read by
mcp_abridge.replay.recordings.
"""

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from mcp_abridge.document import message
from mcp_abridge.document.message import READ, Message, members, string_at
from mcp_abridge.document.tree import level
from mcp_abridge.errors import AbridgeError, raised
from mcp_abridge.storage.redaction import Redaction
from mcp_abridge.storage.regular import write_whole

_SMALL = 256 << 10  # bytes of an exchange that is on disk before its response is sent
_PATIENCE = 0.05  # seconds to wait for that
_MOST_WAITING = 64 << 20  # bytes of exchanges that wait to be written
_END = 5.0  # seconds for the last exchanges
_UNSAFE = re.compile(r"[^\w.-]+", re.ASCII)
_LONGEST = 80  # characters of a name in a file's name


class CallRecord(NamedTuple):
    """A request as the client sent it, and the server's response; `number` is that of the call.

    The number of a tool list is 0; `next_page`: it continues the one before.
    """

    number: int
    tool: str
    request: bytes
    response: bytes = b""
    next_page: bool = False


class Recorder:
    """Writes the exchanges of all sessions of a process into folders in `folder`.

    All files there have at most `size` bytes; later exchanges are not recorded. `warn` takes a
    line. Nothing here raises: an exchange that cannot be recorded passes all the same.
    """

    def __init__(
        self, folder: str, size: int, redaction: Redaction, warn: Callable[[str], None]
    ) -> None:
        self._folder, self._size, self._warn = folder, size, warn
        self.redaction = redaction
        self._jobs: SimpleQueue[tuple[Callable[[], None], int, Event] | None] = SimpleQueue()
        self._waiting = 0
        self._lock = Lock()
        self._thread: Thread | None = None
        self._used = -1  # bytes in the folder, unless negative
        self._full = False
        self._warnings: set[str] = set()

    def session(self) -> "SessionRecorder":
        return SessionRecorder(self)

    def run(self, job: Callable[[], None], size: int) -> None:
        """Run `job`, which writes `size` bytes, in the thread; a small one is usually done soon."""
        with self._lock:
            late = self._waiting and self._waiting + size > _MOST_WAITING
            self._waiting += 0 if late else size
            if self._thread is None:
                self._thread = Thread(target=self._work, name="recorder", daemon=True)
                with suppress(RuntimeError):  # no thread can be started: the jobs wait
                    self._thread.start()
        if late:
            self._warn_once("not every exchange is recorded: more come than can be written")
            return
        finished = Event()
        self._jobs.put((job, size, finished))
        if size <= _SMALL:
            finished.wait(_PATIENCE)

    def close(self) -> None:
        self._jobs.put(None)
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join(_END)
        if self._waiting:
            self._warn_once(f"exchanges of {self._waiting} bytes were not recorded in time")

    def write(self, path: str, raw: bytes) -> None:
        """Write a file, whole or not at all. Raises OSError."""
        if self._used < 0:
            self._used = _size(self._folder)
        self._full |= self._used + len(raw) > self._size
        if self._full:
            advice = "no later exchange is recorded: delete old ones, or give more --record-size"
            self._warn_once(f"{self._size} bytes are in {self._folder}, {advice}")
            return
        write_whole(path, raw, f"{path}.new")
        self._used += len(raw)

    def new_folder(self, server: str | None) -> str:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        now = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        name = f"{_file_name(server or 'server')}-{now}-{os.getpid()}"
        number = 1
        while True:
            path = os.path.join(self._folder, name if number == 1 else f"{name}-{number}")
            number += 1
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
                return path

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, size, finished = item
            try:
                job()
            except (AbridgeError, OSError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                self._warn_once(f"an exchange was not recorded in {self._folder}: {reason}")
            except Exception as error:
                self._warn_once(f"an exchange was not recorded: {raised(error)}")
            finally:
                with self._lock:
                    self._waiting -= size
                finished.set()

    def _warn_once(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.add(text)
            self._warn(f"--record: {text}")


class SessionRecorder:
    """Writes the exchanges of one session; its folder is created with the first one."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._folder: str | None = None
        self._tools: list[object] = []
        self._calls = 0

    def begin(self, raw: bytes, request: Message) -> CallRecord | None:
        if request.verb in ("tools/call", READ):
            self._calls += 1
            tool = READ if request.verb == READ else string_at(request.params, "name") or ""
            return CallRecord(self._calls, tool, raw)
        if request.verb == "tools/list":
            next_page = string_at(request.params, "cursor") is not None
            return CallRecord(0, "tools", raw, next_page=next_page)
        return None

    def record(
        self,
        exchange: CallRecord,
        server: str | None,
        client: str | None,
        *,
        shows_widgets: bool = False,
    ) -> None:
        """Write an exchange of this server and this client, as far as they are known.

        `shows_widgets`: the client shows the widgets of tools (MCP Apps).
        """
        about: dict[str, Any] = {"server": server, "client": client}
        about |= {"shows_widgets": True} if shows_widgets else {}
        size = len(exchange.request) + len(exchange.response)
        self._recorder.run(lambda: self._write(exchange, about), size)

    def _write(self, exchange: CallRecord, about: dict[str, Any]) -> None:
        redaction, write = self._recorder.redaction, self._recorder.write
        request, response = redaction.request(exchange.request), exchange.response
        if exchange.number == 0:
            response = self._whole_list(response, next_page=exchange.next_page)
        response = redaction.response(response, names=exchange.number > 0)
        if self._folder is None:
            self._folder = self._recorder.new_folder(about["server"])
            started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            raw = _indented(msgspec.json.encode({**about, "started": started}))
            write(os.path.join(self._folder, "session.json"), raw)
        name = f"{exchange.number:04}-{_file_name(exchange.tool)}.json"
        write(os.path.join(self._folder, name), _file_content(request, response))

    def _whole_list(self, response: bytes, *, next_page: bool) -> bytes:
        result = members(members(response).get("result", Raw(b"{}")))
        tools = level(result.get("tools", Raw(b"[]")))
        assert isinstance(tools, list)
        self._tools = [*(self._tools if next_page else ()), *tools]
        if not next_page:
            return response
        return message.replaced(response, result={**result, "tools": self._tools})


def _file_content(request: bytes, response: bytes) -> bytes:
    try:
        request.decode(), response.decode()
        return _indented(b'{"request":%b,"response":%b}' % (request, response))
    except (msgspec.DecodeError, UnicodeDecodeError):
        lines = {"request": request, "response": response}
        texts = {name: line.decode(errors="replace") for name, line in lines.items()}
        return _indented(msgspec.json.encode(texts))


def _indented(raw: bytes) -> bytes:
    return msgspec.json.format(raw, indent=1) + b"\n"


def _file_name(name: str) -> str:
    return _UNSAFE.sub("_", name)[:_LONGEST].lstrip(".") or "_"


def _size(folder: str) -> int:
    sizes = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                sizes += os.path.getsize(os.path.join(path, name))
    return sizes
