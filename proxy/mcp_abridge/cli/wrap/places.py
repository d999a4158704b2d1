"""The clients' configurations as data: without it, each would be code of its own.

A path has `{NAME:default}` for a variable that the client itself obeys, and `{CONFIG}` for the
folder of applications on this platform. A path that is relative belongs to a project: it is looked
for in the current folder and in those above it, up to the root of a repository.
"""

import os
import re
from collections.abc import Callable, Iterator
from glob import glob
from typing import Any, NamedTuple

from mcp_abridge.system import platform


class Place(NamedTuple):
    """One configuration of a client: the servers stand at `at` in the file `path`."""

    client: str
    scope: str
    path: str
    at: tuple[str, ...] = ("mcpServers",)


_CLAUDE = "{CLAUDE_CONFIG_DIR:~}/.claude.json"
_CODEX = ("mcp_servers",)
_ZED = ("context_servers",)
_STORE = "Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json"
_CLINE = "settings/cline_mcp_settings.json"

PLACES = (
    # code.claude.com/docs/en/mcp and /settings; 2.1.197 was seen to follow the variable.
    Place("claude-code", "user", _CLAUDE),
    Place("claude-code", "local", _CLAUDE, ("projects", "*", "mcpServers")),
    Place("claude-code", "project", ".mcp.json"),
    # modelcontextprotocol.io/docs/develop/connect-local-servers; on Linux, its unofficial builds.
    Place("claude-desktop", "user", "{CONFIG}/Claude/claude_desktop_config.json"),
    # That of the Microsoft Store, which sees its own folder in place of the one above.
    Place("claude-desktop", "user", "{LOCALAPPDATA}/" + _STORE),
    # developers.openai.com/codex/mcp; 0.169.0 was seen to follow the variable.
    Place("codex", "user", "{CODEX_HOME:~/.codex}/config.toml", _CODEX),
    Place("codex", "project", ".codex/config.toml", _CODEX),
    # @google/gemini-cli 0.61.0, docs/reference/configuration.md and homedir().
    Place("gemini-cli", "user", "{GEMINI_CLI_HOME:~}/.gemini/settings.json"),
    Place("gemini-cli", "project", ".gemini/settings.json"),
    # @qwen-code/qwen-code 0.15.10, its page of settings.
    Place("qwen-code", "user", "{QWEN_HOME:~/.qwen}/settings.json"),
    Place("qwen-code", "project", ".qwen/settings.json"),
    # cursor.com/docs/context/mcp
    Place("cursor", "user", "~/.cursor/mcp.json"),
    Place("cursor", "project", ".cursor/mcp.json"),
    # code.visualstudio.com/docs/agents/reference/mcp-configuration
    Place("vscode", "user", "{CONFIG}/Code/User/mcp.json", ("servers",)),
    Place("vscode", "user", "{CONFIG}/Code - Insiders/User/mcp.json", ("servers",)),
    Place("vscode", "project", ".vscode/mcp.json", ("servers",)),
    # `copilot mcp --help` of @github/copilot 1.0.102; it also reads .mcp.json, see above.
    Place("copilot-cli", "user", "{COPILOT_HOME:~/.copilot}/mcp-config.json"),
    Place("copilot-cli", "project", ".github/mcp.json"),
    # opencode-ai 1.18.33 and opencode.ai/docs/config; version 2 has `mcp.servers`.
    *(
        Place("opencode", scope, path, at)
        for scope, path in (
            ("user", "{XDG_CONFIG_HOME:~/.config}/opencode/opencode.json"),
            ("user", "{XDG_CONFIG_HOME:~/.config}/opencode/opencode.jsonc"),
            ("user", "{OPENCODE_CONFIG:}"),
            ("project", "opencode.json"),
            ("project", "opencode.jsonc"),
            ("project", ".opencode/opencode.json"),
            ("project", ".opencode/opencode.jsonc"),
        )
        for at in (("mcp",), ("mcp", "servers"))
    ),
    # cline 3.0.65 writes the first; docs.cline.bot/mcp has that of the extension.
    Place("cline", "user", "{CLINE_DIR:~/.cline}/data/" + _CLINE),
    Place("cline", "user", "{CONFIG}/Code/User/globalStorage/saoudrizwan.claude-dev/" + _CLINE),
    # docs.windsurf.com/windsurf/cascade/mcp
    Place("windsurf", "user", "~/.codeium/windsurf/mcp_config.json"),
    # zed.dev/docs/ai/mcp and zed.dev/docs/configuring-zed
    Place("zed", "user", "{XDG_CONFIG_HOME:~/.config}/zed/settings.json", _ZED),
    Place("zed", "user", "{APPDATA}/Zed/settings.json", _ZED),
    Place("zed", "project", ".zed/settings.json", _ZED),
)

CLIENTS = tuple(dict.fromkeys(place.client for place in PLACES))


