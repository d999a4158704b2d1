"""The clients: how each is configured and started, and how a user wraps a server in it."""

import contextlib
import functools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import yaml

from tests.clients.install import CACHE
from tests.clients.model import Model, Phrase, Step, VisibleResult, directly
from tests.clients.server import Json
from tests.faults.sidecar import Sidecar
from tests.servers.install import node
from tests.wrapped import Tee, wrapped

HERE = Path(__file__).resolve().parent
SERVER = [sys.executable, "-S", str(HERE / "server.py")]
PROMPT = "Call the tools as you are told and then say that you are done."
SECONDS = 180
WRAPPED = ("mcp-abridge", "npx", "-y", "SERVER")
PASSING = ("--rules", "none", "--budget", "off")


class Place(NamedTuple):
    """The configuration of a client: the model's URL, its folders, the server's command.

    `remote` is the URL of another server, if there is one.
    """

    url: str
    home: Path
    cwd: Path
    server: list[str]
    remote: str = ""

    @property
    def entry(self) -> Json:
        return {"command": self.server[0], "args": self.server[1:]}

    def servers(self, local: Json, remote: Json) -> Json:
        return {"probe": local, "remote": remote} if self.remote else {"probe": local}


class Talk(NamedTuple):
    """A conversation: the results that the model saw, and the messages of client and server.

    `results` are the results as the client got them, in the order of the calls; `ran` are the
    tools that the server ran.
    """

    visible: list[VisibleResult]
    results: list[Json]
    hello: Json
    ran: list[str]
    stderr: str


class Client:
    """A client from npm or PyPI.

    `stateless` clients open a session for each call; `refuses` are the tools whose results the
    client turns into an error if nobody helps; `whole` clients run scripts over whole results.
    `scripts`: how these get them, if models write any; `sums`: the phrase understands `sum`, which
    adds up the scores of rows in a script, with `script_options` of the wrapper; `variable` stands
    for a mode that does not run here. `doubles` show both copies: LlamaIndex, which no name tells
    apart, and whole results to people.
    `shell` is the tool that runs commands, of clients whose hooks replace answers; `vetted` are the
    words with which hooks run though nobody has trusted them.
    `reads` is the tool by which its model reads resources, if the suite tries that.
    `adds` are the words between `mcp add NAME` and a server's command, None without such a line;
    `lists` programs have `mcp list`. `starts` are the words with which a program starts its servers
    without a model, if its model needs an account: no conversation is had then.
    """

    name = binary = setup = ""
    adds: tuple[str, ...] | None = None
    lists = True
    starts: tuple[str, ...] = ()
    transcripts = ""  # the folder in the user's home, if `weigh` reads it
    shell = ""
    reads = ""
    vetted: tuple[str, ...] = ()
    program = ""  # a key of install.PINS, if it is not the name
    stateless = False
    refuses: frozenset[str] = frozenset()
    phrase: Phrase = staticmethod(directly)
    whole = doubles = sums = False
    scripts = variable = ""
    script_options: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return CACHE / (self.program or self.name)

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        """Write the configuration; return the command and what its environment needs besides."""
        raise NotImplementedError

    def bin(self, *arguments: str) -> list[str]:
        return [str(self.folder / "node_modules" / ".bin" / self.binary), *arguments]

    def adding(self, name: str, command: Sequence[str]) -> list[str]:
        """Return the words after the program's name that add a server."""
        return ["mcp", "add", name, *(self.adds or ()), *command]

    @property
    def line(self) -> str:
        return self.setup or f"`{self.binary} {shlex.join(self.adding('fs', WRAPPED))}`"


SUM = """
let value = result?.structuredContent ?? (result?.content ? result.content[0].text : result);
if (typeof value === "string") value = JSON.parse(value);
const sum = (value.items ?? value).reduce((sum, row) => sum + row.score, 0);
"""


class ClaudeCode(Client):
    """Its Code Mode wants the vendor's own API, not a stand-in: only its variable is tried."""

    name, binary = "claude-code", "claude"
    variable = "CLAUDE_CODE_EXPERIMENTAL_CODE_MODE"
    scripts = f"`{variable}`"
    shell, reads = "Bash", "ReadMcpResourceTool"
    adds = ("--",)
    transcripts = ".claude/projects"

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        servers = place.servers(place.entry, {"type": "http", "url": place.remote})
        write(place.home / ".claude.json", {"mcpServers": servers})
        return self.bin("-p", PROMPT, "--dangerously-skip-permissions"), anthropic(place)


