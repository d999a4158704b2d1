"""Windows: a server is put into a Job object of its own, which ends with the last handle to it.

What each name promises stands in `posix`.
"""

import sys

assert sys.platform == "win32"

import ctypes
import errno
import msvcrt
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


TERMINATE, KILL = 15, 9
TERMINATED = KILLED = "did not end by itself: ended its processes"
HANGUP = -1  # there is none
END_SIGNALS: tuple[int, ...] = (signal.SIGINT, signal.SIGBREAK)
CHILD_ENDED = 127
LONGEST_WAIT = 0.1  # no signal ends one
UNGUARDED = "no Job object: nothing ends the server if this process is killed"
PIPED = "utf-8"
WIDE = 1 << 20
DETACHED: dict[str, Any] = {
    "creationflags": subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
}

_NOT_FOUND = 127
_CRASHED = 255  # in place of a code that no process can pass on
_SOCKETS = 10_000  # numbers of errors that are the system's, not those of C
_SUSPENDED: dict[str, Any] = {"creationflags": subprocess.CREATE_NO_WINDOW | 0x4}
_TRIES, _TRY_AGAIN = 20, 0.05  # seconds between two tries for a file that a scanner holds

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreateJobObjectW.restype = ctypes.c_void_p
_kernel.CreatePipe.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32]


def _error() -> OSError:
    return ctypes.WinError(ctypes.get_last_error())


class Job:
    """A Job object: its processes end with it, even if the proxy is killed. May be refused."""

    def __init__(self) -> None:
        self._handle = ctypes.c_void_p(_kernel.CreateJobObjectW(None, None))
        # JOBOBJECT_EXTENDED_LIMIT_INFORMATION, with JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE alone.
        limits = ctypes.create_string_buffer(144 if sys.maxsize > 1 << 32 else 112)
        struct.pack_into("<I", limits, 16, 0x2000)
        _kernel.SetInformationJobObject(self._handle, 9, limits, len(limits))
        self._process: subprocess.Popen[bytes] | None = None
        self.holds = False
        """True if a process was put into it."""

    def adopt(self, process: "subprocess.Popen[bytes]") -> None:
        """Put a process that was started suspended into it, and resume the process."""
        self._process = process
        handle = ctypes.c_void_p(int(process._handle))  # type: ignore[attr-defined]
        self.holds = bool(_kernel.AssignProcessToJobObject(self._handle, handle))
        ctypes.WinDLL("ntdll").NtResumeProcess(handle)

    def signal(self, number: int) -> bool:
        """End all of its processes (0 only counts them); return False if there is none.

        If it was refused, the server alone is known.
        """
        if not self.holds:
            runs = self._process is not None and self._process.poll() is None
            if runs and number and self._process is not None:
                self._process.kill()
            return runs
        accounting = ctypes.create_string_buffer(48)  # JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
        _kernel.QueryInformationJobObject(self._handle, 1, accounting, len(accounting), None)
        if not struct.unpack_from("<I", accounting, 40)[0]:
            return False
        return not number or bool(_kernel.TerminateJobObject(self._handle, 1))

    def close(self) -> None:
        _kernel.CloseHandle(self._handle)


