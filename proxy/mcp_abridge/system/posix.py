"""Linux and macOS: a server is a process group of its own, which ends when the proxy ends."""

# The module that `signal` wraps; `signal` imports `enum`, which takes 4 ms.
import _signal  # type: ignore[import-not-found]
import _thread
import os

from mcp_abridge.system.guardian import Guardian as Guardian

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, NoReturn

TERMINATE: int = _signal.SIGTERM
KILL: int = _signal.SIGKILL
TERMINATED = "did not end by itself: sent it SIGTERM"
KILLED = "did not end on SIGTERM: sent it SIGKILL"
"""The words for a server that gets TERMINATE, and then KILL."""
HANGUP: int = _signal.SIGHUP
"""The signal of a terminal that was closed, or by which a daemon reads its configuration again."""
END_SIGNALS: "tuple[int, ...]" = (_signal.SIGINT, _signal.SIGTERM, HANGUP)
"""The signals that end the proxy."""
CHILD_ENDED: int = _signal.SIGCHLD
"""The number in place of a signal's if a child may have ended."""
LONGEST_WAIT = 3600.0
"""Seconds of a single wait, since the clock may jump."""
UNGUARDED = "no /bin/sh: nothing ends the server if this process is killed"

PIPED = None
"""The encoding of output into a pipe, if that of the locale is not to decide."""
WIDE = 1 << 20
"""The bytes of a pipe that large messages go through."""

DETACHED: "dict[str, Any]" = {"start_new_session": True}
"""Options of Popen: signals of a terminal to the proxy's group are not for the process."""

_NOT_FOUND = 127
_HELD = (*END_SIGNALS, CHILD_ENDED)


class ChildProcess:
    """A server: its process group, and the proxy's ends of its pipes.

    `code` is its exit code once its end was observed; negative if a signal of that number ended it.
    """

    guardian: Guardian | None = None
    code: int | None = None

    # No Struct: msgspec is imported while the server starts.
    def __init__(self, stdin: int, stdout: int, stderr: int, pid: int | None = None) -> None:
        self.stdin, self.stdout, self.stderr, self.pid = stdin, stdout, stderr, pid

    @property
    def guarded(self) -> bool:
        """True if it ends even if the proxy is killed."""
        return self.guardian is not None

    def ended(self) -> bool:
        if self.code is None and self.pid is not None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def signal(self, number: int) -> bool:
        """Send a signal to the whole group (0 only checks it); return False if it is empty."""
        return self.pid is not None and signal_group(self.pid, number)

    def give_up(self) -> None:
        """Count the server as ended if even SIGKILL did not end it in time."""
        if not self.ended():
            self.code = -KILL

    def release(self) -> None:
        """End the guardian, once the group has ended."""
        if self.guardian is not None:
            self.guardian.dismiss()
            self.guardian = None


class ProcessGroup:
    """The group of one server of an event loop, for `asyncio.subprocess`."""

    _names = 0

    def __init__(self, guardian: Guardian | None) -> None:
        self._guardian = guardian
        self._pid: int | None = None
        ProcessGroup._names += 1
        self._name = ProcessGroup._names

    @property
    def options(self) -> "dict[str, Any]":
        """The options of a Popen that starts it."""
        return {**DETACHED, "preexec_fn": None if self._guardian is None else self._register}

    def _register(self) -> None:
        # In the child, since the parent may be killed before it knows the process id.
        assert self._guardian is not None
        self._guardian.guard(self._name, os.getpid())

    def adopt(self, transport: "asyncio.SubprocessTransport") -> None:
        """Take the process that was started."""
        self._pid = transport.get_pid()

    def signal(self, number: int) -> bool:
        """Send a signal to all of it (0 only checks it); return False if it is empty."""
        return self._pid is not None and signal_group(self._pid, number)

    def leave(self) -> None:
        """End the guard: it has ended, or could not be started."""
        if self._guardian is not None:
            self._guardian.leave(self._name)


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group (0 only checks it); return False if it is empty."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def hold_signals() -> "Iterable[int]":
    """Block the signals that the proxy handles, for later threads too; return the mask before."""
    # If it were ignored, the server's exit code would be lost; if at its default, macOS drops it.
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    return {*_signal.pthread_sigmask(_signal.SIG_BLOCK, _HELD)}


