"""Files that others may have put there, or read: a FIFO would hang, a link lead elsewhere.

Without it, a file that is written while the process ends is half of one.
"""

import os
import stat
import time
from contextlib import suppress
from typing import BinaryIO

from mcp_abridge.system import platform


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """Open a file for reading, without waiting for a writer.

    Raises OSError, also if it is no regular file, or a link while `follow` is false (only the last
    part of the path counts).
    """
    descriptor = platform.open_at_once(path, os.O_RDONLY, follow=follow)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "is no regular file", os.fspath(path))
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def write_private(path: str, raw: bytes, *, sync: bool = False) -> None:
    """Write a file that its owner alone can read, and to the disk if `sync`. Raises OSError."""
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
        file.write(raw)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def write_whole(path: str, raw: bytes, unfinished: str, *, sync: bool = False) -> None:
    """Write such a file whole or not at all: as `unfinished` in the same folder first. OSError."""
    try:
        write_private(unfinished, raw, sync=sync)
        platform.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def make_room(folder: str, suffix: str, seconds: float, *, size: int, number: int) -> None:
    """Delete files that were last used `seconds` ago, and the oldest beyond `size` bytes in all.

    They are those of a folder with `suffix` in their names; at most `number` stay. Raises OSError.
    """
    files: list[tuple[float, int, str]] = []
    for entry in os.scandir(folder):
        if suffix in entry.name:
            with suppress(FileNotFoundError):
                status = entry.stat()
                files.append((status.st_mtime, status.st_size, entry.path))
    expired, total = time.time() - seconds, 0
    for count, (used, bytes_, path) in enumerate(sorted(files, reverse=True)):
        total += bytes_
        if used < expired or count >= number or total > size:
            with suppress(OSError):  # it is gone, or read just now, or a folder
                os.unlink(path)
