"""Tells accounts apart: without it, one would read what a wrapped server told another.

Whatever leaves the process is hashed with a secret, so that no token can be guessed from a name.
"""

import os
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress

from mcp_abridge.system import platform

# Variables of the place and the time of a process: each session of one client has others.
_OF_THE_SESSION = {
    *("_", "PWD", "OLDPWD", "SHLVL", "TMPDIR", "INVOCATION_ID", "JOURNAL_STREAM", "TRACEPARENT"),
    *("TERM", "COLORTERM", "COLUMNS", "LINES", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "WINDOWID"),
    *("TERM_SESSION_ID", "TMUX", "TMUX_PANE", "STY", "GPG_TTY", "SSH_TTY", "SSH_CLIENT"),
    *("SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY", "XDG_SESSION_ID", "DBUS_SESSION_BUS_ADDRESS"),
    *("CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "WT_SESSION"),
}
SECRET = "secret"
"""The file with the secret of a store."""
_SECRET_BYTES = 32


def place(upstream: str | Sequence[str]) -> str:
    """Return a text that is the same for each process before the same URL, or command in a folder.

    It may hold secrets.
    """
    folder = ""
    with suppress(OSError):  # it may have been deleted
        folder = os.getcwd()
    return upstream if isinstance(upstream, str) else repr((tuple(upstream), folder))


def account(environ: Mapping[str, str], own: Set[str] = frozenset()) -> dict[str, str]:
    """Return the variables that may tell accounts apart; `own` are further ones that do not.

    >>> account({"TOKEN": "x", "PWD": "/tmp"})
    {'TOKEN': 'x'}
    """
    return {name: environ[name] for name in sorted(environ.keys() - _OF_THE_SESSION - own)}


def secret(path: str) -> str:
    """Return the secret in a file, which is written at its first use. Raises OSError."""
    descriptor = platform.open_at_once(path, os.O_RDWR | os.O_CREAT, follow=False)
    try:
        platform.lock(descriptor)
        raw = os.read(descriptor, _SECRET_BYTES)
        if len(raw) < _SECRET_BYTES:  # new, or its writer was killed before anybody used it
            raw = os.urandom(_SECRET_BYTES)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, raw)
    finally:
        os.close(descriptor)
    return raw.hex()
