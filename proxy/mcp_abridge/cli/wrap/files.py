"""Files of clients, and what is recorded of them: without it, a wrapped entry could not go back."""

import difflib
import hashlib
import json  # texts of clients may hold what orjson refuses: lone surrogates
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from mcp_abridge.cli.terminal import printable
from mcp_abridge.cli.wrap.entry import NotPossible, Server
from mcp_abridge.cli.wrap.text import Json, Path, Syntax, Toml, entry_at
from mcp_abridge.errors import AbridgeError
from mcp_abridge.storage.ledger import default_path

_BACKUPS = 10  # of each file


class ConfigFile:
    """A configuration that is read, edited and written. Raises OSError and ValueError on reading.

    `text` is without the byte order mark, and has the file's own newlines. `raw` stands for a
    file that is not there yet.
    """

    def __init__(self, path: str, raw: bytes | None = None) -> None:
        if raw is None:
            with open(path, "rb") as file:
                raw = file.read()
        self.path, self.raw = path, raw
        text = self.raw.decode()
        self._mark = "\ufeff" if text.startswith("\ufeff") else ""
        self.text = self.before = text.removeprefix("\ufeff")
        self.syntax: Syntax = Toml() if path.endswith(".toml") else Json()

    def read(self) -> Any:
        return self.syntax.read(self.text)

    def change(self, text: str, path: Path) -> None:
        """Take a text that differs in the entry at a path alone. Raises NotPossible."""
        if _without(self.syntax.read(text), path) != _without(self.read(), path):
            raise NotPossible("its file has an unusual form; edit it by hand")
        self.text = text

    def show(self, secrets: Iterable[str] = ()) -> None:
        """Print the lines of what was changed, without these texts."""
        old, new = self.before.splitlines(), self.text.splitlines()
        for line in difflib.unified_diff(old, new, self.path, self.path, lineterm=""):
            for secret in sorted(secrets, key=len, reverse=True):
                line = line.replace(secret, "***")
            print(printable(line))
        sys.stdout.flush()

    def write(self) -> None:
        """Replace the file at once, with its mode, if its text was changed.

        Raises NotPossible if it is read-only or was changed meanwhile, and OSError.
        """
        if self.text == self.before:
            return
        status = os.stat(self.path)
        if not status.st_mode & stat.S_IWUSR:
            raise NotPossible(f"{self.path} is read-only, and stays as it is")
        backup = _back_up(self.path, self.raw)
        folder, name = os.path.split(self.path)
        descriptor, path = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write((self._mark + self.text).encode())
            os.chmod(path, stat.S_IMODE(status.st_mode))
            with open(self.path, "rb") as file:
                if file.read() != self.raw:
                    raise NotPossible(f"{self.path} was changed meanwhile; try again")
            os.replace(path, self.path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(path)
        print(f"{self.path} is written; its backup is {backup}", file=sys.stderr)


def _without(document: Any, path: Path) -> Any:
    parent = entry_at(document, path[:-1])
    parent[path[-1]] = None
    return document


def _folder(*names: str) -> str:
    folder = os.path.join(os.path.dirname(default_path()), "wrap", *names)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def _back_up(path: str, raw: bytes) -> str:
    start = hashlib.sha256(path.encode()).hexdigest()[:8]
    folder = _folder("backups")
    older = sorted(name for name in os.listdir(folder) if name.startswith(start))
    for name in older[: 1 - _BACKUPS]:
        os.unlink(os.path.join(folder, name))
    backup = os.path.join(folder, f"{start}-{time.time_ns()}-{os.path.basename(path)}")
    with open(os.open(backup, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
        file.write(raw)
    return backup


class Records:
    """The original text of each entry that was wrapped, in the state folder, by file and path."""

    def __init__(self) -> None:
        self._path = os.path.join(_folder(), "originals.json")
        self._entries: dict[str, list[Any]] = {}
        with suppress(FileNotFoundError, ValueError), open(self._path, encoding="utf-8") as file:
            self._entries = json.load(file)

    def add(self, server: Server, file: ConfigFile, after: str) -> None:
        """Record what differs between a file and its text after one server was wrapped."""
        before = file.text
        start = _same(before, after)
        end = min(_same(before[::-1], after[::-1]), min(len(before), len(after)) - start)
        pair = [before[start : len(before) - end], after[start : len(after) - end]]
        record = self._entries[_key(server)] = [*pair]
        if isinstance(file.syntax, Json):
            first, last = file.syntax.locate(before, server.path)
            record += [before[first:last], entry_at(file.syntax.read(after), server.path)]

    def restore(self, server: Server, file: ConfigFile, is_original: Any) -> str:
        """Return the text with the server's original. Raises NotPossible."""
        if _key(server) not in self._entries:
            raise NotPossible("its original entry is not recorded; write it by hand")
        before, after, *whole = self._entries[_key(server)]
        for match in re.finditer(f"(?={re.escape(after)})", file.text):
            end = match.start() + len(after)
            text: str = file.text[: match.start()] + before + file.text[end:]
            with suppress(AbridgeError, AttributeError, TypeError):
                if is_original(text):
                    return text
        if whole and whole[1] == server.entry:
            # The client has written the whole file in a layout of its own.
            start, end = file.syntax.locate(file.text, server.path)
            return f"{file.text[:start]}{whole[0]}{file.text[end:]}"
        backups = os.path.join(os.path.dirname(self._path), "backups")
        raise NotPossible(
            f"its entry was changed since; write it by hand: {self._path} has the original, and"
            f" {backups} the file as it was"
        )

    def save(self) -> None:
        """Write the records, readable by their owner alone: entries may have secrets."""
        descriptor, path = tempfile.mkstemp(dir=_folder())
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(self._entries, file)
        os.replace(path, self._path)


def _same(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)


def _key(server: Server) -> str:
    return json.dumps([server.file, *server.path])
