"""Parts of tests that differ between platforms: what one lacks, and how it writes a path."""

import sys

import pytest


def on_posix(what: str) -> pytest.MarkDecorator:
    """Leave a test out on Windows, for something that is not there, as `make windows` tells."""
    return pytest.mark.skipif(sys.platform == "win32", reason=f"on Windows: {what}")


def with_slashes(text: object) -> str:
    """Return a text, or a path, with the separators of POSIX; a repr has two of Windows'."""
    if sys.platform != "win32":
        return str(text)
    return str(text).replace("\\\\", "/").replace("\\", "/")
