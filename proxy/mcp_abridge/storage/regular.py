"""Files that others may have put there: a FIFO would hang the reader, a link lead it elsewhere."""

import os
import stat
from typing import BinaryIO


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """Open a file for reading, without waiting for a writer.

    Raises OSError, also if it is no regular file, or a link while `follow` is false (only the last
    part of the path counts).
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "is no regular file", os.fspath(path))
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
