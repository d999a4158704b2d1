"""Parts of tests that differ between platforms: what one lacks, and how it writes a path."""

import re
import sys

import pytest
from mcp_abridge.system import platform


def on_posix(what: str) -> pytest.MarkDecorator:
    """Leave a test out on Windows, for something that is not there, as `make windows` tells."""
    return pytest.mark.skipif(sys.platform == "win32", reason=f"on Windows: {what}")


def with_slashes(text: object) -> str:
    """Return a text, or a path, with the separators of POSIX; a repr has two of Windows'."""
    if sys.platform != "win32":
        return str(text)
    return str(text).replace("\\\\", "/").replace("\\", "/")


def error_texts(posix: str, *numbers: int) -> str:
    """Return a pattern of the system's text for an error, which has several numbers on Windows."""
    if sys.platform != "win32":
        return re.escape(posix)
    errors = (OSError(0, "", None, number) for number in numbers)
    return "|".join(re.escape(platform.error_text(error).lower()) for error in errors)


REFUSED = error_texts("connection refused", 1225, 10061)
RESET = error_texts("connection reset by peer", 64, 1236, 10053, 10054)