def codex_call(tool: str, arguments: Json) -> tuple[str, Json]:
    return tool, {"cmd": arguments["command"]} if "command" in arguments else arguments


class Codex(Client):
    """With a model of its catalogue that calls functions; unknown models have smaller limits."""

    name, binary = "codex", "codex"
    adds = ("--",)
    shell, vetted = "exec_command", ("--dangerously-bypass-hook-trust",)
    phrase: Phrase = staticmethod(codex_call)
    reads, model = "read_mcp_resource", "gpt-5.5"
    transcripts = ".codex/sessions"

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        remote = f'[mcp_servers.remote]\nurl = "{place.remote}"\n' if place.remote else ""
        # A script may run before a server that is not required has started.
        write(
            place.home / ".codex" / "config.toml",
            f"""
model = "{self.model}"
model_provider = "stand-in"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stand-in]
name = "stand-in"
base_url = "{place.url}/v1"
wire_api = "responses"
env_key = "KEY"
[mcp_servers.probe]
command = {json.dumps(place.server[0])}
args = {json.dumps(place.server[1:])}
required = true
{remote}""",
        )
        command = self.bin("exec", "--skip-git-repo-check", PROMPT)
        return [*command, "--dangerously-bypass-approvals-and-sandbox"], {"KEY": "-"}


def without_sum(arguments: Json) -> str:
    return json.dumps({name: value for name, value in arguments.items() if name != "sum"})


def codex_script(tool: str, arguments: Json) -> tuple[str, str]:
    then = f"{SUM} text(String(sum))" if "sum" in arguments else "text(result)"
    call = f"await tools.mcp__probe__{tool}({without_sum(arguments)})"
    return "exec", f"const result = {call}; {then}"


class CodexScripts(Codex):
    """With a model that calls tools from JavaScript alone (code mode)."""

    name, program, model = "codex (code mode)", "codex", "gpt-6.1-sol"
    phrase = staticmethod(codex_script)
    whole = sums = True
    scripts = "their calls have a mark"


class Gemini(Client):
    name, binary = "gemini-cli", "gemini"
    shell = "run_shell_command"
    adds = ()
    refuses = frozenset(("array", "number", "rows_text"))

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        settings(place, ".gemini", "gemini-api-key")
        return self.bin("-p", PROMPT, "--yolo", "-m", "gemini-2.5-pro"), {
            "GEMINI_API_KEY": "-",
            "GOOGLE_GEMINI_BASE_URL": place.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }


class Qwen(Client):
    name, binary = "qwen-code", "qwen"
    adds = ()

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        settings(place, ".qwen", "openai")
        return self.bin("-p", PROMPT, "--yolo"), openai(place) | {"OPENAI_MODEL": "stand-in"}


class OpenCode(Client):
    name, binary, reads = "opencode", "opencode", "read_mcp_resource"
    adds = ("--",)

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        model = {"name": "-", "limit": {"context": 1_000_000, "output": 8000}, "tool_call": True}
        provider = {"npm": "@ai-sdk/openai-compatible", "models": {"stand-in": model}}
        provider["options"] = {"baseURL": f"{place.url}/v1", "apiKey": "-"}
        local = {"type": "local", "command": place.server, "enabled": True}
        write(place.cwd / "opencode.json", {
            "provider": {"local": provider}, "model": "local/stand-in",
            "small_model": "local/stand-in", "autoupdate": False, "share": "disabled",
            "mcp": place.servers(local, {"type": "remote", "url": place.remote}),
        })  # fmt: skip
        return self.bin("run", PROMPT), {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }


def opencode_script(tool: str, arguments: Json) -> tuple[str, Json]:
    call = f"await tools.probe.{tool}({without_sum(arguments)})"
    return "execute", {"code": f"const result = {call}; {SUM} return String(sum)"}


class OpenCodeScripts(OpenCode):
    """With its experimental code mode, in which a model calls tools from scripts alone."""

    name, program = "opencode (code mode)", "opencode"
    phrase = staticmethod(opencode_script)
    whole = sums = True
    scripts = "`OPENCODE_EXPERIMENTAL_CODE_MODE`"

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        command, env = super().configure(place)
        return command, {**env, self.scripts.strip("`"): "true"}


