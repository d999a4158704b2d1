"""The rule files in cases/: good ones, and bad ones that say in their first lines what is wrong."""

from pathlib import Path

from mcp_abridge.transforms import TRANSFORMS

_CASES = Path(__file__).parent / "cases"
BAD = sorted((_CASES / "bad").glob("*.yaml"))
GOOD = sorted((_CASES / "good").glob("*.yaml"))
PYTHON = _CASES / "python"
"""Holds rule files that name the Python beside them, and load only where that is allowed."""


def expected(path: Path) -> list[str]:
    """Return the problems that a bad file announces, each as `line:column: message`."""
    names = ", ".join(TRANSFORMS)
    return [line.replace("{transforms}", names) for line in _header(path, "expect")]


def editor(path: Path) -> str:
    """Return the verdict of the schema for editors on a file: `refuses`, `accepts` or no YAML."""
    (word,) = _header(path, "editor")
    return word


def _header(path: Path, word: str) -> list[str]:
    start = f"# {word}: "
    lines = path.read_text().splitlines()
    return [line.removeprefix(start) for line in lines if line.startswith(start)]
