"""This program in another process: `-m` would run what the current folder has of its name."""

import os
import sys


def own_python(code: str, *words: str) -> list[str]:
    """Return the command of a Python that runs `code`, and imports from where this one does.

    `words` are its arguments.
    """
    folders = [folder or os.getcwd() for folder in sys.path]
    # An option, not a variable, which a server that is started by it would inherit.
    return [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {folders!a}\n{code}", *words]


def own_command(*words: str) -> list[str]:
    """Return the command that runs a command line of this program."""
    return own_python("from mcp_abridge.cli import main; sys.exit(main())", *words)
