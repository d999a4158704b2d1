"""Remembers which rule files a server had: else it would slip from them by another name."""

import os
from collections.abc import Callable

from mcp_abridge.storage.ledger import default_path
from mcp_abridge.storage.regular import write_private
from mcp_abridge.storage.scope import secret
from mcp_abridge.storage.snapshots import digest

_MOST = 1000  # records; the one whose rule file held least recently is forgotten first


class RuleHistory:
    """The rule files that protected calls of the server in one `place`; a small file for each.

    `warn` gets a line if they cannot be recorded or read.
    """

    def __init__(self, place: str, warn: Callable[[str], None]) -> None:
        self._place, self._warn = place, warn
        self._names: set[str] = set()
        self._unread: set[str] = set()  # of which the log says that nothing can be read
        self._ledger = default_path()
        self.folder = os.path.join(os.path.dirname(self._ledger), "rule-files")
        """The folder of the records, of all servers."""

    def __contains__(self, name: str) -> bool:
        try:
            return name in self._names or os.path.exists(self._path(name))
        except OSError as error:
            if name not in self._unread:
                self._unread.add(name)
                self._warn(
                    f"{name}: whether it was in force in an earlier session cannot be read: "
                    f"{error}; if it must hold, write `required: true` of `server` in it"
                )
            return False

    def record(self, name: str) -> str:
        """Return the file to delete if a rule file never was meant for the server."""
        try:
            return self._path(name)
        except OSError:
            return self.folder

    def _path(self, name: str) -> str:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        key = secret(f"{self._ledger}.secret")
        return os.path.join(self.folder, digest(key, self._place, os.path.abspath(name)))

    def add(self, name: str) -> None:
        if name in self._names:
            return
        self._names.add(name)
        try:
            write_private(self._path(name), os.fsencode(f"{os.path.abspath(name)}\n"))
            with os.scandir(self.folder) as entries:
                paths = sorted((each.path for each in entries), key=os.path.getmtime)
            for old in paths[:-_MOST]:
                os.unlink(old)
        except OSError as error:
            self._warn(
                f"{name}: that it is in force cannot be recorded: {error}; if the server changes "
                "until a later session, only `required: true` of `server` in it stops calls then"
            )
