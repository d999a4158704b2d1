"""Starts the server as a process group of its own, and sees to it that the group ends with us.

Imports nothing that costs: the server is started before anything else is loaded.
"""

# What `signal` wraps; that one imports `enum`, for 4 ms.
import _signal  # type: ignore[import-not-found]
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from subprocess import Popen
    from typing import NoReturn

TERMINATE: int = _signal.SIGTERM
KILL: int = getattr(_signal, "SIGKILL", 9)

_NOT_FOUND = 127

# Reads which group it is for, then nothing more until we are no more; ends the group as we would.
_GUARDIAN = """
trap '' HUP INT TERM
read -r group || exit 0
read -r nothing
sleep 1
kill -s TERM -- "-$group" || exit 0
sleep 2
kill -s KILL -- "-$group"
"""


class ChildProcess:
    """A server: its process group, and our ends of its pipes."""

    def __init__(
        self,
        stdin: int,
        stdout: int,
        stderr: int,
        pid: int | None = None,
        *,
        guardian: "ForkedGuardian | None" = None,
        process: "Popen[bytes] | None" = None,
        code: int | None = None,
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.pid = pid
        self.code = code
        """Its exit code once it was seen to have ended; a signal's number, negative."""
        self.guardian = guardian
        self._process = process

    def ended(self) -> bool:
        """Return True if the server has ended, and take note of its exit code."""
        if self.code is None:
            if self._process is not None:
                self.code = self._process.poll()
            elif self.pid is not None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def signal(self, number: int) -> bool:
        """Send a signal to the whole group (0 only looks); False where nobody is left in it."""
        try:
            if self.pid is None:
                return False
            if hasattr(os, "killpg"):
                os.killpg(self.pid, number)
            elif self._process is not None and number:
                self._process.kill() if number == KILL else self._process.terminate()
        except OSError:
            return False
        return self._process is None or not self.ended()

    def give_up(self) -> None:
        """Take the server for ended, where even SIGKILL did not end it in time."""
        if not self.ended():
            self.code = -KILL

    def release(self) -> None:
        """Let the guardian go, once the group has ended."""
        if self.guardian is not None:
            self.guardian.dismiss()
            self.guardian = None


class ForkedGuardian:
    """A shell that ends a process group where this process is killed before it could.

    It holds nothing but the other end of a pipe, through which whoever is to be guarded first sends
    its number. Raises OSError where there is no shell.
    """

    def __init__(self, mask: "Iterable[int]") -> None:
        self.pid, self.pipe = watching(_GUARDIAN, mask)

    def dismiss(self) -> None:
        """End it; nobody is guarded any more."""
        os.kill(self.pid, KILL)
        os.waitpid(self.pid, 0)
        os.close(self.pipe)


def watching(script: str, mask: "Iterable[int]" = ()) -> tuple[int, int]:
    """Start a shell that reads what we write, and sees its end when we are no more.

    Returns its process and our end of its stdin, which is all that it has open. Raises OSError
    where there is no shell.
    """
    reading, writing = os.pipe()
    try:
        process = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", script, "mcp-abridge-guardian"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reading, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setpgroup=0,
            setsigmask=mask,
        )
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return process, writing


def hold_signals() -> "Iterable[int]":
    """Let the signals that matter wait until somebody can act on them; return the mask before.

    Threads that are started meanwhile will not receive them.
    """
    if not hasattr(_signal, "pthread_sigmask"):
        return ()
    # Where it was ignored, the system would not tell how the server ended.
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    held = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM, _signal.SIGCHLD)
    before: Iterable[int] = _signal.pthread_sigmask(_signal.SIG_BLOCK, held)
    return before


def spawn(command: list[str], mask: "Iterable[int]" = ()) -> ChildProcess:
    """Start `command` in a session of its own, guarded; raises OSError where that cannot be done.

    `mask` are the signals that it is to have blocked, whatever this thread has blocked itself.
    """
    if not hasattr(os, "fork"):
        return opened(command)
    try:
        guardian: ForkedGuardian | None = ForkedGuardian(mask)
    except OSError:
        guardian = None
    pipes: list[tuple[int, int]] = []
    try:
        pipes += (os.pipe() for _ in range(4))
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
    child = ChildProcess(our_stdin, our_stdout, our_stderr, pid, guardian=guardian)
    if failed:
        os.waitpid(pid, 0)
        child.release()
        for descriptor in (our_stdin, our_stdout, our_stderr):
            os.close(descriptor)
        raise OSError(int(failed), os.strerror(int(failed)))
    # Only our end: the server's stays as every server expects it.
    os.set_blocking(our_stdin, False)
    return child


def _become(
    command: list[str],
    pipes: tuple[int, int, int],
    mask: "Iterable[int]",
    guardian: ForkedGuardian | None,
    failing: int,
) -> "NoReturn":
    """Be the server, from the fork on; everything else that is open closes by itself."""
    try:
        os.setsid()
        if guardian is not None:
            # Not left to the parent, which may be killed before it knows the number.
            os.write(guardian.pipe, b"%d\n" % os.getpid())
        for number, descriptor in enumerate(pipes):
            os.dup2(descriptor, number)
        # Python ignores these from its start on, which nobody else expects.
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
        _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(failing, b"%d" % (error.errno or 0))
    finally:
        os._exit(_NOT_FOUND)


def opened(command: list[str]) -> ChildProcess:
    """Start `command` where the system has no fork; nothing guards it there."""
    from subprocess import PIPE, Popen

    process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    pipes = (process.stdin, process.stdout, process.stderr)
    stdin, stdout, stderr = (os.dup(pipe.fileno()) for pipe in pipes)
    for pipe in pipes:
        pipe.close()
    return ChildProcess(stdin, stdout, stderr, process.pid, process=process)


def stillborn() -> ChildProcess:
    """Return what stands for a server that could not be started: one that has already ended."""
    ours = []
    for end in (1, 0, 0):
        # One after the other: it may be descriptors that the server could not be started for.
        pipe = os.pipe()
        os.close(pipe[1 - end])
        ours.append(pipe[end])
    return ChildProcess(*ours, code=_NOT_FOUND)
