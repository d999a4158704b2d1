"""Snapshots in a folder, for processes of one user that serve one client one after the other.

A snapshot is a file that only its owner can read. Its name is a digest with a secret of the folder,
and its modification time is that of its last use.
"""

import os
import time
from contextlib import suppress

from mcp_abridge.errors import StoreError
from mcp_abridge.storage.answer_list import MOST, StoredAnswer, listing, text_of
from mcp_abridge.storage.regular import make_room, write_whole
from mcp_abridge.storage.scope import SECRET, secret
from mcp_abridge.storage.snapshots import LABELS, Key, Snapshot, digest, label_of, pack, unpack
from mcp_abridge.system import platform

_SUFFIX = ".snapshot"


class Folder:
    """A Store in the files of a folder; safe for several processes.

    It holds at most `size` bytes and `number` files; the least recently used ones go first.
    """

    remote = True

    def __init__(
        self, path: str, *, number: int = 1000, size: int = 256_000_000, seconds: float = 1800.0
    ) -> None:
        """Keep snapshots for `seconds` after their last use. Raises StoreError."""
        self._path, self._number, self._size, self._seconds = path, number, size, seconds
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
            if reason := platform.publicity(path):
                raise StoreError(f"--store {path}: {reason}")
            self._secret = secret(os.path.join(path, SECRET))
        except OSError as error:
            raise self._failure(error) from None
        self._make_room()

    def put(self, key: Key, snapshot: Snapshot) -> None:
        raw = pack(snapshot, f"{self._owner(key)} {text_of(key.call)}")
        if len(raw) > self._size:
            self.drop(key)
            return
        path = self._file(key)
        try:
            write_whole(path, raw, f"{path}.{os.getpid()}")
            self._make_room()
        except OSError as error:
            raise self._failure(error) from None

    def get(self, key: Key) -> Snapshot | None:
        if key.call is None:
            return self._list(key)
        path = self._file(key)
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_mtime < time.time() - self._seconds:
                    return None
                raw = file.read()
            os.utime(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failure(error) from None
        return unpack(raw)

    def drop(self, key: Key) -> None:
        paths, start = [self._file(key)], digest(self._secret, key.scope, key.rule)
        if key.call is None:
            paths = [each.path for each in os.scandir(self._path) if each.name.startswith(start)]
        for path in paths:
            with suppress(FileNotFoundError):
                platform.unlink(path)

    def _owner(self, key: Key) -> str:
        return digest(self._secret, key.scope)

    def _list(self, key: Key) -> Snapshot:
        own: list[tuple[float, StoredAnswer]] = []
        for entry in os.scandir(self._path):
            if not entry.name.endswith(_SUFFIX):
                continue
            with suppress(OSError), open(entry.path, "rb") as file:
                status, label = os.fstat(file.fileno()), label_of(file.read(LABELS))
                if label is None or status.st_mtime < time.time() - self._seconds:
                    continue
                words, age, start = label
                owner, _, call = words.partition(" ")
                if owner == self._owner(key):
                    answer = StoredAnswer(call, status.st_size - start, age)
                    own.append((status.st_mtime, answer))
        own.sort(key=lambda each: each[0], reverse=True)
        return listing(answer for _, answer in own[:MOST])

    def _file(self, key: Key) -> str:
        start = digest(self._secret, key.scope, key.rule)
        return os.path.join(self._path, f"{start}-{digest(self._secret, key.call)}{_SUFFIX}")

    def _make_room(self) -> None:
        make_room(self._path, _SUFFIX, self._seconds, size=self._size, number=self._number)

    def _failure(self, error: OSError) -> StoreError:
        reason = (error.strerror or str(error)).lower()
        return StoreError(f"--store {self._path}: {reason}")
