"""Files of clients, and what is recorded of them: without it, a wrapped entry could not go back."""

import codecs
import hashlib
import json  # texts of clients may hold what orjson refuses: lone surrogates
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from glob import escape, glob
from typing import Any

from mcp_abridge.cli.terminal import print_lines
from mcp_abridge.cli.wrap.difference import difference
from mcp_abridge.cli.wrap.entry import NotPossible, Server, own_words
from mcp_abridge.cli.wrap.text import Json, Layout, Path, Syntax, Toml, entry_at
from mcp_abridge.errors import AbridgeError
from mcp_abridge.storage.ledger import default_path
from mcp_abridge.storage.regular import open_regular
from mcp_abridge.system import platform

_BACKUPS = 10  # of each file
_BESIDE = ".mcp-abridge-"  # in the name of a folder beside a file that is being written
_NEW = ".new"  # of our own files that are being written
_UNFINISHED = "unfinished"
_PAUSE, _TRIES = 0.05, 20  # seconds that a client has to write a file whole, and how often

Key = tuple[str, ...]
"""A file and the path of an entry in it; without a path, the whole file."""


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
        self.syntax: Syntax = Toml() if path.endswith(".toml") else Json()
        self.backup: str | None = None
        self._edits: dict[tuple[int, int], tuple[Path, str]] = {}

    @cached_property
    def document(self) -> Any:
        """The content before all edits."""
        try:
            return self.syntax.read(self.before)
        except RecursionError:
            raise ValueError("its values are nested too deeply") from None

    @cached_property
    def _layout(self) -> Layout:
        return Layout(self.before)

    @property
    def text(self) -> str:
        return "".join(after for _, after in self._pieces())

    @text.setter
    def text(self, text: str) -> None:
        self._edits = {(0, len(self.before)): ((), text)} if text != self.before else {}

    def _pieces(self) -> Iterator[tuple[str, str]]:
        """Yield the parts of the text as they were and as they are: edits, and what is between."""
        at = 0
        for (start, end), (_, after) in sorted(self._edits.items()):
            yield self.before[at:start], self.before[at:start]
            yield self.before[start:end], after
            at = end
        yield self.before[at:], self.before[at:]

    def part(self, path: Path) -> tuple[str, Path]:
        """Return the text in which the entry at a path is edited, and the entry's path there.

        In JSON it is the text of the entry alone; in TOML its members may stand apart.
        """
        span, inner = self._span(path)
        if span in self._edits:
            return self._edits[span][1], inner
        return self.before[slice(*span)], inner

    def _span(self, path: Path) -> tuple[tuple[int, int], Path]:
        if isinstance(self.syntax, Toml):
            return (0, len(self.before)), path
        return self._layout.span(path), ()

    def entry(self, path: Path, text: str | None = None) -> Any:
        """Return the entry at a path, as it is in a text of its part. Raises SyntaxProblem."""
        part, inner = self.part(path)
        return entry_at(self.syntax.read(part if text is None else text), inner)

    def check_part(self, path: Path, text: str) -> None:
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

    def change(self, path: Path, text: str) -> None:
        """Take a text for the part of the entry at a path, which `check_part` has let pass."""
        self._edits[self._span(path)[0]] = path, text

    def show(self, harmless: Collection[str] = ()) -> None:
        """Print the lines of what was changed, with masked values, but for those `harmless`."""
        pieces = list(self._pieces())
        if any(before != after for before, after in pieces):
            print_lines(*difference(self.syntax, self.path, pieces, self.document, harmless))

    def follow(self) -> bool:
        """Take what another program has written meanwhile, beside the entries that are edited.

        Returns False if an entry has changed, or the file has comments. It takes milliseconds, so
        that it succeeds between two writes of a busy client. What `show` prints stays as it was.
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
        values: dict[Path, Any] = {(): content.removeprefix(codecs.BOM_UTF8)}

        def value(path: Path) -> Any:
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

    def write(self) -> str | None:
        """Replace the file at once, with all its attributes, if its text was changed.

        Returns the path of a backup. Raises NotPossible if the file cannot be written as it should
        be, Changed if it was changed meanwhile, and OSError.
        """
        if not self._edits:
            return None
        status = self.check()
        self.backup = self.backup or _back_up(self.path, self.raw)
        folder, name = os.path.split(self.path)
        # Nobody else can open this folder, so that the copy may have the mode of the file at once.
        beside = tempfile.mkdtemp(prefix=f".{name}{_BESIDE}", dir=folder)
        try:
            path = os.path.join(beside, name)
            _write_synced(path, self._new_content or (self._mark + self.text).encode())
            _take_attributes(path, self.path, status)
            if _content(self.path) != self.raw or not _put(path, self.path, self.raw):
                raise Changed(f"{self.path} was changed meanwhile; try again")
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        return self.backup

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
        os.replace(new, path)
        return True
    if _content(new) == raw:
        return True
    # Another program has written at this very moment.
    platform.exchange(new, path)
    if os.stat(new).st_ino != ours:  # and again
        platform.exchange(new, path)
    return False


def _take_attributes(path: str, original: str, status: os.stat_result) -> None:
    """Give a file the owner, group, mode and extended attributes of another."""
    if not platform.keep_owner(path, status):
        raise NotPossible(
            f"{original} belongs to another user or group, which it would lose; edit it by hand"
        )
    shutil.copystat(original, path)
    os.utime(path)  # whoever watches the file looks at its time


def _without(document: Any, path: Path) -> Any:
    parent = entry_at(document, path[:-1])
    parent[path[-1]] = None
    return document


def _state() -> str:
    return os.path.join(os.path.dirname(default_path()), "wrap")


def _write_synced(path: str, raw: bytes) -> None:
    """Write a file that only its owner can read."""
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def _replace_private(path: str, raw: bytes) -> None:
    """Write a file of the state folder whole or not at all."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    try:
        _write_synced(path + _NEW, raw)
        os.replace(path + _NEW, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(path + _NEW)
        raise


@contextmanager
def exclusive(*, wait: bool = True) -> Iterator[bool]:
    """Let one run at a time read and write: two at once would lose an original.

    Yields False if another is at work and this one does not `wait`.
    """
    os.makedirs(_state(), mode=0o700, exist_ok=True)
    path = os.path.join(_state(), "lock")
    with open(os.open(path, os.O_CREAT | os.O_RDWR, 0o600)) as lock:
        free = platform.lock(lock.fileno(), wait=False)
        if not free and wait:
            print("another `wrap` or `unwrap` is at work; waiting for its end", file=sys.stderr)
            free = platform.lock(lock.fileno())
        yield free


def tidy() -> None:
    """Remove what a killed run has left, unless one is at work. Raises AbridgeError."""
    if os.path.isdir(_state()):
        with suppress(OSError), exclusive(wait=False) as free:
            if free:
                Records()


def _backups(path: str) -> tuple[str, list[str]]:
    """Return the start of the paths of a file's backups, and those that there are, by age."""
    name = hashlib.sha256(path.encode()).hexdigest()[:8] + "-"
    start = os.path.join(_state(), "backups", name)
    return start, sorted(glob(f"{escape(start)}*"))


def _back_up(path: str, raw: bytes) -> str:
    start, older = _backups(path)
    for backup in older[: 1 - _BACKUPS]:
        os.unlink(backup)
    backup = f"{start}{time.time_ns()}-{os.path.basename(path)}"
    _replace_private(backup, raw)
    return backup


def remove_backups(path: str) -> None:
    """Remove the backups of a file, which hold its secrets."""
    for backup in _backups(path)[1]:
        os.unlink(backup)


def _remove_leftovers(path: str) -> None:
    """Remove what a killed run has left beside a file."""
    folder, name = os.path.split(path)
    for beside in glob(f"{escape(os.path.join(folder, f'.{name}{_BESIDE}'))}*"):
        shutil.rmtree(beside, ignore_errors=True)  # not through a link


class Records:
    """The original text of each entry that was wrapped, in the state folder, by file and path.

    What a killed run has left is removed at once. Raises AbridgeError if the file is damaged.
    """

    def __init__(self, *, dry_run: bool = False) -> None:
        self._path = os.path.join(_state(), "originals.json")
        self._entries: dict[Key, list[Any]] = {}
        self._unfinished: set[Key] = set()
        with suppress(FileNotFoundError), open_regular(self._path) as file:
            self._load(file.read())
        if not dry_run:
            for new in glob(f"{escape(_state())}/**/*{_NEW}", recursive=True):
                os.unlink(new)
            self.finish()

    @property
    def keys(self) -> list[Key]:
        """The entries of which an original is recorded."""
        return list(self._entries)

    def _load(self, raw: bytes) -> None:
        try:
            document = json.loads(raw)
            self._unfinished = set(map(_key, document.pop(_UNFINISHED, ())))
            for key, record in document.items():
                before, after, *_ = self._entries[_key(key)] = record
                if not all(isinstance(text, str) for text in (before, after, *record[2:3])):
                    raise ValueError
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
            raise AbridgeError(
                f"{self._path} is damaged: it has the originals of what is wrapped, so nothing is "
                "changed. Repair it, or move it away; then entries that are wrapped already have "
                f"to be restored by hand, for which {_state()}/backups has the files as they were"
            ) from None

    def add(self, server: Server, file: ConfigFile, after: str) -> None:
        """Record what differs between the part of a server in a file and its text once wrapped."""
        before, inner = file.part(server.path)
        start = _same(before, after)
        end = min(_same(before[::-1], after[::-1]), min(len(before), len(after)) - start)
        pair = [before[start : len(before) - end], after[start : len(after) - end]]
        record = self._entries[server.file, *server.path] = [*pair]
        syntax = file.syntax
        record.append(syntax.table(before, inner) if isinstance(syntax, Toml) else before)
        record.append(entry_at(syntax.read(after), inner))

    def restore(self, server: Server, file: ConfigFile, is_original: Any) -> str:
        """Return the part of a server with its original. Raises NotPossible."""
        record = self._entries.get((server.file, *server.path))
        if record is None:
            raise NotPossible("its original entry is not recorded; write it by hand")
        before, after, *whole = record
        part, inner = file.part(server.path)
        for match in re.finditer(f"(?={re.escape(after)})", part):
            end = match.start() + len(after)
            text: str = part[: match.start()] + before + part[end:]
            with suppress(AbridgeError, AttributeError, TypeError):
                if is_original(text):
                    return text
        if whole and _filled(whole[1]) == _filled(server.entry):
            # The client has written the whole file in a layout of its own.
            text = whole[0]
            if isinstance(file.syntax, Toml):
                rest = file.syntax.remove(part, inner).rstrip("\n")
                text = f"{rest}\n\n{text}".lstrip("\n")
            if is_original(text):
                return text
        raise NotPossible(
            f"its entry was changed since; write it by hand: {self._path} has the original, and"
            f" {_state()}/backups the file as it was"
        )

    def begin(self, keys: Iterable[Key]) -> None:
        """Save the records before the files of these keys are written."""
        self._unfinished.update(keys)
        self._save()

    def finish(self) -> None:
        """Remove what no wrapped entry needs: records, backups, and copies beside the files."""
        if not self._unfinished:
            return
        remaining: set[Key] = set()
        for path in {path for path, *_ in self._unfinished}:
            entries = [key for key in self._unfinished if key[0] == path and key[1:]]
            _remove_leftovers(path)
            try:
                document = ConfigFile(path).document
            except FileNotFoundError:
                continue
            except (AbridgeError, OSError, ValueError):  # its client may be writing it
                remaining.update(entries)
                continue
            for key in entries:
                entry = entry_at(document, key[1:])
                if entry is not None and own_words(entry) is None:
                    self._entries.pop(key, None)
            if entries and not any(file == path for file, *_ in self._entries):
                remove_backups(path)
        self._unfinished = remaining
        self._save()

    def _save(self) -> None:
        content: dict[str, Any] = {json.dumps(key): self._entries[key] for key in self._entries}
        if self._unfinished:
            content[_UNFINISHED] = [json.dumps(key) for key in sorted(self._unfinished)]
        if content:
            _replace_private(self._path, json.dumps(content).encode())
        else:
            with suppress(FileNotFoundError):
                os.unlink(self._path)


def _filled(entry: Any) -> Any:
    """Return an entry without its empty lists: some clients leave them out when they write it."""
    return {name: each for name, each in entry.items() if each != []}


def _same(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)


def _key(text: str) -> Key:
    file, *path = json.loads(text)
    if not all(isinstance(name, str) for name in (file, *path)):
        raise ValueError
    return file, *path
