"""A shell of POSIX that outlives the proxy: if that is killed, no server may stay behind."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_KILL = 9
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
            os.kill(self.pid, _KILL)
            os.waitpid(self.pid, 0)
        except OSError:  # it was killed
            pass
        os.close(self._pipe)

    def _write(self, line: bytes) -> None:
        try:
            os.write(self._pipe, line)
        except OSError:
            return  # it was killed: its groups are unguarded, but the proxy continues
