"""Start the server as a process group of its own, which ends when the proxy ends.

Imports nothing slow: the server is started before anything else is loaded.
"""

# The module that `signal` wraps; `signal` imports `enum`, which takes 4 ms.
import _signal  # type: ignore[import-not-found]
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TERMINATE: int = _signal.SIGTERM
KILL: int = _signal.SIGKILL

_NOT_FOUND = 127

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
        """Return True if the server has ended, and record its exit code."""
        if self.code is None and self.pid is not None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def signal(self, number: int) -> bool:
        """Send a signal to the whole group (0 only checks it); return False if it is empty."""
        if self.pid is None:
            return False
        try:
            os.killpg(self.pid, number)
        except OSError:
            return False
        return True

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
    """A shell that ends process groups if the proxy is killed before it could.

    It holds nothing but the other end of a pipe. Raises OSError if there is no shell.
    """

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
        """Add a group that must end with this process."""
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


def hold_signals() -> "Iterable[int]":
    """Block the signals that the proxy handles until it can; return the mask before.

    Threads that are started meanwhile do not receive them.
    """
    # If it were ignored, the system would not report the server's exit code.
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    signals = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM, _signal.SIGCHLD)
    before: Iterable[int] = _signal.pthread_sigmask(_signal.SIG_BLOCK, signals)
    return before


def spawn(command: list[str], mask: "Iterable[int]" = ()) -> ChildProcess:
    """Start `command` in a session of its own, guarded; raises OSError if it cannot be started.

    `mask` are the signals that it has blocked, independent of those that this thread blocks.
    """
    # Before the server: this process may be killed at any time.
    try:
        guardian: Guardian | None = Guardian(mask)
    except OSError:
        guardian = None
    pipes: list[tuple[int, int]] = []
    try:
        pipes += (os.pipe() for _ in range(3))
        (stdin, our_stdin), (our_stdout, stdout), (our_stderr, stderr) = pipes
        pid = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, descriptor, number)
                for number, descriptor in enumerate((stdin, stdout, stderr))
            ],
            setsid=True,
            setsigmask=mask,
            # Python ignores these from its start on; other programs do not expect that.
            setsigdef=(_signal.SIGPIPE, _signal.SIGXFSZ),
        )
    except (OSError, ValueError):
        for descriptor in (each for pipe in pipes for each in pipe):
            os.close(descriptor)
        if guardian is not None:
            guardian.dismiss()
        raise
    if guardian is not None:
        guardian.guard(0, pid)
    for descriptor in (stdin, stdout, stderr):
        os.close(descriptor)
    # Only the proxy's end: the server's end stays blocking, as every server expects.
    os.set_blocking(our_stdin, False)
    return ChildProcess(our_stdin, our_stdout, our_stderr, pid, guardian=guardian)


def stillborn() -> ChildProcess:
    """Return a stand-in for a server that could not be started: one that has already ended."""
    return ChildProcess(*(os.open(os.devnull, os.O_RDWR) for _ in range(3)), code=_NOT_FOUND)
