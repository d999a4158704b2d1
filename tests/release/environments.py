"""Empty environments: what works in the checkout alone would fail for each user."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.servers.install import NotInstalled, run


def environment(uv: Path, version: str, folder: Path) -> Path | None:
    """Return the Python of a new environment; None if that version can be had nowhere."""
    command = [str(uv), "venv", "--quiet", "--clear", "--python", version, str(folder)]
    env = {**os.environ, "UV_HTTP_RETRIES": "0"}
    completed = subprocess.run(command, env=env, capture_output=True, check=False)
    return None if completed.returncode else folder / "bin" / "python"


def faults(uv: Path, python: Path, archive: Path, version: str) -> Iterator[str]:
    """Install an archive, and yield what does not work then."""
    command = [str(uv), "pip", "install", "--quiet", "--python", str(python), str(archive)]
    try:
        run(command, archive.parent, os.environ)
    except NotInstalled as problem:
        yield f"{archive.name} cannot be installed: {problem}"
        return
    with tempfile.TemporaryDirectory() as home:
        for word, expected in (("--version", f"mcp-abridge {version}\n"), ("demo", "rules.yaml")):
            ran = subprocess.run(
                [str(python.with_name("mcp-abridge")), word],
                cwd=home,
                env={"PATH": os.defpath, "HOME": home},
                capture_output=True,
                text=True,
                check=False,
            )
            if ran.returncode or expected not in ran.stdout:
                output = (ran.stdout + ran.stderr)[-2000:]
                yield f"{archive.name}: mcp-abridge {word}: exit code {ran.returncode}\n{output}"


def write_sbom(tools: Path, python: Path, project: Path, to: Path) -> None:
    """Write what an environment holds, as CycloneDX. Raises NotInstalled."""
    for record in python.parents[1].glob("lib/*/site-packages/*/direct_url.json"):
        record.unlink()  # the archive's path on this machine
    program = str(tools / "bin" / "cyclonedx-py")
    options = ["--pyproject", str(project), "--output-reproducible", "--output-file", str(to)]
    run([program, "environment", "--validate", *options, str(python)], to.parent, os.environ)
