"""Installs the official conformance suite and the SDK's everything-server, each exactly pinned.

As a script, but for the environment of the git server, which `make servers` makes.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.servers import install as servers
from tests.servers.install import NotInstalled, Parts, install, node, npm_packages, run

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "conformance"
# Its environment has the SDK, at the pinned version, whose everything-server is started in it.
GIT = {"git": servers.PARTS["git"]}


def everything_server(pins: Path, folder: Path, env: Mapping[str, str]) -> None:
    """Unpack the everything-server of the SDK that is pinned, which only its sdist holds."""
    [sdk] = [pin for pin in pins.read_text().split() if pin.startswith("mcp==")]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    download = ["download", "--quiet", "--no-binary", "mcp", "--no-deps", "--dest", "."]
    run([*pip, *download, sdk], folder, env)
    [archive] = folder.glob("mcp-*.tar.gz")
    shutil.unpack_archive(archive, folder)


PARTS: Parts = {
    "suite": (HERE / "package.json", npm_packages),
    "source": (GIT["git"][0], everything_server),
}


def install_all(env: Mapping[str, str]) -> None:
    """Install what the suite takes, alone. Raises NotInstalled."""
    install(env, GIT)
    install(env, PARTS, CACHE)


def suite() -> list[str]:
    """Return the command of the suite. Raises NotInstalled if there is no Node."""
    package = CACHE / "suite" / "node_modules" / "@modelcontextprotocol" / "conformance"
    return [node(), str(package / "dist" / "index.js")]


def everything(port: int) -> list[str]:
    """Serve the everything-server over HTTP, at `/mcp` of this port of 127.0.0.1."""
    start = "from mcp_everything_server.server import main; main()"
    return [*in_python(start), "--port", str(port), "--log-level", "ERROR"]


def everything_on_stdio() -> list[str]:
    """Serve the same over stdio, for which its own command line has no option."""
    return in_python("from mcp_everything_server.server import mcp; mcp.run('stdio')")


def in_python(start: str) -> list[str]:
    [source] = (CACHE / "source").glob("mcp-*/examples/servers/everything-server")
    python = str(servers.CACHE / "git" / "bin" / "python")
    return ["env", f"PYTHONPATH={source}", python, "-W", "ignore", "-c", start]


if __name__ == "__main__":
    try:
        install(os.environ, PARTS, CACHE)
    except NotInstalled as problem:
        sys.exit(f"the conformance suite could not be installed: {problem}")