class Copilot(Client):
    name, binary = "copilot-cli", "copilot"
    shell = "bash"
    adds = ("--",)

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        local: Json = {"type": "local", "tools": ["*"], **place.entry}
        remote = {"type": "http", "tools": ["*"], "url": place.remote}
        servers = place.servers(local, remote)
        write(place.home / ".copilot" / "mcp-config.json", {"mcpServers": servers})
        return self.bin("-p", PROMPT, "--allow-all", "--no-color"), {
            "COPILOT_PROVIDER_BASE_URL": f"{place.url}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": "-",
            "COPILOT_MODEL": "stand-in",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }


class Cline(Client):
    name, binary = "cline", "cline"
    adds = ("--yes", "--")
    lists = False

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        folder = place.home / ".cline" / "data" / "settings"
        # It waits 3 s for a server if it is not told otherwise.
        local = {"transport": {"type": "stdio", **place.entry}, "timeout": SECONDS}
        remote = {**local, "transport": {"type": "streamableHttp", "url": place.remote}}
        servers = place.servers(local, remote)
        write(folder / "cline_mcp_settings.json", {"mcpServers": servers})
        provider = {"provider": "openai-compatible", "apiKey": "-", "model": "stand-in"}
        saved = {
            "settings": {**provider, "baseUrl": f"{place.url}/v1"},
            "updatedAt": "2026-01-01T00:00:00.000Z",
            "tokenSource": "manual",
        }
        used = {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}}
        write(folder / "providers.json", {**used, "providers": {"openai-compatible": saved}})
        options = ("-P", "openai-compatible", "-m", "stand-in", "--json")
        return self.bin(*options, PROMPT), {"CLINE_TELEMETRY_DISABLED": "1"}


class Continue(Client):
    name, binary = "continue", "cn"
    setup = "`mcpServers: [{name: fs, command: mcp-abridge, args: [npx, -y, SERVER]}]`"

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        local = {"name": "probe", "type": "stdio", **place.entry}
        remote = {"name": "remote", "type": "streamable-http", "url": place.remote}
        model = {"name": "-", "provider": "openai", "model": "stand-in", "roles": ["chat"]}
        model |= {"apiBase": f"{place.url}/v1", "apiKey": "-", "capabilities": ["tool_use"]}
        config = write(place.home / ".continue" / "config.yaml", yaml.safe_dump({
            "name": "local", "version": "1.0.0", "schema": "v1", "models": [model],
            "mcpServers": [*place.servers(local, remote).values()],
        }))  # fmt: skip
        command = self.bin("-p", PROMPT, "--config", str(config), "--auto")
        return command, {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_ENABLE_TELEMETRY": "0"}


VIBES = ("mcp_probe?.", "mcp_remote?.", "mcp_fs?.")


def vibe_script(tool: str, arguments: Json) -> tuple[str, Json]:
    if "command" in arguments:
        return tool, {"command": arguments["command"]}
    function = f"tools.{f'{tool} ?? tools.'.join(VIBES)}{tool}"
    call = f"await ({function})({without_sum(arguments)})"
    then = f"{SUM} return String(sum)" if "sum" in arguments else "return result"
    code = f"async function main() {{ const result: any = {call}; {then}; }}"
    return "run_typescript", {"code": code}


class Kimi(Client):
    name, binary = "kimi-code", "kimi"
    setup = '`{"mcpServers": {"fs": {"command": "mcp-abridge", "args": ["npx", "-y", "SERVER"]}}}`'
    setup += " in `~/.kimi-code/mcp.json`"

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        folder = place.home / ".kimi-code"
        servers = place.servers(place.entry, {"url": place.remote})
        write(folder / "mcp.json", {"mcpServers": servers})
        write(
            folder / "config.toml",
            f"""
default_model = "stand-in"
telemetry = false
[providers.local]
type = "openai"
base_url = "{place.url}/v1"
api_key = "-"
[models.stand-in]
provider = "local"
model = "stand-in"
max_context_size = 1000000
""",
        )
        return self.bin("-p", PROMPT), {"KIMI_CODE_NO_AUTO_UPDATE": "1"}


class Vibe(Client):
    name, binary = "mistral-vibe", "vibe"
    shell = "bash"
    adds = ("--transport", "stdio")
    lists = False
    phrase = staticmethod(vibe_script)
    sums = True
    scripts, script_options = "`--scripts on`", ("--scripts", "on")

    def bin(self, *arguments: str) -> list[str]:
        return [str(self.folder / "bin" / self.binary), *arguments]

    def adding(self, name: str, command: Sequence[str]) -> list[str]:
        words = ("--command", command[0], *(f"--arg={word}" for word in command[1:]))
        return super().adding(name, words)

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        remote = f"""[[mcp_servers]]
name = "remote"
transport = "streamable-http"
url = "{place.remote}"
"""
        write(
            place.home / ".vibe" / "config.toml",
            f"""
active_model = "stand-in"
enable_telemetry = false
enable_update_checks = false
[[providers]]
name = "local"
api_base = "{place.url}/v1"
api_key_env_var = "KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "stand-in"
provider = "local"
alias = "stand-in"
[[mcp_servers]]
name = "probe"
transport = "stdio"
command = {json.dumps(place.server[0])}
args = {json.dumps(place.server[1:])}
{remote if place.remote else ""}""",
        )
        return self.bin("-p", PROMPT, "--auto-approve", "--trust"), {"KEY": "-"}


class Auggie(Client):
    name, binary = "auggie", "auggie"
    starts = ("tools", "list")

    def adding(self, name: str, command: Sequence[str]) -> list[str]:
        words = ("--command", command[0], "--args", shlex.join(command[1:]))
        return super().adding(name, words)


class Qoder(Client):
    name, binary = "qoder", "qodercli"
    adds = ("--scope", "user", "--")
    starts = ("mcp", "list")


class Framework(Client):
    """A script in `frameworks/`, run by the Python of the client's folder, or by Node."""

    setup = '`command="mcp-abridge", args=["npx", "-y", "SERVER"]`'

    def __init__(self, name: str, script: str, *arguments: str, **changes: Any) -> None:
        self.name, self._script, self._arguments = name, script, arguments
        vars(self).update(changes)

    def configure(self, place: Place) -> tuple[list[str], dict[str, str]]:
        script = HERE / "frameworks" / self._script
        if self._script.endswith(".mjs"):
            # Node looks for the packages beside the script.
            script = Path(shutil.copy(script, self.folder)) if self.folder.is_dir() else script
            command = [node(), str(script)]
        else:
            python = self.folder / "bin" / "python"
            command = [str(python) if python.exists() else sys.executable, str(script)]
        return [*command, *self._arguments], openai(place) | anthropic(place) | {
            "MODEL_URL": place.url,
            "SERVER": json.dumps(place.server),
            "MCP_USE_ANONYMIZED_TELEMETRY": "false",
        }


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def settings(place: Place, folder: str, auth: str) -> None:
    write(place.home / folder / "settings.json", {
        "security": {"auth": {"selectedType": auth}, "folderTrust": {"enabled": False}},
        "mcpServers": place.servers(
            {**place.entry, "trust": True}, {"httpUrl": place.remote, "trust": True}
        ),
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    })  # fmt: skip


def anthropic(place: Place) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": place.url,
        "ANTHROPIC_API_KEY": "-",
        "ANTHROPIC_MODEL": "claude-sonnet-4-5",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
        # With -p it does not wait for a server that takes long to start, on a busy machine.
        "MCP_CONNECTION_NONBLOCKING": "0",
    }