class Dialect(NamedTuple):
    """How a client spells the members of a server; those of most clients are the defaults."""

    env: str = "env"
    local: str = "stdio"
    """The `type` of a server with a command, if the entry has a type."""
    add: str = ""
    """The start of the line that adds a server; `--` and the command follow."""
    says: str = ""
    """Its name in `clientInfo`, if that is another one."""


DIALECTS = {
    "claude-code": Dialect(add="claude mcp add {} --"),
    "claude-desktop": Dialect(says="claude-ai"),
    "codex": Dialect(add="codex mcp add {} --"),
    # `gemini mcp add` removes the first --, which the wrapper does not need.
    "gemini-cli": Dialect(add="gemini mcp add {}"),
    "qwen-code": Dialect(add="qwen mcp add {}", says="qwen-cli-mcp-client"),
    "vscode": Dialect(says="Visual Studio Code"),
    "copilot-cli": Dialect(local="local", add="copilot mcp add {} --"),
    "opencode": Dialect(env="environment", local="local", add="opencode mcp add {} --"),
    "cline": Dialect(add="cline mcp add {} --yes --", says="@cline/core"),
}


def _group(matcher: str, command: str) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command}]}


def _of_copilot(matcher: str, command: str) -> dict[str, Any]:
    shells = {"bash": command, "powershell": f"& {command}"}
    return {"type": "command", "matcher": matcher, **shells}


def _of_vibe(matcher: str, command: str) -> dict[str, Any]:
    return {"name": "mcp-abridge", "type": "post_tool", "match": matcher, "command": command}


class HookFile(NamedTuple):
    """Where a client reads its hooks: an `entry` among those at `event` has tools and a command."""

    path: str
    event: tuple[str, ...]
    matcher: str
    """The tools of servers."""
    entry: Callable[[str, str], dict[str, Any]] = _group
    empty: bytes = b"{ }\n"
    """A file that `wrap` makes, but for the hook; the space tells it from a user's own."""
    note: str = ""


_COPILOT_HOOKS = "{COPILOT_HOME:~/.copilot}/hooks/mcp-abridge.json"
_USE = ("hooks", "PostToolUse")

HOOKS = {
    "claude-code": HookFile("{CLAUDE_CONFIG_DIR:~/.claude}/settings.json", _USE, "mcp__.*"),
    "codex": HookFile(
        "{CODEX_HOME:~/.codex}/hooks.json", _USE, "mcp__.*", note="; trust it in Codex by /hooks"
    ),
    "copilot-cli": HookFile(
        _COPILOT_HOOKS, ("hooks", "postToolUse"), ".+-.+", _of_copilot, b'{"version": 1 }\n'
    ),
    "gemini-cli": HookFile(
        "{GEMINI_CLI_HOME:~}/.gemini/settings.json", ("hooks", "AfterTool"), "mcp_.*"
    ),
    "mistral-vibe": HookFile(
        "{VIBE_HOME:~/.vibe}/hooks.toml",
        ("hooks",),
        "re:(mcp|connector)_.*",
        _of_vibe,
        b"# Hooks\n",
    ),
}


def hook_path(client: str) -> str:
    """Return the real path of a client's hooks, which may not be there yet."""
    return os.path.realpath(_candidates(HOOKS[client].path)[0])


def dialect(client: str) -> Dialect:
    """Return the spellings of a client."""
    return DIALECTS.get(client, Dialect())


def files(client: str | None) -> Iterator[tuple[Place, str]]:
    """Yield each configuration that exists, of one client or all, with its real path, once."""
    places = set()
    for place in PLACES:
        if client in (None, place.client):
            for path in _candidates(place.path):
                path = os.path.realpath(path)
                if os.path.isfile(path) and (path, place.at) not in places:
                    places.add((path, place.at))
                    yield place, path


def place_of(path: str) -> Place:
    """Return a place for a file outside of the current folder and of the user's own files."""
    for place in PLACES:
        tail = "/" + place.path.rpartition("}")[2].lstrip("~/")
        if len(tail) > 1 and path.replace(os.sep, "/").endswith(tail):
            return place._replace(scope=f"in {path[: -len(tail)]}")
    return Place("another client", f"in {path}", path)


def _candidates(pattern: str) -> list[str]:
    path = os.path.expanduser(re.sub(r"\{(\w+):?([^}]*)\}", _variable, pattern))
    if "*" in path:
        return glob(path)
    if os.path.isabs(path) or not path:
        return [path] if path else []
    return [os.path.join(folder, path) for folder in _project_folders()]


def _variable(match: re.Match[str]) -> str:
    if match[1] == "CONFIG":
        return platform.config_folder()
    return os.environ.get(match[1]) or match[2]


def _project_folders() -> Iterator[str]:
    folder, home = os.getcwd(), os.path.expanduser("~")
    while True:
        yield folder
        above = os.path.dirname(folder)
        if os.path.exists(os.path.join(folder, ".git")) or above in (folder, home):
            return
        folder = above
