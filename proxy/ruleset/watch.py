"""Reloading of rule files that change; if a change has a mistake, the old rules stay.

The Python that they name is not loaded again, since its objects may be in use.

A check takes a few microseconds for each file: it compares modification time, size and inode. Every
25th check compares the contents, since an edit may change none of the three.
"""

import os
from collections.abc import Callable, Sequence

from proxy.errors import AbridgeError, RuleErrors
from proxy.ruleset.rule import RuleFile
from proxy.ruleset.selection import content, load, paths

_ANYWAY = 25
_MOST = 1 << 20  # bytes read of a file to compare it: rule files are shorter

Stamp = tuple[int, int, int] | None


class Watch:
    """The rule files that `names` refer to (see `selection.load`); raises RuleErrors.

    `say` gets a line when changed files apply, `warn` if they do not because of a mistake.
    `allow_python` (the files may name Python) is fixed for all reloads.
    """

    def __init__(
        self,
        names: Sequence[str],
        say: Callable[[str], None],
        warn: Callable[[str], None],
        *,
        allow_python: bool = False,
    ) -> None:
        self._names = names
        self._stamps: list[Stamp] | None
        self._allow_python = allow_python
        self._say = say
        self._warn = warn
        self._looks = 0
        self._places = list(names)
        self._note(self._stamped(), self._read())
        self.files: tuple[RuleFile, ...] = self._load()
        """The rules of the last version without a mistake."""

    def look(self) -> None:
        """Check for changes, and read the files if there are any."""
        if self.changed():
            self.read()

    def changed(self) -> bool:
        """Return True if the files have changed since the last call."""
        self._looks += 1
        stamps = self._stamped()
        if stamps == self._stamps and self._looks % _ANYWAY:
            return False
        held = self._read()
        changed = held != self._held
        self._note(stamps, held)
        return changed

    def read(self) -> None:
        """Read the files, which may take a while; `files` keeps the old rules meanwhile."""
        try:
            self.files = self._load()
        except RuleErrors as errors:
            first, *others = map(str, errors.problems)
            more = f" (and {len(others)} more)" if others else ""
            self._warn(f"the rules have changed, but the old ones stay: {first}{more}")
        else:
            names = ", ".join(file.name for file in self.files)
            self._say(f"the rules have changed and apply from now on: {names}")

    def _load(self) -> tuple[RuleFile, ...]:
        return load(self._names, allow_python=self._allow_python)

    def _note(self, stamps: list[Stamp], held: dict[str, bytes]) -> None:
        """Record the contents of the files, and the stamps taken before the contents were read.

        So the next check finds later writes. It also finds new files of a folder.
        """
        places = list(dict.fromkeys((*held, *self._names)))
        self._held = held
        self._stamps = stamps if places == self._places else None
        self._places = places

    def _stamped(self) -> list[Stamp]:
        return [_stamp(path) for path in self._places]

    def _read(self) -> dict[str, bytes]:
        """Return the contents of each file, or the reason if it cannot be read."""
        held: dict[str, bytes] = {}
        for name in self._names:
            try:
                for path in paths(name):
                    held[str(path)] = content(path, _MOST)
            except (OSError, AbridgeError) as error:
                held[name] = str(error).encode()
        return held


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