def release_signals() -> None:
    """Let the signals that were held reach this thread."""
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _HELD)


def ignores(number: int) -> bool:
    """Return True if a signal was ignored when the proxy was started, and stays so (nohup)."""
    return bool(_signal.getsignal(number) == _signal.SIG_IGN)


def listen(child: ChildProcess, ring: "Callable[[int], None]") -> None:
    """Call `ring` with each signal that ends the proxy, and with CHILD_ENDED, in a thread."""
    numbers = [each for each in _HELD if not ignores(each)]

    # No handler: if the main thread was about to wait, that would run once it has waited.
    def wait() -> None:
        while True:
            ring(_signal.sigwait(numbers))

    _thread.start_new_thread(wait, ())


def heed(number: int, do: "Callable[..., object]", *args: object) -> None:
    """Call `do` in the running event loop when a signal arrives."""
    import asyncio

    asyncio.get_running_loop().add_signal_handler(number, do, *args)


def program(command: "Sequence[str]") -> list[str]:
    """Return a command with its program by its path, if that is needed to start it."""
    return [*command]


def spawn(command: list[str], mask: "Iterable[int]" = ()) -> ChildProcess:
    """Start `command` in a session of its own, guarded; raises OSError if it cannot be started.

    `mask` are the signals that it has blocked, independent of those that this thread blocks.
    """
    try:
        guardian: Guardian | None = Guardian(mask)
    except OSError:
        guardian = None
    pipes: list[tuple[int, int]] = []
    try:
        pipes += (os.pipe() for _ in range(4))
        # Not posix_spawn: it has no `setsid` if Python was built for an old glibc.
        pid = os.fork()
    except OSError:
        for descriptor in (each for pipe in pipes for each in pipe):
            os.close(descriptor)
        if guardian is not None:
            guardian.dismiss()
        raise
    (stdin, our_stdin), (our_stdout, stdout), (our_stderr, stderr), (failure, failing) = pipes
    if not pid:
        _become(command, (stdin, stdout, stderr), mask, guardian, failing)
    for descriptor in (stdin, stdout, stderr, failing):
        os.close(descriptor)
    failed = os.read(failure, 16)
    os.close(failure)
    child = ChildProcess(our_stdin, our_stdout, our_stderr, pid)
    child.guardian = guardian
    if failed:
        os.waitpid(pid, 0)
        child.release()
        for descriptor in (our_stdin, our_stdout, our_stderr):
            os.close(descriptor)
        raise OSError(int(failed), os.strerror(int(failed)))
    # Only the proxy's end: the server's end stays blocking, as every server expects.
    os.set_blocking(our_stdin, False)
    return child


def _become(
    command: list[str],
    pipes: tuple[int, int, int],
    mask: "Iterable[int]",
    guardian: Guardian | None,
    failing: int,
) -> "NoReturn":
    try:
        os.setsid()
        if guardian is not None:
            # Not by the parent, which may be killed before it knows the number.
            guardian.guard(0, os.getpid())
        for number, descriptor in enumerate(pipes):
            os.dup2(descriptor, number)
        # Python ignores these from its start on; other programs do not expect that.
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
        _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(failing, b"%d" % (error.errno or 0))
    finally:
        os._exit(_NOT_FOUND)


def absent() -> ChildProcess:
    """Return a stand-in for a server that could not be started: one that has already ended."""
    stdin, stdout, stderr = (os.open(os.devnull, os.O_RDWR) for _ in range(3))
    child = ChildProcess(stdin, stdout, stderr)
    child.code = _NOT_FOUND
    return child


