"""`make release-check`: builds what would be released, tries it, and names what is left to do.

Ends with 1 if something is wrong; with --final, also while a blank is not filled in.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.release import environments
from tests.release.archives import ROOT, build, differences, omissions
from tests.release.blanks import blanks
from tests.servers.install import NotInstalled, Parts, install, python_packages, show

HERE = Path(__file__).resolve().parent
CACHE = ROOT / ".cache" / "release"
DIST = ROOT / "dist"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PARTS: Parts = {
    "tools": (HERE / "requirements.txt", python_packages),
    "sbom": (HERE / "requirements-sbom.txt", python_packages),
}
MANIFESTS = ("tests/test_packaging.py", "tests/test_manifests.py", "tests/test_image.py")


def faults(folder: Path) -> Iterator[str]:
    """Build in this folder, fill `dist`, and yield what is wrong."""
    show("the manifests agree with pyproject.toml and with each other:")
    if subprocess.run([sys.executable, "-m", "pytest", "-q", *MANIFESTS], cwd=ROOT).returncode:
        yield f"{', '.join(MANIFESTS)}: see above"
    show("two builds are alike, one with the wheel from the sdist, one with it from the tree")
    python, uv = (CACHE / "tools" / "bin" / name for name in ("python", "uv"))
    archives = build(python, folder / "first")
    yield from differences(archives, build(python, folder / "elsewhere", "--sdist", "--wheel"))
    shutil.rmtree(DIST, ignore_errors=True)
    [wheel, sdist] = (copied(archives, suffix) for suffix in (".whl", ".tar.gz"))
    yield from omissions(wheel)
    bom = DIST / f"{PROJECT['name']}-{PROJECT['version']}.cdx.json"
    for version in versions():
        place = folder / version
        if not (own := environments.environment(uv, version, place)):
            show(f"Python {version}: NOT SEEN, neither on the PATH nor to be fetched")
            continue
        for archive in (wheel, sdist):
            show(f"Python {version}: {archive.name} in an empty environment")
            yield from environments.faults(uv, own, archive, PROJECT["version"])
            if not bom.exists():
                environments.write_sbom(CACHE / "sbom", own, ROOT / "pyproject.toml", bom)
            environments.environment(uv, version, place)
    if not bom.exists():
        yield "no environment could be made, so that no SBOM was written"


def copied(archives: dict[str, Path], suffix: str) -> Path:
    [path] = (path for name, path in archives.items() if name.endswith(suffix))
    DIST.mkdir(exist_ok=True)
    return Path(shutil.copy(path, DIST))


def versions() -> list[str]:
    """Return the versions of Python that are supported."""
    prefix = "Programming Language :: Python :: 3."
    return [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if each.startswith(prefix)]


def main() -> int:
    install(os.environ, PARTS, CACHE)
    with tempfile.TemporaryDirectory() as folder:
        wrong = list(faults(Path(folder)))
    for path in sorted(DIST.iterdir()):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  dist/{path.name}")
    print(*(f"wrong: {each}" for each in wrong), sep="\n", end="\n" * bool(wrong))
    missing = list(blanks())
    print(*(f"to fill in: {each}" for each in missing), sep="\n", end="\n" * bool(missing))
    print(f"{len(wrong)} mistakes, {len(missing)} blanks")
    return 1 if wrong or (missing and "--final" in sys.argv) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NotInstalled as problem:
        sys.exit(f"the release could not be built: {problem}")
