"""The original entries of what was wrapped: without them, no wrapped entry could go back."""

import json  # texts of clients may hold what orjson refuses: lone surrogates
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape, glob
from typing import Any

from mcp_abridge.cli.wrap.entry import Server, own_words
from mcp_abridge.cli.wrap.files import (
    NEW,
    ConfigFile,
    backups_folder,
    remove_backups,
    remove_leftovers,
    state_folder,
    write_state,
)
from mcp_abridge.cli.wrap.places import HOOKS, hook_path
from mcp_abridge.cli.wrap.text import NotPossible, entry_at
from mcp_abridge.errors import AbridgeError
from mcp_abridge.storage.regular import open_regular
from mcp_abridge.system import platform

# Records of earlier versions name no client, and stand beside the keys of those not finished.
_EARLIER, _UNFINISHED, _OF_EARLIER = 4, "unfinished", "another client"

EntryKey = tuple[str, ...]
"""A file and the path of an entry in it; without a path, the whole file."""


class Records:
    """The original text of each entry that was wrapped, in the state folder, by file and path.

    A record has the part that differs before and after, the original entry alone, the wrapped one
    as a value, its client, and whether a run has begun to write the file and has not finished.
    What a killed run has left is removed at once. Raises AbridgeError if the file is damaged.
    """

    def __init__(self, *, dry_run: bool = False) -> None:
        self._path = os.path.join(state_folder(), "originals.json")
        self._entries: dict[EntryKey, list[Any]] = {}
        with suppress(FileNotFoundError), open_regular(self._path) as file:
            self._load(file.read())
        if not dry_run:
            for new in glob(f"{escape(state_folder())}/**/*{NEW}", recursive=True):
                os.unlink(new)
            self.finish()

    @property
    def clients(self) -> dict[EntryKey, str]:
        """The clients of the entries of which an original is recorded."""
        return {key: client for key, (*_, client, _) in self._entries.items()}

    def _load(self, raw: bytes) -> None:
        try:
            document = json.loads(raw)
            unfinished = {*map(_key, document.pop(_UNFINISHED, ()))}
            for key, record in document.items():
                if len(record) == _EARLIER:
                    record += _OF_EARLIER, _key(key) in unfinished
                *texts, _, client, _ = self._entries[_key(key)] = record
                if [*map(type, (*texts, client))] != [str] * 4:
                    raise ValueError
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
            raise AbridgeError(
                f"{self._path} is damaged: it has the originals of what is wrapped, so nothing is "
                "changed. Repair it, or move it away; then entries that are wrapped already have "
                f"to be restored by hand, for which {backups_folder()} has the files as "
                "they were"
            ) from None

    def add(self, server: Server, file: ConfigFile, after: str) -> None:
        """Record what differs between the part of a server in a file and its text once wrapped."""
        before, inner = file.part(server.path)
        start = _same(before, after)
        end = min(_same(before[::-1], after[::-1]), min(len(before), len(after)) - start)
        pair = [before[start : len(before) - end], after[start : len(after) - end]]
        record = self._entries[server.file, *server.path] = [*pair]
        syntax = file.syntax
        # A client may write all anew: the entry is then put at the end.
        record.append(syntax.alone(before, inner))
        record += entry_at(syntax.read(after), inner), server.place.client, True

    def restore(self, server: Server, file: ConfigFile, is_original: Any) -> str:
        """Return the part of a server with its original. Raises NotPossible."""
        record = self._entries.get((server.file, *server.path))
        if record is None:
            raise NotPossible("its original entry is not recorded; write it by hand")
        before, after, alone, entry, *_ = record
        part, inner = file.part(server.path)
        for match in re.finditer(f"(?={re.escape(after)})", part):
            end = match.start() + len(after)
            text: str = part[: match.start()] + before + part[end:]
            with suppress(AbridgeError, AttributeError, TypeError):
                if is_original(text):
                    return text
        if _filled(entry) == _filled(server.entry):
            # The client has written the whole file in a layout of its own.
            text = file.syntax.put_back(part, inner, alone)
            if is_original(text):
                return text
        raise NotPossible(
            f"its entry was changed since; write it by hand: {self._path} has the original, and"
            f" {backups_folder()} the file as it was"
        )

    def finish(self) -> None:
        """Remove what no wrapped entry needs: records, backups, and copies beside the files."""
        unfinished = [key for key, (*_, is_open) in self._entries.items() if is_open]
        for path in map(hook_path, HOOKS):
            remove_leftovers(path)
        for path in {path for path, *_ in unfinished}:
            remove_leftovers(path)
            try:
                document = ConfigFile(path).document
            except (AbridgeError, OSError, ValueError):  # its client may be writing it
                continue
            for key in (key for key in unfinished if key[0] == path):
                entry = entry_at(document, key[1:])
                self._entries[key][-1] = False
                if entry is not None and own_words(entry) is None:
                    del self._entries[key]
            if not any(file == path for file, *_ in self._entries):
                remove_backups(path)
        if unfinished:
            self._save()

    def begin(self, keys: Iterable[EntryKey]) -> None:
        """Save the records before the entries with these keys are written."""
        for key in self._entries.keys() & {*keys}:
            self._entries[key][-1] = True
        self._save()

    def _save(self) -> None:
        content = {json.dumps(key): self._entries[key] for key in self._entries}
        if content:
            write_state(self._path, json.dumps(content).encode())
        else:
            with suppress(FileNotFoundError):
                platform.unlink(self._path)


@contextmanager
def exclusive(*, wait: bool = True) -> Iterator[bool]:
    """Let one run at a time read and write: two at once would lose an original.

    Yields False if another is at work and this one does not `wait`.
    """
    os.makedirs(state_folder(), mode=0o700, exist_ok=True)
    path = os.path.join(state_folder(), "lock")
    with open(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "rb") as lock:
        free = platform.lock(lock.fileno(), wait=False)
        if not free and wait:
            print("another `wrap` or `unwrap` is at work; waiting for its end", file=sys.stderr)
            free = platform.lock(lock.fileno())
        yield free


def recorded(report: Callable[[AbridgeError], object]) -> dict[EntryKey, str]:
    """Return the clients of recorded entries, see Records; `report` gets the error if that fails.

    What a killed run has left is removed, unless one is at work.
    """
    try:
        if os.path.isdir(state_folder()):
            with suppress(OSError), exclusive(wait=False) as free:
                if free:
                    Records()
        return Records(dry_run=True).clients
    except AbridgeError as error:
        report(error)
        return {}


def _filled(entry: Any) -> Any:
    """Return an entry without what is empty: some clients leave it out, others add it."""
    return {name: each for name, each in entry.items() if each not in (None, "", [], {})}


def _same(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)


def _key(text: str) -> EntryKey:
    file, *path = json.loads(text)
    if not all(isinstance(name, str) for name in (file, *path)):
        raise ValueError
    return file, *path
