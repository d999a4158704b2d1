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

_FULL_CHECK = 25
_MAX_BYTES = 1 << 20  # bytes read of a file to compare it: rule files are shorter

Stamp = tuple[int, int, int] | None


class Watch:
    """The rule files that `names` refer to (see `selection.load`); raises RuleErrors.

    `log` gets a line when changed files apply, `warn` if they do not because of a mistake.
    `allow_python` (the files may name Python) is fixed for all reloads.
    """

    def __init__(
        self,
        names: Sequence[str],
        log: Callable[[str], None],
        warn: Callable[[str], None],
        *,
        allow_python: bool = False,
    ) -> None:
        self._names, self._allow_python = names, allow_python
        self._log, self._warn = log, warn
        self._checks = 0
        self._paths = list(names)
        self._stamps: list[Stamp] | None = None
        self._contents: dict[str, bytes] = {}
        self._record(list(map(_stamp, self._paths)), self._read_contents())
        self.files: tuple[RuleFile, ...] = self._load()
        """The rules of the last version without a mistake."""

    def look(self) -> tuple[RuleFile, ...]:
        """Check for changes, and return the rules."""
        if self.changed():
            self.read()
        return self.files

    def changed(self) -> bool:
        self._checks += 1
        stamps = list(map(_stamp, self._paths))
        if stamps == self._stamps and self._checks % _FULL_CHECK:
            return False
        contents = self._read_contents()
        changed = contents != self._contents
        self._record(stamps, contents)
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
            self._log(f"the rules have changed and apply from now on: {names}")

    def _load(self) -> tuple[RuleFile, ...]:
        return load(self._names, allow_python=self._allow_python)

    def _record(self, stamps: list[Stamp], contents: dict[str, bytes]) -> None:
        """Record the contents of the files, and the stamps taken before the contents were read.

        So the next check finds later writes. It also finds new files of a folder.
        """
        paths = list(dict.fromkeys((*contents, *self._names)))
        self._contents = contents
        self._stamps = stamps if paths == self._paths else None
        self._paths = paths

    def _read_contents(self) -> dict[str, bytes]:
        contents: dict[str, bytes] = {}
        for name in self._names:
            try:
                for path in paths(name):
                    contents[str(path)] = content(path, _MAX_BYTES)
            except (OSError, AbridgeError) as error:
                contents[name] = str(error).encode()
        return contents


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
