"""The clients' configurations as data: without it, each would be code of its own.

A path has `{NAME:default}` for a variable that the client itself obeys, and `{CONFIG}` for the
folder of applications on this platform; `(c)` is there or not. A path that is relative belongs to a
project: it is looked for in the current folder and in those above it, up to the root of a
repository.
"""

import os
import re
from collections.abc import Callable, Iterator
from glob import glob
from typing import Any, NamedTuple

from mcp_abridge.system import platform

_USUAL = ("mcpServers",)


class Place(NamedTuple):
    """One configuration of a client: the servers stand at `at` in the file `path`."""

    client: str
    scope: str
    path: str
    at: tuple[str, ...] = _USUAL


def _both(client: str, user: str, project: str, at: tuple[str, ...] = _USUAL) -> tuple[Place, ...]:
    return Place(client, "user", user, at), Place(client, "project", project, at)


_CLAUDE = "{CLAUDE_CONFIG_DIR:~}/.claude.json"
_CODEX = ("mcp_servers",)
_ZED = ("context_servers",)
_STORE = "Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json"
_CLINE = "settings/cline_mcp_settings.json"
_XDG = "{XDG_CONFIG_HOME:~/.config}"

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
    *_both("codex", "{CODEX_HOME:~/.codex}/config.toml", ".codex/config.toml", _CODEX),
    # @google/gemini-cli 0.61.0, docs/reference/configuration.md and homedir().
    *_both("gemini-cli", "{GEMINI_CLI_HOME:~}/.gemini/settings.json", ".gemini/settings.json"),
    # @qwen-code/qwen-code 0.15.10, its page of settings.
    *_both("qwen-code", "{QWEN_HOME:~/.qwen}/settings.json", ".qwen/settings.json"),
    # cursor.com/docs/context/mcp
    *_both("cursor", "~/.cursor/mcp.json", ".cursor/mcp.json"),
    # code.visualstudio.com/docs/agents/reference/mcp-configuration
    Place("vscode", "user", "{CONFIG}/Code/User/mcp.json", ("servers",)),
    Place("vscode", "user", "{CONFIG}/Code - Insiders/User/mcp.json", ("servers",)),
    Place("vscode", "project", ".vscode/mcp.json", ("servers",)),
    # `copilot mcp --help` of @github/copilot 1.0.102; it also reads .mcp.json, see above.
    *_both("copilot-cli", "{COPILOT_HOME:~/.copilot}/mcp-config.json", ".github/mcp.json"),
    # opencode-ai 1.18.33 and opencode.ai/docs/config; version 2 has `mcp.servers`.
    *(
        Place("opencode", scope, path, at)
        for scope, path in (
            ("user", f"{_XDG}/opencode/opencode.json(c)"),
            ("user", "{OPENCODE_CONFIG:}"),
            ("project", "opencode.json(c)"),
            ("project", ".opencode/opencode.json(c)"),
        )
        for at in (("mcp",), ("mcp", "servers"))
    ),
    # cline 3.0.65 writes the first; docs.cline.bot/mcp has that of the extension.
    Place("cline", "user", "{CLINE_DIR:~/.cline}/data/" + _CLINE),
    Place("cline", "user", "{CONFIG}/Code/User/globalStorage/saoudrizwan.claude-dev/" + _CLINE),
    # docs.windsurf.com/windsurf/cascade/mcp
    Place("windsurf", "user", "~/.codeium/windsurf/mcp_config.json"),
    # zed.dev/docs/ai/mcp and zed.dev/docs/configuring-zed
    Place("zed", "user", f"{_XDG}/zed/settings.json", _ZED),
    *_both("zed", "{APPDATA}/Zed/settings.json", ".zed/settings.json", _ZED),
    # @moonshot-ai/kimi-code 2.1.0, its main.mjs; it also reads .mcp.json, see above.
    *_both("kimi-code", "{KIMI_CODE_HOME:~/.kimi-code}/mcp.json", ".kimi-code/mcp.json"),
    # `vibe mcp add` of mistral-vibe 3.0.2; a list of tables with names.
    *_both("mistral-vibe", "{VIBE_HOME:~/.vibe}/config.toml", ".vibe/config.toml", _CODEX),
    # `auggie mcp add` of @augmentcode/auggie 0.36.0, with --project and --local.
    Place("auggie", "user", "~/.augment/settings.json"),
    Place("auggie", "local", ".augment/settings.local.json"),
    Place("auggie", "project", ".augment/settings.json"),
    # `cn` of @continuedev/cli 1.5.47, and docs.continue.dev/customize/deep-dives/mcp
    Place("continue", "user", "~/.continue/config.yaml"),
    *(Place("continue", "project", f".continue/mcpServers/*.{end}") for end in ("yaml", "json")),
    # `qodercli mcp add` of @qoder-ai/qodercli 1.1.52; a project's file is .mcp.json, see above.
    Place("qoder", "user", "~/.qoder/settings.json"),
    Place("qoder", "local", ".qoder/settings.local.json"),
    # The programs below were not run; the places are those of their documentation.
    # raw.githubusercontent.com/Kilo-Org/kilocode/main/packages/kilo-docs, using-in-kilo-code.md
    *_both("kilo", f"{_XDG}/kilo/kilo.json(c)", "kilo.json(c)", ("mcp",)),
    Place("kilo", "project", ".kilo/kilo.json(c)", ("mcp",)),
    # block.github.io/goose/docs/guides/config-files
    Place("goose", "user", f"{_XDG}/goose/config.yaml", ("extensions",)),
    Place("goose", "user", "{APPDATA}/Block/goose/config/config.yaml", ("extensions",)),
    # ampcode.com/manual; the name has a dot in it.
    *_both("amp", "~/.config/amp/settings.json", ".amp/settings.json", ("amp.mcpServers",)),
    # docs.factory.ai/cli/configuration/mcp
    *_both("droid", "~/.factory/mcp.json", ".factory/mcp.json"),
    # github.com/charmbracelet/crush, README.md
    Place("crush", "user", f"{_XDG}/crush/crush.json", ("mcp",)),
    Place("crush", "user", "{LOCALAPPDATA}/crush/crush.json", ("mcp",)),
    *(Place("crush", "project", path, ("mcp",)) for path in ("crush.json", ".crush.json")),
    # junie.jetbrains.com/docs/junie-cli-mcp-configuration.html
    *_both("junie", "~/.junie/mcp/mcp.json", ".junie/mcp/mcp.json"),
    # kiro.dev/docs/mcp/configuration
    *_both("kiro", "~/.kiro/settings/mcp.json", ".kiro/settings/mcp.json"),
    # lmstudio.ai/docs/app/plugins/mcp
    Place("lm-studio", "user", "~/.lmstudio/mcp.json"),
    # docs.warp.dev/knowledge-and-collaboration/mcp
    *_both("warp", "~/.warp/.mcp.json", ".warp/.mcp.json"),
    # antigravity.google/docs/mcp; the second is that of earlier versions.
    Place("antigravity", "user", "~/.gemini/config/mcp_config.json"),
    Place("antigravity", "user", "~/.gemini/antigravity/mcp_config.json"),
    Place("antigravity", "project", ".agents/mcp_config.json"),
    # docs.trae.ai/ide/add-mcp-servers
    Place("trae", "project", ".trae/mcp.json"),
    # docs.x.ai/build/features/mcp-servers
    *_both("grok-build", "~/.grok/config.toml", ".grok/config.toml", _CODEX),
    # codebuddy.ai/docs/cli/mcp; a project's file is .mcp.json, see above.
    Place("codebuddy", "user", "~/.codebuddy/.mcp.json"),
)