class JobChild:
    """A server: its Job, and the proxy's ends of its pipes."""

    def __init__(
        self,
        stdin: int,
        stdout: int,
        stderr: int,
        process: "subprocess.Popen[bytes] | None" = None,
        job: Job | None = None,
        *,
        code: int | None = None,
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.process = process
        self.pid = None if process is None else process.pid
        self.code = code
        self._job = job

    @property
    def guarded(self) -> bool:
        return self._job is not None and self._job.holds

    def ended(self) -> bool:
        if self.code is None and self.process is not None:
            code = self.process.poll()
            self.code = code if code is None or code < 1 << 31 else _CRASHED
        return self.code is not None

    def signal(self, number: int) -> bool:
        return self._job is not None and self._job.signal(number)

    def give_up(self) -> None:
        if not self.ended():
            self.code = _CRASHED

    def release(self) -> None:
        if self._job is not None:
            self._job.close()
            self._job = None


class NoGuardian:
    """Nothing: the Jobs end with the proxy."""

    def dismiss(self) -> None: ...


class JobGroup:
    """The Job of one server of an event loop."""

    def __init__(self, guardian: NoGuardian | None) -> None:
        self._job = Job()

    @property
    def options(self) -> dict[str, Any]:
        return _SUSPENDED

    def adopt(self, transport: "asyncio.SubprocessTransport") -> None:
        self._job.adopt(transport.get_extra_info("subprocess"))

    def signal(self, number: int) -> bool:
        return self._job.signal(number)

    def leave(self) -> None:
        self._job.close()


# The names of every platform.
ChildProcess = JobChild
ProcessGroup = JobGroup
Guardian = NoGuardian


def hold_signals() -> Iterable[int]:
    return ()


def release_signals() -> None: ...


def ignores(number: int) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


def listen(child: JobChild, ring: Callable[[int], None]) -> None:
    for each in END_SIGNALS:
        signal.signal(each, lambda number, _: ring(number))

    def wait() -> None:
        assert child.process is not None
        child.process.wait()
        ring(CHILD_ENDED)

    if child.process is not None:
        Thread(target=wait, name="end", daemon=True).start()


def heed(number: int, do: Callable[..., object], *args: object) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    signal.signal(number, lambda *_: loop.call_soon_threadsafe(do, *args))


def program(command: Sequence[str]) -> list[str]:
    """Return a command with its program by its path, as PATH and PATHEXT have it.

    Raises OSError if there is none, ValueError if it is a script of cmd.exe, which would read an
    argument otherwise than it is written.
    """
    path = shutil.which(command[0])
    if path is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    if path.lower().endswith((".cmd", ".bat")):
        for word in (path, *command[1:]):
            special = sorted({*word} & {*'%"&|<>^\r\n'})
            if special:
                raise ValueError(
                    f"{path} is a script of cmd.exe, to which {special[0]!r} in an argument, or in "
                    "its path, means something else; start the program that the script starts"
                )
    return [path, *command[1:]]


def _pipe() -> tuple[int, int]:
    ends = ctypes.c_void_p(), ctypes.c_void_p()
    if not _kernel.CreatePipe(ctypes.byref(ends[0]), ctypes.byref(ends[1]), None, WIDE):
        raise _error()
    flags = os.O_BINARY | os.O_NOINHERIT
    reading, writing = (msvcrt.open_osfhandle(end.value or 0, flags) for end in ends)
    return reading, writing


def spawn(command: list[str], mask: Iterable[int] = ()) -> JobChild:
    words = program(command)
    (stdin, our_stdin), (our_stdout, stdout), (our_stderr, stderr) = _pipe(), _pipe(), _pipe()
    job = Job()
    try:
        process = subprocess.Popen(words, stdin=stdin, stdout=stdout, stderr=stderr, **_SUSPENDED)
    except OSError:
        for descriptor in (our_stdin, our_stdout, our_stderr):
            os.close(descriptor)
        job.close()
        raise
    finally:
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
    job.adopt(process)
    return JobChild(our_stdin, our_stdout, our_stderr, process, job)


def absent() -> JobChild:
    stdin, stdout, stderr = (os.open(os.devnull, os.O_RDWR) for _ in range(3))
    return JobChild(stdin, stdout, stderr, code=_NOT_FOUND)


def widen(descriptor: int) -> None:
    """Do nothing: a pipe is as wide as it was made."""


def lock(descriptor: int, *, wait: bool = True) -> bool:
    # Behind all content, since others cannot read a byte that is locked.
    os.lseek(descriptor, 1 << 30, os.SEEK_SET)
    try:
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    return False
                time.sleep(_TRY_AGAIN)
            else:
                return True
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


def open_at_once(path: str | os.PathLike[str], flags: int, *, follow: bool = True) -> int:
    if not follow and os.path.islink(path):
        raise OSError(errno.ELOOP, "is a link", os.fspath(path))
    return os.open(path, flags | os.O_BINARY | os.O_NOINHERIT, 0o600)


def replace(new: str, path: str) -> None:
    _repeated(os.replace, new, path)


def unlink(path: str) -> None:
    _repeated(os.unlink, path)


def _repeated(do: Callable[..., None], *paths: str) -> None:
    for _ in range(_TRIES):
        with suppress(PermissionError):  # another program has it open, a scanner perhaps
            return do(*paths)
        time.sleep(_TRY_AGAIN)
    do(*paths)


def publicity(path: str) -> str | None:
    home = os.path.realpath(os.path.expanduser("~"))
    with suppress(ValueError):  # another drive
        if os.path.commonpath((home, os.path.realpath(path))) == home:
            return None
    return f"the folder lies outside of {home}, so that others may open it"


def keep_owner(path: str, status: os.stat_result) -> bool:
    return True


def exchange(one: str, other: str) -> bool:
    return False


def config_folder() -> str:
    return os.environ.get("APPDATA") or "~\\AppData\\Roaming"


def state_folder() -> str:
    return os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")


def has_terminal() -> bool:
    return False


def reserve(size: int) -> None:
    status = ctypes.create_string_buffer(64)  # MEMORYSTATUSEX
    struct.pack_into("<I", status, 0, len(status))
    if _kernel.GlobalMemoryStatusEx(status) and struct.unpack_from("<Q", status, 32)[0] < size:
        raise OSError(errno.ENOMEM, "not enough memory")


def error_text(error: OSError) -> str:
    number = error.errno or 0
    if error.winerror or number >= _SOCKETS:
        return ctypes.FormatError(error.winerror or number).rstrip(". ")
    return os.strerror(number)


def pause(seconds: float) -> None:
    time.sleep(seconds)


def limit(memory: int, seconds: int) -> None:
    # JOBOBJECT_EXTENDED_LIMIT_INFORMATION with JOB_OBJECT_LIMIT_PROCESS_TIME and ..._MEMORY.
    wide = sys.maxsize > 1 << 32
    limits = ctypes.create_string_buffer(144 if wide else 112)
    struct.pack_into("<qqI", limits, 0, seconds * 10**7, 0, 0x102)
    struct.pack_into("<Q" if wide else "<I", limits, 112 if wide else 96, memory)
    job = ctypes.c_void_p(_kernel.CreateJobObjectW(None, None))
    _kernel.SetInformationJobObject(job, 9, limits, len(limits))
    _kernel.AssignProcessToJobObject(job, ctypes.c_void_p(-1))  # this process


def descriptors(most: int | None = None) -> int | None:
    return None


def join(words: Sequence[str]) -> str:
    import re

    plain = re.compile(r"[\w+=:./\\~-]+").fullmatch  # to cmd.exe and to PowerShell
    # The blank sees to it that there are quotes.
    return " ".join(
        word if plain(word) else '"' + subprocess.list2cmdline([" " + word])[2:] for word in words
    )


def split(line: str) -> list[str]:
    count = ctypes.c_int()
    divide = ctypes.WinDLL("shell32").CommandLineToArgvW
    divide.restype = ctypes.POINTER(ctypes.c_wchar_p)
    # The first word is that of a program, with other rules for quotes.
    words = divide(f"x {line}", ctypes.byref(count))
    return [words[at] or "" for at in range(1, count.value)]