def openai(place: Place) -> dict[str, str]:
    return {"OPENAI_API_KEY": "-", "OPENAI_BASE_URL": f"{place.url}/v1"}


INSPECTOR = "`mcp-inspector --cli mcp-abridge npx -y SERVER`"
REMOTE = "`npx mcp-remote URL`, with the URL of `mcp-abridge serve`"
MEMBERS = '`{"transport": "stdio", "command": "mcp-abridge", "args": ["npx", "-y", "SERVER"]}`'
LANGCHAIN = (
    f"{MEMBERS}, better in one session (`async with client.session(...)`) than with `get_tools()`"
)
AGENT_SDK = '`mcp_servers={"fs": {"command": "mcp-abridge", "args": ["npx", "-y", "SERVER"]}}`'
AGNO = (
    '`MCPTools("uvx mcp-abridge npx -y SERVER")`, since it starts no other command than uvx, npx,'
    " python, node, docker and a few; or `server_params=StdioServerParameters(...)`"
)
LLAMA_INDEX = (
    '`BasicMCPClient("mcp-abridge", args=["--budget", "4000", "--", "npx", "-y", "SERVER"])`:'
    " it shows both copies of a result, and no name tells that"
)

CLIENTS: tuple[Client, ...] = (
    ClaudeCode(),
    Codex(),
    CodexScripts(),
    Gemini(),
    Qwen(),
    OpenCode(),
    OpenCodeScripts(),
    Copilot(),
    Cline(),
    Continue(),
    Kimi(),
    Vibe(),
    Auggie(),
    Qoder(),
    Framework("claude-agent-sdk", "claude_agent.py", setup=AGENT_SDK),
    Framework("openai-agents", "openai_agents.py"),
    Framework("openai-agents-js", "openai_agents.mjs"),
    Framework("langchain", "langchain_tools.py", setup=LANGCHAIN),
    Framework(
        "langchain (get_tools)",
        "langchain_tools.py",
        "get_tools",
        setup=LANGCHAIN,
        program="langchain",
        stateless=True,
    ),
    Framework("langchain-js", "langchain.mjs", setup=MEMBERS),
    Framework("pydantic-ai", "pydantic_agent.py"),
    Framework("agno", "agno_agent.py", setup=AGNO),
    Framework("fastmcp", "fastmcp_client.py"),
    Framework("strands", "strands_agent.py"),
    Framework("google-adk", "adk_agent.py"),
    Framework("agent-framework", "agent_framework_agent.py"),
    Framework(
        "llama-index", "llama_index_agent.py", setup=LLAMA_INDEX, doubles=True, stateless=True
    ),
    Framework("crewai", "crewai_agent.py", stateless=True),
    Framework("mcp-use", "mcp_use_agent.py"),
    Framework("ai-sdk", "ai_sdk.mjs"),
    Framework("inspector", "inspector.py", setup=INSPECTOR, stateless=True, doubles=True),
    Framework("mcp-remote", "python_sdk.py", setup=REMOTE, doubles=True),
)

