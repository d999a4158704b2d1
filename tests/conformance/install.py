"""Installs the official conformance suite and the SDK's everything-server, each exactly pinned."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.servers.install import (
    NotInstalled,
    Parts,
    install,
    node,
    npm_packages,
    python_packages,
    run,
)

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "conformance"


def everything_server(pins: Path, folder: Path, env: Mapping[str, str]) -> None:
    """Make an environment with the SDK and its everything-server, which only the sdist holds."""
    python_packages(pins, folder, env)
    [sdk] = [pin for pin in pins.read_text().split() if pin.startswith("mcp==")]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", "bin/python"]
    download = ["download", "--quiet", "--no-binary", "mcp", "--no-deps", "--dest", "."]
    run([*pip, *download, sdk], folder, env)
    [archive] = folder.glob("mcp-*.tar.gz")
    inside = f"{archive.as_uri()}#subdirectory=examples/servers/everything-server"
    server = f"mcp-everything-server @ {inside}"
    run([*pip, "install", "--quiet", "--no-deps", server], folder, env)


PARTS: Parts = {
    "suite": (HERE / "package.json", npm_packages),
    "everything": (HERE / "requirements.txt", everything_server),
}


def suite() -> list[str]:
    """Return the command of the suite. Raises NotInstalled if there is no Node."""
    package = CACHE / "suite" / "node_modules" / "@modelcontextprotocol" / "conformance"
    return [node(), str(package / "dist" / "index.js")]


def everything(port: int) -> list[str]:
    """Serve the everything-server over HTTP, at `/mcp` of this port of 127.0.0.1."""
    program = str(CACHE / "everything" / "bin" / "mcp-everything-server")
    return [program, "--port", str(port), "--log-level", "ERROR"]


def everything_on_stdio() -> list[str]:
    """Serve the same over stdio, for which its own command line has no option."""
    start = "from mcp_everything_server.server import mcp; mcp.run('stdio')"
    return [str(CACHE / "everything" / "bin" / "python"), "-W", "ignore", "-c", start]


if __name__ == "__main__":
    try:
        install(os.environ, PARTS, CACHE)
    except NotInstalled as problem:
        sys.exit(f"the conformance suite could not be installed: {problem}")