CLIENTS = tuple(dict.fromkeys(place.client for place in PLACES))


class Dialect(NamedTuple):
    """How a client spells the members of a server; those of most clients are the defaults."""

    command: str = "command"
    env: str = "env"
    local: str = "stdio"
    """The `type` of a server with a command, if the entry has a type."""
    one_array: bool = False
    """True if one array has the command and its arguments."""
    splits: bool = False
    """True if a command that is a text is split into words as in a shell; an array is not."""
    add: str = ""
    """The start of the line that adds a server; `--` and the command follow."""
    says: str = ""
    """Its name in `clientInfo`, if that is another one."""

    def program(self, path: str) -> str | list[str]:
        return [path] if self.splits and " " in path else path


DIALECTS = {
    "claude-code": Dialect(add="claude mcp add {} --"),
    "claude-desktop": Dialect(says="claude-ai"),
    "codex": Dialect(add="codex mcp add {} --"),
    # `gemini mcp add` removes the first --, which the wrapper does not need.
    "gemini-cli": Dialect(add="gemini mcp add {}"),
    "qwen-code": Dialect(add="qwen mcp add {}", says="qwen-cli-mcp-client"),
    "vscode": Dialect(says="Visual Studio Code"),
    "copilot-cli": Dialect(local="local", add="copilot mcp add {} --"),
    "opencode": Dialect(
        env="environment", local="local", one_array=True, add="opencode mcp add {} --"
    ),
    "cline": Dialect(add="cline mcp add {} --yes --", says="@cline/core"),
    "mistral-vibe": Dialect(splits=True, says="mcp"),
    "continue": Dialect(says="continue-cli-client"),
    "qoder": Dialect(add="qodercli mcp add {} --"),
    "kilo": Dialect(env="environment", local="local", one_array=True),
    "goose": Dialect(command="cmd", env="envs"),
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
            for path in map(os.path.realpath, _candidates(place.path)):
                if os.path.isfile(path) and (path, place.at) not in places:
                    places.add((path, place.at))
                    yield place, path


def _candidates(pattern: str) -> list[str]:
    if "(c)" in pattern:
        return [path for end in ("", "c") for path in _candidates(pattern.replace("(c)", end))]
    path = os.path.expanduser(re.sub(r"\{(\w+):?([^}]*)\}", _variable, pattern))
    if os.path.isabs(path) or not path:
        return glob(path) if "*" in path else [path] if path else []
    return [
        os.path.join(folder, name)
        for folder in _project_folders()
        for name in (sorted(glob(path, root_dir=folder)) if "*" in path else [path])
    ]


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
