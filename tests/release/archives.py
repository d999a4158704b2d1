"""The sdist and the wheel: without these checks one could lack a licence, or be made of more."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.servers.install import run

ROOT = Path(__file__).resolve().parents[2]
VENDORED = {"proxy/mcp_abridge/cli/page/uplot": ("uPlot.iife.min.js", "uPlot.min.css")}
"""Folders with others' code, and its files; each has LICENSE and sbom.cdx.json besides."""


def build(python: Path, folder: Path, *kinds: str) -> dict[str, Path]:
    """Return the archives by name, built from a copy of the tracked files of the working tree.

    Without `kinds` the wheel is built from the sdist, as pip does. Raises NotInstalled.
    """
    copy = folder / "tree"
    copy.mkdir(parents=True)
    for name in git("ls-files", "-z").rstrip("\0").split("\0"):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    env = {**os.environ, "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct").strip()}
    options = ["--no-isolation", "--outdir", str(folder / "dist"), *kinds]
    run([str(python), "-m", "build", *options, str(copy)], folder, env)
    return {path.name: path for path in (folder / "dist").iterdir()}


def git(*words: str) -> str:
    """Return the output of git, also of a search that finds nothing."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout


def differences(first: dict[str, Path], second: dict[str, Path]) -> Iterator[str]:
    """Yield what two builds do not have in common."""
    for name in sorted(first.keys() | second.keys()):
        if name not in first or name not in second:
            yield f"{name}: only one of two builds made it"
        elif first[name].read_bytes() != second[name].read_bytes():
            yield f"{name}: two builds differ; diffoscope names the file inside"


def omissions(wheel: Path) -> Iterator[str]:
    """Yield what a wheel lacks of licences, links and the SBOM of others' code (PEP 639, 770)."""
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist()}
    records = next(name.partition("/")[0] for name in inside if ".dist-info/" in name)
    for link in re.findall(r"\]\(((?!https?:|#)[^)]*)\)", inside[f"{records}/METADATA"].decode()):
        yield f"{wheel.name}: the link {link} of its README leads nowhere on PyPI"
    for licence in ("LICENSE", *(f"{folder}/LICENSE" for folder in VENDORED)):
        if inside.get(f"{records}/licenses/{licence}") != (ROOT / licence).read_bytes():
            yield f"{wheel.name}: {licence} is not among its licences; see license-files"
    boms = [text for name, text in inside.items() if name.startswith(f"{records}/sboms/")]
    stated = {
        each["name"]: each["hashes"][0]["content"]
        for text in boms
        for component in json.loads(text)["components"]
        for each in component["components"]
    }
    for folder, names in VENDORED.items():
        for name in names:
            total = hashlib.sha256(inside[f"{folder.removeprefix('proxy/')}/{name}"]).hexdigest()
            if stated.get(name) != total:
                yield f"{wheel.name}: {folder}/sbom.cdx.json has not the sum of {name}, {total}"
