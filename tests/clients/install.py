"""Installs the clients, each at its pinned version in a folder of its own below `.cache/clients`.

As a script, it installs those that are named. Another version is tried by changing its pin. What
they depend on is the newest that fits. npm hides releases that ask for a newer Node than it runs
on: look for the newest with the one from PyPI.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from mcp_abridge.transports.client import LOGIN

from tests.servers.install import NotInstalled, install_part, npm, only_one_at_a_time, run

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "clients"

# The first package of each is the client; a pin with `==` comes from PyPI, any other from npm.
PINS: dict[str, tuple[str, ...]] = {
    "claude-code": ("@anthropic-ai/claude-code@2.1.332",),
    "claude-agent-sdk": ("claude-agent-sdk==0.2.189",),
    "codex": ("@openai/codex@0.171.0",),
    "gemini-cli": ("@google/gemini-cli@0.61.0",),
    "qwen-code": ("@qwen-code/qwen-code@0.24.4",),
    "opencode": ("opencode-ai@1.18.33",),
    "copilot-cli": ("@github/copilot@1.0.102",),
    "cline": ("cline@3.0.65",),
    "continue": ("@continuedev/cli@1.5.47",),
    "kimi-code": ("@moonshot-ai/kimi-code@2.1.0",),
    "mistral-vibe": ("mistral-vibe==3.0.2",),
    "auggie": ("@augmentcode/auggie@0.36.0",),
    "qoder": ("@qoder-ai/qodercli@1.1.52",),
    "openai-agents": ("openai-agents==0.24.0",),
    "openai-agents-js": ("@openai/agents@0.20.0",),
    "langchain": (
        "langchain-mcp-adapters==0.3.2",
        "langchain==1.5.2",
        "langchain-openai==1.7.4",
    ),
    "langchain-js": (
        "@langchain/mcp-adapters@1.1.4",
        "langchain@1.5.14",
        "@langchain/openai@1.6.0",
    ),
    "pydantic-ai": ("pydantic-ai-slim[mcp,openai]==2.68.0",),
    "agno": ("agno[mcp,openai]==3.1.10",),
    "fastmcp": ("fastmcp==4.2.3",),
    "strands": ("strands-agents[openai]==1.62.0",),
    "google-adk": ("google-adk[mcp]==2.13.0",),
    "agent-framework": (
        "agent-framework-core==1.23.0",
        "agent-framework-openai==1.17.0",
        "mcp==2.3.0",
        "tenacity==9.2.1",
    ),
    "llama-index": ("llama-index-tools-mcp==0.6.0", "llama-index-llms-openai-like==0.8.1"),
    "crewai": ("crewai[mcp]==1.15.30",),
    "mcp-use": ("mcp-use==1.7.1", "langchain-openai==1.7.4"),
    "ai-sdk": ("ai@7.0.173", "@ai-sdk/mcp@2.0.99", "@ai-sdk/openai-compatible@3.0.92"),
    "inspector": ("@modelcontextprotocol/inspector@2.12.0",),
    "mcp-remote": (LOGIN[-1],),
}
NEWER_PYTHON = {"mistral-vibe"}
PYTHONS = ("python3.14", "python3.13", "python3.12")


def version(name: str) -> str:
    return PINS[name][0].rpartition("@" if is_npm(name) else "==")[2]


def is_npm(name: str) -> bool:
    return "==" not in PINS[name][0]


def install(name: str, env: Mapping[str, str]) -> Path:
    """Return the folder of a client, installed if it is not there. Raises NotInstalled."""
    CACHE.mkdir(parents=True, exist_ok=True)
    pins = CACHE / f"{name}.pins"
    if is_npm(name):
        packages = dict(pin.rpartition("@")[::2] for pin in PINS[name])
        pins.write_text(json.dumps({"private": True, "dependencies": packages}))
    else:
        pins.write_text("\n".join(PINS[name]))
    how = node_packages if is_npm(name) else python_packages
    try:
        with only_one_at_a_time(CACHE):
            install_part(CACHE / name, pins, how, env)
    except subprocess.TimeoutExpired as error:
        raise NotInstalled(f"the installer took over {error.timeout:.0f} s") from error
    return CACHE / name


def node_packages(pins: Path, folder: Path, env: Mapping[str, str]) -> None:
    """Install from npm with the packages' scripts, which some clients need for their binary."""
    shutil.copyfile(pins, folder / "package.json")
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    run([*npm(), "install", *quiet], folder, {"NODE_USE_SYSTEM_CA": "1", **env})


def python_packages(pins: Path, folder: Path, env: Mapping[str, str]) -> None:
    run([python_for(folder.name), "-m", "venv", "."], folder, env)
    pip = ["bin/python", "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--requirement", str(pins)], folder, env)


def python_for(name: str) -> str:
    if name not in NEWER_PYTHON or sys.version_info >= (3, 12):
        return sys.executable
    for command in filter(shutil.which, PYTHONS):
        if subprocess.run([command, "-c", ""], capture_output=True, check=False).returncode == 0:
            return command
    raise NotInstalled(f"{name} needs Python 3.12 or newer, and there is none on the PATH")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        install(name, os.environ)
