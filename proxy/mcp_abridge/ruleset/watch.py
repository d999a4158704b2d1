"""Reloading of rule files that change; if a change has a mistake, the old rules stay.

The Python that they name is not loaded again, since its objects may be in use. A check takes a few
microseconds for each file: it compares size, inode, and the times of the last change of content and
of metadata, since `cp -p` restores the first, and Windows has the file's creation for the second.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from mcp_abridge.errors import AbridgeError, RuleErrors
from mcp_abridge.ruleset.rule_set import RuleFile
from mcp_abridge.ruleset.selection import load, paths

Stamp = tuple[int, ...] | None


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
        self._names = names
        self._allow_python = allow_python
        self._log = log
        self._warn = warn
        self._stamps = stamps(self._names)
        self.files: tuple[RuleFile, ...] = self._load()
        """The rules of the last version without a mistake."""

    def look(self) -> tuple[RuleFile, ...]:
        if self.changed():
            self.read()
        return self.files

    def changed(self) -> bool:
        if all(stamp(path) == earlier for path, earlier in self._stamps.items()):
            return False
        # Taken before the files are read, so that the next check finds later writes.
        self._stamps = stamps(self._names)
        return True

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


def stamps(names: Sequence[str]) -> dict[str, Stamp]:
    """Return the stamps of the names, of which a folder changes with a new file, and files."""
    every = {name: stamp(name) for name in names}
    for name in names:
        with suppress(OSError, AbridgeError):
            every |= {str(path): stamp(str(path)) for path in paths(name)}
    return every


def stamp(path: str) -> Stamp:
    """Return facts that change with a file; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino
