"""The .gitignore at the root of each codebase, read again when it may have changed."""

import os
from collections.abc import Iterable
from stat import S_ISREG
from typing import Literal

from msgspec import Struct
from pathspec import GitIgnoreSpec

MOST_BYTES = 1 << 20
MOST_ROOTS = 256


class Ignores(Struct):
    """What is known of one .gitignore: `ready` to be asked, or why it cannot be.

    `stamp` is when it was changed, in whole milliseconds, and its size. `uses` counts how often it
    was asked for since it was read.
    """

    state: Literal["ready", "absent", "unreadable"]
    spec: GitIgnoreSpec | None = None
    stamp: tuple[int, int] | None = None
    uses: int = 0

    def ignore(self, path: str) -> bool:
        """Say whether the file at `path`, relative to the root, is ignored."""
        return self.spec is not None and self.spec.match_file(path)


class RootIgnores:
    """The .gitignore of each root; those of its folders, and git's own, are not looked at.

    One that is ready is read again when its stamp changes; each, be it absent or unreadable,
    on every `interval`th use, as some file systems keep times too coarse to show a change.
    """

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._held: dict[str, Ignores] = {}

    def of(self, root: str) -> Ignores:
        """Return what is ignored at the root; this is a use of it."""
        root = os.path.realpath(root)
        file = os.path.join(root, ".gitignore")
        held = self._held.pop(root, None)
        if held is not None:
            held.uses += 1
            changed = held.state == "ready" and stamp(file) != held.stamp
            if changed or held.uses >= self._interval:
                held = None
        self._held[root] = held = held or read(file)
        if len(self._held) > MOST_ROOTS:
            del self._held[next(iter(self._held))]  # the one not used for the longest time
        return held


def read(file: str) -> Ignores:
    """Read a .gitignore. What is no regular file, or holds what is no pattern, is unreadable.

    >>> read("/nowhere/.gitignore").state
    'absent'
    """
    try:
        found = os.stat(file)
        # Opening a pipe would wait for whoever writes to it.
        if not S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            return Ignores("unreadable")
        with open(file, encoding="utf-8-sig", errors="replace") as lines:
            return Ignores("ready", matching(lines.read().split("\n")), stamped(found))
    except (FileNotFoundError, NotADirectoryError):
        return Ignores("absent")
    except Exception:  # of the file system, of the pattern, of the engine behind it
        return Ignores("unreadable")


def matching(patterns: Iterable[str]) -> GitIgnoreSpec:
    """Return what matches as these lines of a .gitignore do, in linear time.

    >>> matching(["docs/*", "!docs/keep.md"]).match_file("docs/keep.md")
    False
    """
    return GitIgnoreSpec.from_lines(patterns, backend="re2")


def stamp(file: str) -> tuple[int, int] | None:
    """Return the stamp of a file, None where it is not there."""
    try:
        return stamped(os.stat(file))
    except OSError:
        return None


def stamped(found: os.stat_result) -> tuple[int, int]:
    return found.st_mtime_ns // 1_000_000, found.st_size
