"""Start the server as a process group of its own, which ends when the proxy ends.

Imports nothing slow: the server is started before anything else is loaded.
"""

# The module that `signal` wraps; `signal` imports `enum`, which takes 4 ms.
import _signal  # type: ignore[import-not-found]
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

TERMINATE: int = _signal.SIGTERM
KILL: int = _signal.SIGKILL
END_SIGNALS: "tuple[int, ...]" = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP)
"""The signals that end the proxy."""

_NOT_FOUND = 127
_HELD = (*END_SIGNALS, _signal.SIGCHLD)

# Reads which groups exist, and ends them as the proxy would once the proxy has ended. Names are the
# proxy's, since it does not learn the number of a group whose start fails.
_GUARDIAN = """
trap '' HUP INT TERM
guarded=' '
while read -r word name group; do
    case $word in
    guard) guarded="$guarded$name:$group " ;;
    leave) case $guarded in *" $name:"*)
        rest=${guarded#* "$name":}
        guarded="${guarded%% "$name":*} ${rest#* }" ;;
        esac ;;
    esac
done
[ "$guarded" = ' ' ] && exit
sleep 1
left=
for each in $guarded; do
    kill -s TERM -- "-${each#*:}" && left="$left ${each#*:}"
done
[ -n "$left" ] || exit
sleep 2
for group in $left; do
    kill -s KILL -- "-$group"
done
"""


class ChildProcess:
    """A server: its process group, and the proxy's ends of its pipes."""

    def __init__(
        self,
        stdin: int,
        stdout: int,
        stderr: int,
        pid: int | None = None,
        *,
        guardian: "Guardian | None" = None,
        code: int | None = None,
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.pid = pid
        self.code = code
        """Its exit code once its end was observed; negative if a signal of that number ended it."""
        self.guardian = guardian

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


class Guardian:
    """A shell that ends process groups if the proxy is killed; raises OSError if there is none."""

    def __init__(self, mask: "Iterable[int]" = ()) -> None:
        reading, self._pipe = os.pipe()
        try:
            self.pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _GUARDIAN, "mcp-abridge-guardian"],
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
            os.close(self._pipe)
            raise
        finally:
            os.close(reading)
        os.set_blocking(self._pipe, False)

    def guard(self, name: int, group: int) -> None:
        self._write(b"guard %d %d\n" % (name, group))

    def leave(self, name: int) -> None:
        """Remove a group that has ended, or could not be started."""
        self._write(b"leave %d\n" % name)

    def dismiss(self) -> None:
        """End the shell; no group is guarded any more."""
        try:
            os.kill(self.pid, KILL)
            os.waitpid(self.pid, 0)
        except OSError:  # it was killed
            pass
        os.close(self._pipe)

    def _write(self, line: bytes) -> None:
        try:
            os.write(self._pipe, line)
        except OSError:
            return  # it was killed: its groups are unguarded, but the proxy continues


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group (0 only checks it); return False if it is empty."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def hold_signals() -> "Iterable[int]":
    """Block the signals that the proxy handles, for later threads too; return the mask before."""
    # If it were ignored, the system would not report the server's exit code.
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    before: Iterable[int] = _signal.pthread_sigmask(_signal.SIG_BLOCK, _HELD)
    return before


def release_signals() -> None:
    """Let the signals that were held reach this thread."""
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _HELD)


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
    child = ChildProcess(our_stdin, our_stdout, our_stderr, pid, guardian=guardian)
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


def stillborn() -> ChildProcess:
    """Return a stand-in for a server that could not be started: one that has already ended."""
    return ChildProcess(*(os.open(os.devnull, os.O_RDWR) for _ in range(3)), code=_NOT_FOUND)
