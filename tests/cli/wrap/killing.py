"""Kills runs of a verb at one file operation after the other, and looks at what is left.

`python -m tests.cli.wrap.killing VERB STEP FOLDER` does so at each STEPth operation, and prints the
number of runs that were killed, and what was wrong.
"""

import os
import shutil
import signal
import stat
import sys
from itertools import count
from pathlib import Path
from typing import Any

import mcp  # noqa: F401 (each run would import these anew, and open their files)
from mcp_abridge.cli import doctor, main, unwrap, wrap  # noqa: F401
from mcp_abridge.ruleset.loading import config_model  # noqa: F401

from tests.cli.wrap.samples import SAMPLES

SECRETS = ("s3cr3t", "a-long-secret", "$KEYKEY")
FILES = {
    name: SAMPLES[name]
    for name in (".codex/config.toml", ".cursor/mcp.json", ".gemini/settings.json")
}
MODULES = {"posix", "_io", "io", "fcntl", "builtins"}
OPERATIONS = {
    *("open", "write", "flush", "close", "fsync", "replace", "rename", "unlink", "mkdir", "rmdir"),
    *("chmod", "chown", "utime", "flock", "setxattr", "truncate"),
}
AFTER = {"list": ["wrap"], "doctor": ["doctor", "--", "true"], "unwrap": ["unwrap", "--all"]}


def kill_at(number: int) -> None:
    """Have this process killed before or after the file operation of this number."""
    operations = 0

    def look(_: object, event: str, function: Any) -> None:
        nonlocal operations
        if event in ("c_call", "c_return") and function.__name__ in OPERATIONS:
            owner = getattr(function, "__self__", None)
            module = getattr(function, "__module__", None) or type(owner).__module__
            if module in MODULES:
                operations += 1
                if operations == number:
                    os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(look)


def run(home: Path, words: list[str], number: int = 0) -> bool:
    """Run a command line in a process of its own; return True if it was killed."""
    if child := os.fork():
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    os.environ |= {"HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    os.chdir(home / "project")
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(quiet, descriptor)
    if number:
        kill_at(number)
    try:
        main(words)
    finally:
        os._exit(0)


def others_can_read(path: Path, home: Path) -> bool:
    folders = [folder for folder in path.parents if home in folder.parents]
    private = any(not stat.S_IMODE(folder.stat().st_mode) & 0o077 for folder in folders)
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077) and not private


def copies(home: Path) -> list[Path]:
    """Return the files with secrets that are no configurations of clients."""
    own = {home / name for name in FILES}
    return [
        path
        for path in home.rglob("*")
        if path.is_file() and path not in own
        if any(secret.encode() in path.read_bytes() for secret in SECRETS)
    ]


def look_at(home: Path, wrapped: dict[str, str], after: str) -> str | None:
    """Return the first problem after a run was killed, and after another run; None without one."""
    texts = {name: (home / name).read_bytes().decode() for name in FILES}
    if any(texts[name] not in (FILES[name], wrapped[name]) for name in FILES):
        return f"a file is broken: {texts}"
    if readable := [path for path in copies(home) if others_can_read(path, home)]:
        return f"others can read {readable}"
    run(home, AFTER[after])
    if beside := list(home.rglob("*.mcp-abridge-*")):
        return f"after {after}, {beside} are left"
    if new := list((home / "state").rglob("*.new")):
        return f"after {after}, {new} are left"
    has_wrapped = after != "unwrap" and any(texts[name] == wrapped[name] for name in FILES)
    if not has_wrapped and (rest := copies(home)):
        return f"after {after}, {rest} have secrets"
    run(home, AFTER["unwrap"])
    if {name: (home / name).read_bytes().decode() for name in FILES} != FILES:
        return "an original is lost"
    if rest := copies(home):
        return f"after all was restored, {rest} have secrets"
    return None


def new_home(folder: Path, name: str, *, wrapped: bool) -> Path:
    home = folder / name
    (home / "project" / ".git").mkdir(parents=True)
    for file, text in FILES.items():
        (home / file).parent.mkdir(exist_ok=True)
        (home / file).write_bytes(text.encode())
        (home / file).chmod(0o644)
    if wrapped:
        run(home, ["wrap", "--all"])
    return home


def kill_each(verb: str, step: int, folder: Path) -> tuple[int, list[str]]:
    """Return how many runs of a verb were killed, and what was wrong with some."""
    # The home is the same each time, since it stands in the files that are written.
    home = new_home(folder, "home", wrapped=True)
    texts = {name: (home / name).read_bytes().decode() for name in FILES}
    wrong: list[str] = []
    for at in count():
        shutil.rmtree(home)
        new_home(folder, "home", wrapped=verb == "unwrap")
        if not run(home, [verb, "--all"], 1 + at * step):
            return at, wrong
        after = list(AFTER)[at % len(AFTER)]
        if problem := look_at(home, texts, after):
            wrong.append(f"{verb}, operation {1 + at * step}: {problem}")
    raise AssertionError


if __name__ == "__main__":
    verb, step, folder = sys.argv[1:]
    program = Path(folder, "bin", "mcp-abridge")
    program.parent.mkdir()
    program.touch()
    sys.argv = [str(program)]
    runs, wrong = kill_each(verb, int(step), Path(folder))
    print(runs, *wrong, sep="\n")