def widen(descriptor: int) -> None:
    """Give a pipe the largest capacity that the system allows; other descriptors are unchanged.

    Only once it is needed: the wide pipes of one user share a limit of 64 MiB on Linux.
    """
    try:
        import fcntl  # there may be no memory to load it

        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, WIDE)
    except (ImportError, AttributeError, OSError):
        return


def lock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock a file for this process alone, until it is closed; False if another one has it."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def open_at_once(path: "str | os.PathLike[str]", flags: int, *, follow: bool = True) -> int:
    """Open a file without waiting for its other end; a new one is the user's alone.

    Raises OSError, also for a link unless they are to `follow` (only the last part counts).
    """
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    return os.open(path, flags, 0o600)


def replace(new: str, path: str) -> None:
    """Put a file in the place of another at once."""
    os.replace(new, path)


def unlink(path: str) -> None:
    """Remove a file."""
    os.unlink(path)


def publicity(path: str) -> str | None:
    """Return why a folder is not the user's alone, None if it is. Raises OSError."""
    status = os.stat(path)
    if status.st_uid != os.geteuid():
        return "the folder belongs to another user"
    if status.st_mode & 0o077:
        return f"others can open the folder (mode {status.st_mode & 0o777:o}); do `chmod 700` first"
    return None


def keep_owner(path: str, status: os.stat_result) -> bool:
    """Give a file the owner and group of a status; return False if that is not permitted."""
    own = os.stat(path)
    if (own.st_uid, own.st_gid) == (status.st_uid, status.st_gid):
        return True
    try:
        os.chown(path, status.st_uid, status.st_gid)
    except OSError:
        return False
    return True


def exchange(one: str, other: str) -> bool:
    """Swap two files at once; return False if that is not possible here."""
    import ctypes
    import sys

    paths = os.fsencode(one), os.fsencode(other)
    try:
        library = ctypes.CDLL(None)
        if sys.platform == "darwin":
            return bool(library.renamex_np(*paths, 2) == 0)  # RENAME_SWAP
        here = -100  # AT_FDCWD
        return bool(library.renameat2(here, paths[0], here, paths[1], 2) == 0)  # RENAME_EXCHANGE
    except (AttributeError, OSError, TypeError):  # musl
        return False


def config_folder() -> str:
    """Return the folder of programs' configurations."""
    import sys

    if sys.platform == "darwin":
        return "~/Library/Application Support"
    return os.environ.get("XDG_CONFIG_HOME") or "~/.config"


def state_folder() -> str:
    """Return the folder of what programs keep from run to run, if no variable names one."""
    return os.path.expanduser("~/.local/state")


def has_terminal() -> bool:
    """Return True if this process belongs to a terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def reserve(size: int) -> None:
    """Reserve address space for a moment, never written to. Raises OSError, ValueError, ..."""
    import mmap

    mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANON).close()


def error_text(error: OSError) -> str:
    """Return the system's text for an error that has a number; its own may be a library's."""
    return os.strerror(error.errno or 0)


def pause(seconds: float) -> None:
    """Wait; `time.sleep` fails if the clock is set back: it waits until a point in time."""
    import select

    select.select((), (), (), seconds)


def limit(memory: int, seconds: int) -> None:
    """Limit this process's bytes of memory, and its seconds of a processor, as far as possible."""
    import resource

    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds)):
        try:
            resource.setrlimit(kind, (most, most))
        except (OSError, ValueError):  # macOS has no limit of address space
            continue


def descriptors(most: int | None = None) -> int | None:
    """Return how many descriptors there may be, None for any number; first raise that to `most`."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    if most is not None and soft < most:
        soft = most if hard == resource.RLIM_INFINITY else min(hard, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def join(words: "Sequence[str]") -> str:
    """Return words as a shell's line."""
    import shlex

    return shlex.join(words)


def split(line: str) -> list[str]:
    """Return the words of a shell's line. Raises ValueError."""
    import shlex

    return shlex.split(line)
