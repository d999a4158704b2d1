"""Steps of users with the real programs: `wrap`, the program's own line, hook and plugin."""

import contextlib
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from mcp_abridge.cli.wrap.places import CLIENTS

from tests.clients.cases import Bench, Case, Check, ends, plain
from tests.clients.model import COMMAND, VIEW, Model, Step, VisibleResult, unescaped
from tests.clients.programs import PASSING, SERVER, Client, Place, environment, run, write
from tests.clients.server import SAVED
from tests.faults.sidecar import Sidecar
from tests.wrapped import ROOT, START, Tee

LOCAL, ADDED, REMOTE = "rows_text", "rows_both", "lines"  # a tool of each server
HOOKED = ADDED  # Gemini CLI refuses the other rows


class User:
    """A user's home, with `mcp-abridge` on the PATH if `program` is true."""

    def __init__(self, folder: Path, *, program: bool = True) -> None:
        self.folder = folder
        self.home, self.cwd = folder / "home", folder / "cwd"
        for each in (self.home, self.cwd):
            each.mkdir(parents=True)
        self.env = environment(self.home)
        if program:
            path = write(folder / "bin" / "mcp-abridge", f"#!{sys.executable}\n{START}")
            path.chmod(0o755)
            self.env["PATH"] = f"{path.parent}{os.pathsep}{self.env['PATH']}"

    def types(self, *words: str) -> str:
        return run([*words], self.cwd, self.env)

    def wrapped(self) -> list[str]:
        return re.findall(r'"wrapped": (\w+)', self.types("mcp-abridge", "wrap", "--json"))

    def files(self) -> dict[Path, bytes]:
        folders = (self.home, self.cwd)
        return {path: path.read_bytes() for each in folders for path in each.rglob("*.*")
                if path.is_file()}  # fmt: skip


def servers(bench: Bench) -> Iterator[Check]:
    """The servers of a configuration can be wrapped and restored, and one can be added by hand."""
    client, user = bench.client, User(bench.folder / "servers")
    tools = (LOCAL, *[ADDED] * (client.adds is not None), REMOTE)
    tees = {tool: Tee(user.folder / f"{tool}.log") for tool in tools}
    commands = {tool: tee.before([*SERVER, tool]) for tool, tee in tees.items()}
    plan = [Step(tool, further=further) for tool in tools for further in (False, True)]
    with Model(plan, client.phrase) as model, contextlib.ExitStack() as stack:
        sidecar = stack.enter_context(Sidecar(*PASSING, "--", *commands[REMOTE]))
        place = Place(model.url, user.home, user.cwd, commands[LOCAL], sidecar.url())
        start, more = client.configure(place)
        user.env |= more
        yield from wrap(user)
        if ADDED in tools:
            user.types(*client.bin(*client.adding("fs", ("mcp-abridge", *commands[ADDED]))))
        if ADDED in tools and client.lists:
            listed = user.types(*client.bin("mcp", "list"))
            problem = "" if all(name in listed for name in ("probe", "remote", "fs")) else listed
            yield Check("the program lists the servers", problem)
        output = user.types(*start)
    results = iter([*model.results, *[VisibleResult(output[-800:])] * len(plan)])
    for tool, tee in tees.items():
        yield Check(f"{tool} is cut, and the rest is read", rest(next(results), next(results), tee))
    words = user.types("mcp-abridge", "unwrap", "--all")
    # An entry that the program itself wrote has no other form to go back to.
    restored = sorted(user.wrapped()) == ["false", "false", "true"][: len(tools)]
    yield Check("`unwrap` restores what `wrap` wrapped", "" if restored else words)


def starting(bench: Bench) -> Iterator[Check]:
    """A program starts the server that it has added itself, wrapped."""
    client, user = bench.client, User(bench.folder / "servers")
    tee = Tee(user.folder / "server.log")
    user.types(*client.bin(*client.adding("probe", tee.before([*SERVER, LOCAL]))))
    before = user.files()
    yield from wrap(user, 1)
    # Auggie starts its servers and does not wait for them: they end with its namespace.
    line = f"{shlex.join(client.bin(*client.starts))}; sleep 5"
    output = user.types("sh", "-c", line)
    requests = tee.requests() if tee.log.exists() else []
    bench.hello = next((each["params"] for each in requests if each["method"] == "initialize"), {})
    yield Check("it starts the server", "" if bench.hello else output)
    words = user.types("mcp-abridge", "unwrap", "--all")
    same = all(path.read_bytes() == raw for path, raw in before.items() if b"probe" in raw)
    yield Check("`unwrap` restores every byte after it", "" if same else words)


def wrap(user: User, count: int = 2) -> Iterator[Check]:
    """`wrap`, `wrap` again and `unwrap`; then the servers are wrapped for what follows."""
    before = user.files()
    words = user.types("mcp-abridge", "wrap", "--all")
    yield Check("`wrap` wraps", "" if user.wrapped() == ["true"] * count else words)
    once = {path: path.read_bytes() for path in before}
    words = user.types("mcp-abridge", "wrap", "--all")
    same = {path: path.read_bytes() for path in before} == once != before
    yield Check("`wrap` again changes nothing", "" if same else words)
    words = user.types("mcp-abridge", "unwrap", "--all")
    same = {path: path.read_bytes() for path in before} == before
    yield Check("`unwrap` restores every byte", "" if same else words)
    user.types("mcp-abridge", "wrap", "--all")