# Run by `make test`: their packages are those that the other tests need.
SDKS: tuple[Client, ...] = (
    Framework("python-sdk", "python_sdk.py", doubles=True),
    Framework("typescript-v1", "typescript.mjs", "v1", doubles=True),
    Framework("typescript-v2", "typescript.mjs", "v2", doubles=True),
)


def converse(
    client: Client,
    plan: list[Step],
    folder: Path,
    *,
    direct: bool,
    options: Sequence[str],
    env: Mapping[str, str],
    words: Sequence[str] = (),
) -> Talk:
    """Have a client and its model talk with the server, to which `words` are given."""
    home, cwd = folder / "home", folder / "cwd"
    for each in (home, cwd):
        each.mkdir(parents=True)
    before, behind = Tee(folder / "client.log"), Tee(folder / "server.log")
    with contextlib.ExitStack() as stack:
        command = behind.before([*SERVER, *words])
        if client.name == "mcp-remote":
            command = remote(stack, client, command, PASSING if direct else options)
        elif not direct:
            command = wrapped(command, *options)
        model = stack.enter_context(Model(plan, client.phrase))
        place = Place(model.url, home, cwd, before.before(command))
        start, more = client.configure(place)
        output = run(start, cwd, {**environment(home), **more, **env})
    stderr = output[-2000:]
    if not before.log.exists():
        return Talk(model.results, [], {}, [], stderr)
    responses = [orjson.loads(line) for line in before.lines()]
    results = [each["result"] for each in responses if "content" in each.get("result", {})]
    initialize = (each for each in before.requests() if each.get("method") == "initialize")
    hello: Json = next(initialize, {}).get("params", {})
    return Talk(model.results, results, hello, [each["name"] for each in behind.calls()], stderr)


def remote(
    stack: contextlib.ExitStack, client: Client, command: list[str], options: Sequence[str]
) -> list[str]:
    sidecar = stack.enter_context(Sidecar(*options, "--", *command))
    package = client.folder / "node_modules" / "mcp-remote" / "dist" / "proxy.js"
    return [node(), str(package), sidecar.url()]


def environment(home: Path) -> dict[str, str]:
    """Return the variables that each client gets, with a home of its own."""
    return {
        "HOME": str(home),
        "PATH": f"{Path(node()).parent}{os.pathsep}{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "CI": "1",
        "NO_COLOR": "1",
        "DO_NOT_TRACK": "1",
    }


def run(command: list[str], cwd: Path, env: dict[str, str]) -> str:
    output = cwd.parent / "output"
    # A file, since what a client leaves behind may hold a pipe open.
    with output.open("wb") as target:
        child = subprocess.Popen(
            [*enclosure(), *command],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            child.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return output.read_text(errors="replace")


@functools.cache
def enclosure() -> list[str]:
    """Return a prefix that ends the daemons of a client with it; none without the right to."""
    prefix = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() or not shutil.which("unshare"):
        return []
    trial = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    return [] if trial.returncode else prefix
