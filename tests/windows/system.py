"""Windows for tests: pipes that cannot be waited for, and processes by groups and parents."""

import sys

assert sys.platform == "win32"

import ctypes
import os
import queue
import subprocess
import threading
from collections.abc import Iterable, Iterator
from ctypes import wintypes
from typing import Any

from mcp_abridge.system.windows import Job

SUSPENDED: dict[str, Any] = {"creationflags": 0x4}
CHUNK = 1 << 16


def adopted(process: "subprocess.Popen[bytes]") -> Job:
    """Put a process that was started suspended into a Job, in place of a process group."""
    job = Job()
    job.adopt(process)
    return job


class Reader:
    """Reads a pipe by a thread, and only if asked to."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.requests: queue.Queue[None] = queue.Queue()
        self.chunks: queue.Queue[bytes] = queue.Queue()
        self.waits = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        chunk = b"."
        while chunk:
            self.requests.get()
            try:
                chunk = os.read(self.descriptor, CHUNK)
            except OSError:
                chunk = b""
            self.chunks.put(chunk)

    def read(self, seconds: float) -> bytes | None:
        """Return the bytes that come, None if none do in time."""
        if not self.waits:
            self.requests.put(None)
        try:
            chunk = self.chunks.get(timeout=seconds)
        except queue.Empty:
            self.waits = True
            return None
        self.waits = False
        return chunk


class Writer(threading.Thread):
    """Writes to a pipe that may be full."""

    def __init__(self, descriptor: int, raw: bytes) -> None:
        super().__init__(daemon=True)
        self.descriptor, self.raw = descriptor, memoryview(raw)
        self.size, self.position = len(raw), 0
        self.error: OSError | None = None
        self.start()

    def run(self) -> None:
        try:
            while self.position < self.size:
                end = min(self.position + CHUNK, self.size)
                self.position += os.write(self.descriptor, self.raw[self.position : end])
        except OSError as error:
            self.error = error

    def shorten(self, step: int) -> int:
        """Write only up to the next multiple of `step`; return how many steps that are."""
        # What is being written now ends within a chunk.
        count = -(-(self.position + CHUNK) // step)
        self.size = count * step
        return count

    def check(self) -> None:
        """Raise BrokenPipeError if the other end was closed."""
        if self.error is not None:
            raise BrokenPipeError(*self.error.args)


class Entry(ctypes.Structure):
    """PROCESSENTRY32."""

    _fields_ = [
        ("size", wintypes.DWORD),
        ("usage", wintypes.DWORD),
        ("pid", wintypes.DWORD),
        ("heap", ctypes.c_size_t),
        ("module", wintypes.DWORD),
        ("threads", wintypes.DWORD),
        ("parent", wintypes.DWORD),
        ("priority", wintypes.LONG),
        ("flags", wintypes.DWORD),
        ("name", ctypes.c_char * 260),
    ]


def snapshot() -> Iterator[tuple[int, int]]:
    """Yield the number of each process and of its parent, 0 if that number is another's by now."""
    kernel = ctypes.WinDLL("kernel32")
    kernel.CreateToolhelp32Snapshot.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.CreateToolhelp32Snapshot(2, 0))
    entry = Entry(size=ctypes.sizeof(Entry))
    parents: dict[int, int] = {}
    more = kernel.Process32First(handle, ctypes.byref(entry))
    while more:
        parents[entry.pid] = entry.parent
        more = kernel.Process32Next(handle, ctypes.byref(entry))
    kernel.CloseHandle(handle)
    births = {pid: birth(pid) for pid in parents}
    for pid, parent in parents.items():
        yield pid, parent if births.get(parent, 0) <= births[pid] else 0


def birth(pid: int) -> int:
    """Return when a process began, in units of 100 ns; 0 if it has ended."""
    kernel = ctypes.WinDLL("kernel32")
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.OpenProcess(0x1000, False, pid))  # QUERY_LIMITED_INFORMATION
    times = [ctypes.c_uint64() for _ in range(4)]
    kernel.GetProcessTimes(handle, *map(ctypes.byref, times))
    kernel.CloseHandle(handle)
    return times[0].value


def hold(pids: Iterable[int]) -> None:
    """Have the numbers of processes be given to no others until the tests end."""
    for pid in pids:
        ctypes.WinDLL("kernel32").OpenProcess(0x100000, False, pid)  # SYNCHRONIZE