def rest(first: VisibleResult, second: VisibleResult, tee: Tee) -> str:
    """Return the problem of a cut answer and the next look at it; "" if there is none."""
    if not (VIEW.search(unescaped(first.text)) or COMMAND.search(unescaped(first.text))):
        return f"not cut: {ends(first.text)}"
    if plain(second.text) in plain(first.text) or re.search("rror|not found", second.text[:200]):
        return f"nothing new: {ends(second.text)}"
    ran = [each["name"] for each in tee.calls()]
    return "" if len(ran) == 1 else f"the server ran {ran}"


def hook(bench: Bench) -> Iterator[Check]:
    """An answer of a server that is not wrapped is cut by the hook, and a shell reads the rest."""
    client, user = bench.client, User(bench.folder / "hook in settings")
    tee = Tee(user.folder / "server.log")
    with Model([Step(HOOKED), Step(client.shell, further=True)], client.phrase) as model:
        start, more = client.configure(Place(model.url, user.home, user.cwd, tee.before(SERVER)))
        user.env |= more
        before, words = user.files(), ("--hook", "--client", client.name)
        user.types("mcp-abridge", "wrap", *words)
        there = user.files()
        user.types("mcp-abridge", "unwrap", "--hook")
        same = user.files() == before != there
        yield Check("`unwrap --hook` restores every byte", "" if same else str([*there]))
        user.types("mcp-abridge", "wrap", *words)
        output = user.types(*start, *client.vetted)
    yield cut(model, output, tee)
    report = user.types("mcp-abridge", "report", "--json", "--by", "server")
    counted = re.findall(r'"name": (\S+),\s+"calls": (\d+),\s+"shaped": (\d+)', report)
    yield Check("`report` counts both", "" if counted == [('"probe"', "2", "2")] else report)
    output, after = user.types("mcp-abridge", "unwrap", "--hook"), user.files()
    changes = [path for path in there if path not in before or there[path] != before[path]]
    clean = not any(b"mcp-abridge" in after.get(path, b"") for path in changes)
    yield Check("it removes the hook, though the program has run", "" if clean else output)


def cut(model: Model, output: str, tee: Tee) -> Check:
    first, second = [*model.results, *[VisibleResult(output[-800:])] * 2][:2]
    return Check("the hook cuts, and the rest is read", rest(first, second, tee))


def plugin(bench: Bench) -> Iterator[Check]:
    """The plugin has that hook, and a command that it allows itself."""
    user = User(bench.folder / "plugin")
    option = ("--plugin-dir", str(ROOT))
    tee = Tee(user.folder / "server.log")
    with Model([Step(LOCAL), Step("Bash", further=True)]) as model:
        place = Place(model.url, user.home, user.cwd, tee.before(SERVER))
        start, more = bench.client.configure(place)
        user.env |= more
        output = user.types(*start, *option)
    yield cut(model, output, tee)
    # The transcripts of that home have the call.
    with Model([Step("Bash", {"command": "mcp-abridge weigh", "description": "-"})]) as model:
        user.env["ANTHROPIC_BASE_URL"] = model.url
        output = user.types(*bench.client.bin("-p", "/mcp-abridge:weigh", *option))
    text = model.results[0].text if model.results else output
    problem = "" if LOCAL in text and "Next: " in text else text
    yield Check("the plugin's command weigh runs", problem)


def paths(bench: Bench) -> Iterator[Check]:
    """A server that names a file, in the words for a saved answer, gets nothing of it."""
    user = User(bench.folder / "paths")
    user.types("mcp-abridge", "wrap", "--hook")
    session, other = str(uuid4()), str(uuid4())
    project = user.home / ".claude" / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", str(user.cwd))
    own = project / session / "tool-results"
    secret = write(user.home / ".history", "user's own\n" * 2_000)
    write(project / other / "tool-results" / "answer.txt", secret.read_text())
    own.mkdir(parents=True)
    (own / "link").symlink_to(secret)
    for folder in (own, user.home):
        os.mkfifo(folder / "pipe")
    names = [
        *(secret, own / "../../../../../.history", own / "link", own / "pipe", user.home / "pipe"),
        *(start / other / "tool-results" / "answer.txt" for start in (project, own / "../..")),
    ]
    plan = [Step("saved", {"query": str(path)}) for path in names] + [Step(LOCAL)]
    with Model(plan) as model:
        server = [*SERVER, "saved", LOCAL]
        start, more = bench.client.configure(Place(model.url, user.home, user.cwd, server))
        user.env |= more
        start_time = time.monotonic()
        output = user.types(*start, "--session-id", session)
    for path, result in zip(names, model.results, strict=False):
        name = os.path.relpath(path, project)
        expected = SAVED % path in result.text and "user's own" not in result.text
        yield Check(f"nothing is read of {name}", "" if expected else ends(result.text))
    seconds = time.monotonic() - start_time
    yield Check("no pipe is waited for", "" if seconds < 30 else f"it took {seconds:.0f} s")
    saved = [*own.glob("*.txt")]
    text = model.results[-1].text if len(model.results) == len(plan) else output
    cut = saved and COMMAND.search(unescaped(text)) and "Record number 0" in text
    yield Check("the client's own saved answer is cut", "" if cut else f"{saved} {ends(text)}")


def user_cases(client: Client) -> list[Case]:
    if client.starts:
        return [starting]
    if client.whole or client.name not in CLIENTS:
        return []
    cases: list[Case] = [servers, *[hook] * bool(client.shell)]
    return [*cases, plugin, paths] if client.name == "claude-code" else cases
