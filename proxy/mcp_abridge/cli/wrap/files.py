"""Files of clients: without it, an edit could lose what their clients or users have written."""

import codecs
import hashlib
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from functools import cached_property
from glob import escape, glob
from typing import Any

from mcp_abridge.cli.wrap.entry import masked_value
from mcp_abridge.cli.wrap.text import EntryPath, Json, NotPossible, Syntax, Toml, entry_at, key_of
from mcp_abridge.cli.wrap.yaml_text import Yaml
from mcp_abridge.errors import AbridgeError
from mcp_abridge.storage.ledger import default_path
from mcp_abridge.storage.regular import open_regular, write_private, write_whole
from mcp_abridge.system import platform

_BACKUPS = 10  # of each file
_BESIDE = ".mcp-abridge-"  # in the name of a folder beside a file that is being written
NEW = ".new"  # of our own files that are being written
_SYNTAXES: dict[str, type[Syntax]] = {".toml": Toml, ".yaml": Yaml, ".yml": Yaml}
_FRESH = 1.0  # seconds since a client has written a file that it may be writing again
_PAUSE, _TRIES = 0.05, 20  # seconds that a client has to write a file whole, and how often


Changes = dict[EntryPath, tuple[Any, Any]]
"""Masked entries before and after a change, by their paths; None if there is none."""


class Changed(NotPossible):
    """Another program has written a file while it was edited."""


class ConfigFile:
    """A configuration that is read, edited and written. Raises OSError and ValueError on reading.

    Its text is without the byte order mark, and has the file's own newlines. It is looked through
    once: an edit takes the part of an entry alone. `raw` stands for a file that is not there yet.
    """

    def __init__(self, path: str, raw: bytes | None = None) -> None:
        self.path, self.raw = path, _content(path) if raw is None else raw
        text = self.raw.decode()
        self._new_content: bytes | None = None
        self._mark = "\ufeff" if text.startswith("\ufeff") else ""
        self.before = text.removeprefix("\ufeff")
        self.syntax: Syntax = _SYNTAXES.get(os.path.splitext(path)[1], Json)()
        self.backup: str | None = None
        self.fresh = False
        """True if it was written a moment before it was replaced."""
        self._edits: dict[tuple[int, int], tuple[EntryPath, str]] = {}
        self.changes: Changes = {}

    @cached_property
    def document(self) -> Any:
        """The content before all edits."""
        try:
            return self.syntax.read(self.before)
        except RecursionError:
            raise ValueError("its values are nested too deeply") from None

    @property
    def text(self) -> str:
        text, at = "", 0
        for (start, end), (_, after) in sorted(self._edits.items()):
            text, at = f"{text}{self.before[at:start]}{after}", end
        return text + self.before[at:]

    @text.setter
    def text(self, text: str) -> None:
        self._edits = {(0, len(self.before)): ((), text)} if text != self.before else {}

    def part(self, path: EntryPath) -> tuple[str, EntryPath]:
        """Return the text in which the entry at a path is edited, and the entry's path there.

        In JSON it is the text of the entry alone; in TOML its members may stand apart, and in YAML
        its lines have its indentation.
        """
        span, inner = self._span(path)
        if span in self._edits:
            return self._edits[span][1], inner
        return self.before[slice(*span)], inner

    def _span(self, path: EntryPath) -> tuple[tuple[int, int], EntryPath]:
        if isinstance(self.syntax, Json):
            return self.syntax.locate(self.before, path)[1:3], ()
        return (0, len(self.before)), path

    def entry(self, path: EntryPath, text: str | None = None) -> Any:
        """Return the entry at a path, as it is in a text of its part. Raises SyntaxProblem."""
        part, inner = self.part(path)
        return entry_at(self.syntax.read(part if text is None else text), inner)

    def check_part(self, path: EntryPath, text: str) -> None:
        """Raise NotPossible if a text of a part would change more than the entry at a path."""
        (span, _), (before, inner) = self._span(path), self.part(path)
        if inner:
            same = _without(self.syntax.read(text), inner) == _without(
                self.syntax.read(before), inner
            )
        else:
            others = (each for each in self._edits if each != span)
            apart = all(end <= span[0] or span[1] <= start for start, end in others)
            self.syntax.read(text)
            same = apart and text[:1] + text[-1:] == "{}"
        if not same:
            raise NotPossible("its file has an unusual form; edit it by hand")

    def change(self, path: EntryPath, text: str) -> None:
        """Take a text for the part of the entry at a path, which `check_part` has let pass."""
        self._edits[self._span(path)[0]] = path, text
        entries = (entry_at(self.document, path), self.entry(path))
        old, new = map(masked_value, entries)
        if isinstance(entry_at(self.document, path[:-1]), list):
            old, new = ([{**each, "name": path[-1]}] for each in (old, new))
        self.changes[path] = old, new

    def follow(self) -> bool:
        """Take what another program has written meanwhile, beside the entries that are edited.

        Returns False if an entry has changed, or the file has comments. It takes milliseconds, so
        that it succeeds between two writes of a busy client. The `changes` stay as they were.
        """
        import msgspec

        raw, content, at = _content(self.path), b"", 0
        for span, (_, text) in sorted(self._edits.items()):
            before = self.before[slice(*span)].encode()
            if (start := raw.find(before, at)) < 0:
                return False
            content += raw[at:start] + text.encode()
            at = start + len(before)
        content += raw[at:]
        values: dict[EntryPath, Any] = {(): content.removeprefix(codecs.BOM_UTF8)}

        def value(path: EntryPath) -> Any:
            if path not in values:
                members = msgspec.json.decode(value(path[:-1]), type=dict[str, msgspec.Raw])
                values.update({(*path[:-1], name): each for name, each in members.items()})
            return values[path]

        try:
            if any(bytes(value(path)) != text.encode() for path, text in self._edits.values()):
                return False
        except (LookupError, ValueError):
            return False
        self.raw, self._new_content = raw, content
        return True

    def write(self) -> None:
        """Replace the file at once, with all its attributes, if its text was changed.

        Raises NotPossible if the file cannot be written as it should be, Changed if it was changed
        meanwhile, and OSError. `backup` is then the path of one.
        """
        if not self._edits:
            return
        status = self.check()
        self.backup = self.backup or _back_up(self.path, self.raw)
        folder, name = os.path.split(self.path)
        # Nobody else can open this folder, so that the copy may have the mode of the file at once.
        beside = tempfile.mkdtemp(prefix=f".{name}{_BESIDE}", dir=folder)
        try:
            path = os.path.join(beside, name)
            raw = self._new_content or (self._mark + self.text).encode()
            write_private(path, raw, sync=True)
            if not platform.keep_owner(path, status):
                raise NotPossible(
                    f"{self.path} belongs to another user or group, which it would lose; edit it"
                    " by hand"
                )
            shutil.copystat(self.path, path)
            os.utime(path)  # whoever watches the file looks at its time
            self.fresh = os.stat(path).st_mtime - status.st_mtime < _FRESH
            if _content(self.path) != self.raw or not _put(path, self.path, self.raw):
                raise Changed(f"{self.path} was changed meanwhile; try again")
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def check(self) -> os.stat_result:
        """Raise NotPossible if the file should not be written; else return its status."""
        status = os.stat(self.path)
        if not status.st_mode & stat.S_IWUSR:
            raise NotPossible(f"{self.path} is read-only, and stays as it is")
        if status.st_nlink > 1:
            raise NotPossible(
                f"{self.path} has {status.st_nlink} names (hard links), of which only this one "
                "would change; edit it by hand"
            )
        return status


