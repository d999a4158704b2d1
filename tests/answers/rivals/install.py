"""Installs the other products, each into an environment of its own, when an arm first needs it."""

import fcntl
import os
from pathlib import Path

from tests.servers.install import install_part, python_packages

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[2] / ".cache" / "answers"


def program(package: str, name: str) -> str:
    """Return the path of a package's command, and install the package if it is not there.

    Raises NotInstalled with the failed command and the end of its output.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = CACHE / package
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install_part(folder, HERE / f"requirements-{package}.txt", python_packages, os.environ)
    return str(folder / "bin" / name)


def home(package: str) -> Path:
    """Return a folder for what a product writes into the user's home."""
    folder = CACHE / f"{package}-home"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
