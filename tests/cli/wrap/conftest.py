"""A home folder with configurations of clients, and an installed `mcp-abridge` outside of it."""

import os
import re
import sys
from pathlib import Path

import pytest
from mcp_abridge.cli.wrap.places import PLACES

from tests.wrapped import START

PROGRAM = "mcp-abridge.exe" if sys.platform == "win32" else "mcp-abridge"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home folder, with an installed `mcp-abridge` outside of it."""
    for variable in set(re.findall(r"\{(\w+):", " ".join(place.path for place in PLACES))):
        monkeypatch.delenv(variable, raising=False)
    home = tmp_path / "home"
    (home / "project" / ".git").mkdir(parents=True)
    program = tmp_path / "bin" / PROGRAM
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{START}")
    program.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(program)])
    if sys.platform == "win32":
        monkeypatch.setenv("USERPROFILE", str(home))
        monkeypatch.setenv("APPDATA", str(home / ".config"))
        monkeypatch.delenv("LOCALAPPDATA", raising=False)
    else:
        monkeypatch.setattr("sys.platform", "linux")
        monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(home / "project")
    return home


def write(home: Path, name: str, text: str) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    os.utime(path, (0, 0))  # no client is writing it
    return path


def state_folder() -> Path:
    return Path(os.environ["XDG_STATE_HOME"], "mcp-abridge", "wrap")


def program(home: Path) -> str:
    return str(home.parent / "bin" / PROGRAM)