def load(path: str) -> ConfigFile:
    """Return a configuration; if it is empty or does not parse, its client may be writing it.

    Raises OSError, and ValueError or SyntaxProblem if it does not parse, though nobody writes it.
    """
    file = ConfigFile(path)
    for _ in range(_TRIES):
        with suppress(AbridgeError, ValueError):
            if file.document or file.before.strip():
                break
        time.sleep(_PAUSE)
        before, file = file, ConfigFile(path)
        if file.raw == before.raw:
            break
    _ = file.document  # raises, if it does not parse
    return file


def _content(path: str) -> bytes:
    with open_regular(path) as file:
        return file.read()


def _put(new: str, path: str, raw: bytes) -> bool:
    """Put a file in the place of another; return False if that is not `raw`, which then stays."""
    ours = os.stat(new).st_ino
    if not platform.exchange(new, path):
        platform.replace(new, path)
        return True
    if _content(new) == raw:
        return True
    # Another program has written at this very moment.
    platform.exchange(new, path)
    if os.stat(new).st_ino != ours:  # and again
        platform.exchange(new, path)
    return False


def _without(document: Any, path: EntryPath) -> Any:
    parent = entry_at(document, path[:-1])
    del parent[key_of(parent, path[-1])]
    return document


def state_folder() -> str:
    """Return the folder of backups and records."""
    return os.path.join(os.path.dirname(default_path()), "wrap")


def backups_folder() -> str:
    """Return the folder of files as they were before they were written."""
    return os.path.join(state_folder(), "backups")


def write_state(path: str, raw: bytes) -> None:
    """Write a file of the state folder whole or not at all."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    write_whole(path, raw, path + NEW, sync=True)


def _backups(path: str) -> tuple[str, list[str]]:
    """Return the start of the paths of a file's backups, and those that there are, by age."""
    name = hashlib.sha256(path.encode()).hexdigest()[:8] + "-"
    start = os.path.join(backups_folder(), name)
    return start, sorted(glob(f"{escape(start)}*"))


def _back_up(path: str, raw: bytes) -> str:
    start, older = _backups(path)
    for backup in older[: 1 - _BACKUPS]:
        platform.unlink(backup)
    backup = f"{start}{time.time_ns()}-{os.path.basename(path)}"
    write_state(backup, raw)
    return backup


def remove_backups(path: str) -> None:
    """Remove the backups of a file, which hold its secrets."""
    for backup in _backups(path)[1]:
        platform.unlink(backup)


def remove_leftovers(path: str) -> None:
    """Remove what a killed run has left beside a file."""
    folder, name = os.path.split(path)
    for beside in glob(f"{escape(os.path.join(folder, f'.{name}{_BESIDE}'))}*"):
        shutil.rmtree(beside, ignore_errors=True)  # not through a link
