"""Wraps real servers: nothing changes without rules, and what is cut is said and can be had."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest
from mcp_abridge.ruleset import selection as ruleset

from tests import servers
from tests.faults.scale import scaled
from tests.history import with_history
from tests.servers.install import needs
from tests.wire import Ended, Wire
from tests.wrapped import Result, Tee, notice, sizes, texts, wrapped

pytestmark = pytest.mark.usefixtures("servers")

WITH_SQLITE = [pytest.mark.long, needs("sqlite")]
BUDGET = 8_000  # what a client that nobody knows gets

# Each line differs from the others, and bytes from characters.
LINES = [f'{n:05} — a line of the file, with ünïcode and "quotes" 📎\n' for n in range(20_000)]
LONG = "".join(LINES)
SLICED = "".join(LINES[: scaled(2_000, 20_000)])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a note, a text of over a megabyte, JSON, a picture, and many files."""
    folder = tmp_path_factory.mktemp("tree").resolve()
    (folder / "note.txt").write_text("a note\n")
    (folder / "long.txt").write_text(LONG)
    (folder / "sliced.txt").write_text(SLICED)
    rows = [{"id": n, "share": n / 7, "name": f"row {n}"} for n in range(900)]
    (folder / "rows.json").write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
    for n in range(600):
        inner = folder / "many" / f"folder {n % 12:02}"
        inner.mkdir(parents=True, exist_ok=True)
        (inner / f"file {n:03}.txt").write_text("")
    return folder


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository: three hundred commits, the last over a megabyte long, many changes."""
    folder = tmp_path_factory.mktemp("repository").resolve()
    part = "".join(LINES[:2_000])
    with_history(folder, 300, {298: ("part.txt", part), 299: ("long.txt", LONG)})
    (folder / "part.txt").write_text("".join(reversed(LINES[:2_000])))
    for n in range(900):
        (folder / f"new file {n:03}.txt").write_text("")
    return folder


class Server:
    """A wrapped server that a raw client speaks with, and the calls that reach it."""

    def __init__(self, wire: Wire, tee: Tee) -> None:
        self.wire = wire
        self.tee = tee
        self._number = count(100)

    def call(self, tool: str, arguments: dict[str, Any], **more: Any) -> Result:
        """Call a tool with these arguments and more, and return its result."""
        params = {"name": tool, "arguments": arguments | more}
        answer = orjson.loads(self.wire.send("tools/call", next(self._number), **params)[-1])
        assert "result" in answer, answer
        result: Result = answer["result"]
        return result


@pytest.fixture
def wrap(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Return a function that starts a server behind the wrapper and initializes it as a client."""
    started: list[Wire] = []

    def start(command: list[str], *options: str, client: str = "wire") -> Server:
        tee = Tee(tmp_path / f"{len(started)}.log")
        wire = Wire(wrapped(tee.before(command), *options))
        started.append(wire)
        hands(wire, client)
        return Server(wire, tee)

    yield start
    for wire in started:
        wire.kill()


def hands(wire: Wire, client: str = "wire") -> bytes:
    """Shake hands as MCP 2025-11-25 has it; return the answer to initialize."""
    info = {"name": client, "version": "1.0.0"}
    version = "2025-11-25"
    answer = wire.send("initialize", 1, protocolVersion=version, capabilities={}, clientInfo=info)
    wire.send("notifications/initialized")
    return answer[-1]


Talk = tuple[str, dict[str, Any]]


def of_filesystem(tree: Path) -> tuple[list[str], list[Talk]]:
    return servers.filesystem(tree), [
        ("read_text_file", {"path": str(tree / "note.txt")}),
        ("list_allowed_directories", {}),
        ("read_text_file", {"path": str(tree / "long.txt")}),
        ("read_text_file", {"path": str(tree / "rows.json")}),
        ("directory_tree", {"path": str(tree)}),
        ("read_text_file", {"path": str(tree / "missing.txt")}),
        ("read_text_file", {"path": "/nowhere"}),
        ("read_text_file", {}),
        ("no_such_tool", {}),
    ]


def of_everything(_: Path) -> tuple[list[str], list[Talk]]:
    return servers.everything(), [
        ("echo", {"message": "a note\u2028and more 📎"}),
        ("get-sum", {"a": 0.1, "b": 0.2}),
        ("get-structured-content", {"location": "New York"}),
        ("get-annotated-message", {"messageType": "error", "includeImage": True}),
        ("get-resource-links", {"count": 10}),
        ("get-tiny-image", {}),
        ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
        ("echo", {"message": LONG}),
        ("echo", {"message": 5}),
        ("no_such_tool", {}),
    ]


def of_git(repository: Path) -> tuple[list[str], list[Talk]]:
    here = {"repo_path": str(repository)}
    return servers.git(repository), [
        ("git_branch", here | {"branch_type": "local"}),
        ("git_log", here | {"max_count": 2}),
        ("git_log", here | {"max_count": 300}),
        ("git_show", here | {"revision": "HEAD"}),
        ("git_status", here),
        ("git_show", here | {"revision": "no such thing"}),
        ("git_log", {"repo_path": "/"}),
        ("git_log", {}),
        ("no_such_tool", {}),
    ]


REAL = [(of_filesystem, "tree"), (of_everything, "tree"), (of_git, "repository")][: scaled(1, 3)]


@pytest.fixture(params=REAL, ids=lambda param: param[0].__name__)
def real(request: pytest.FixtureRequest) -> tuple[list[str], list[Talk]]:
    """Return the command of a server, and calls of its tools."""
    describe, folder = request.param
    described: tuple[list[str], list[Talk]] = describe(request.getfixturevalue(folder))
    return described


def test_without_rules_every_line_is_the_servers_own(real: tuple[list[str], list[Talk]]) -> None:
    command, calls = real
    alone, ended_alone = conversation(command, calls)
    behind, ended_behind = conversation(wrapped(command, "--rules", "none"), calls)
    assert behind == alone
    assert ended_behind == ended_alone
    assert ended_alone.code == 0
    assert any(len(line) > 1_000_000 for line in alone)


def conversation(command: list[str], calls: list[Talk]) -> tuple[list[bytes], Ended]:
    """Speak with a server one request at a time; return every line it says, and how it ends."""
    lines: list[bytes] = []
    with Wire(command) as wire:
        lines.append(hands(wire))
        lines += wire.send("tools/list", 2)
        for number, (tool, arguments) in enumerate(calls, 10):
            meta = {"progressToken": number}
            lines += wire.send("tools/call", number, name=tool, arguments=arguments, _meta=meta)
        lines += wire.send("no/such/method", "a text as id")
        lines += wire.send("ping", 9)
        return lines, wire.close()


def of_long_answers(tree: Path, repository: Path) -> list[tuple[list[str], list[Talk]]]:
    """Name the calls that are answered at length, by server."""
    here, long, many = {"repo_path": str(repository)}, str(tree / "long.txt"), str(tree / "many")
    files: list[Talk] = [
        ("read_text_file", {"path": long}),
        ("read_file", {"path": str(tree / "rows.json")}),
        ("read_multiple_files", {"paths": [long] * 2}),
        ("read_media_file", {"path": long}),
        ("directory_tree", {"path": many}),
        ("search_files", {"path": many, "pattern": "**/*.txt"}),
    ]
    commits: list[Talk] = [
        ("git_log", here | {"max_count": 300}),
        ("git_show", here | {"revision": "HEAD"}),
        ("git_diff_unstaged", here),
        ("git_status", here),
    ]
    return [
        (servers.filesystem(tree), files),
        (servers.everything(), [("echo", {"message": LONG[:50_000]})]),
        (servers.git(repository), commits),
    ]


@pytest.mark.parametrize(
    ("client", "budget", "bundled"),
    [
        ("wire", BUDGET, True),
        pytest.param("claude-code", 10_000, False, marks=pytest.mark.long),
        pytest.param("github-copilot", BUDGET, False, marks=pytest.mark.long),
    ],
)
def test_no_answer_is_larger_than_the_budget_and_each_cut_says_so(
    client: str,
    budget: int,
    bundled: bool,
    tree: Path,
    repository: Path,
    tmp_path: Path,
    wrap: Callable[..., Server],
) -> None:
    (tmp_path / "none.yaml").write_text("version: 1\nrules: []\n")
    options = [] if bundled else ["--rules", str(tmp_path / "none.yaml"), "--budget", "auto"]
    for command, calls in of_long_answers(tree, repository):
        server = wrap(command, *options, client=client)
        for tool, arguments in calls:
            result = server.call(tool, arguments)
            structured, text = sizes(result)
            assert max(structured, text) <= budget, tool
            if client == "github-copilot" and "structuredContent" in result:
                # It shows both.
                assert structured + text <= budget, tool
            if "structuredContent" in result:
                assert notice(result["structuredContent"]), tool
            if texts(result):
                assert notice(texts(result)), tool
        assert len(server.tee.calls()) == len(calls)


def test_slices_of_an_answer_give_all_of_it_without_a_second_call(
    tree: Path, wrap: Callable[..., Server]
) -> None:
    rows = {"rows": [{"id": n, "name": f"row {n}", "share": n / 7} for n in range(900)]}
    text = orjson.dumps(rows).decode()
    for command, tool, arguments, whole in (
        (servers.filesystem(tree), "read_text_file", {"path": str(tree / "sliced.txt")}, SLICED),
        # No rule names this tool. The server puts a word before the message: it is no JSON.
        (servers.everything(), "echo", {"message": text}, "Echo: " + text),
    ):
        server = wrap(command)
        server.call(tool, arguments)
        parts = []
        for start in range(0, len(whole), 5_000):
            result = server.call(tool, arguments, view=f"text[{start}:{start + 5_000}]")
            assert max(sizes(result)) <= BUDGET
            parts.append(texts(result)[0])
            assert result.get("structuredContent", {"content": parts[-1]})["content"] == parts[-1]
        assert "".join(parts) == whole
        assert len(server.tee.calls()) == 1


@pytest.mark.parametrize("word", ["filesystem", "git", pytest.param("sqlite", marks=WITH_SQLITE)])
def test_a_bundled_file_names_its_server_and_tools_that_it_has(
    word: str, tree: Path, repository: Path, tmp_path: Path
) -> None:
    commands = {
        "filesystem": servers.filesystem(tree),
        "git": servers.git(repository),
        "sqlite": servers.sqlite(tmp_path / "some.db"),
    }
    [file] = ruleset.load([word])
    with Wire(commands[word]) as wire:
        info = orjson.loads(hands(wire))["result"]["serverInfo"]
        listed = orjson.loads(wire.send("tools/list", 2)[-1])["result"]["tools"]
    assert file.server is not None
    assert file.server.name == info["name"]
    tools = {tool for rule in file.rules for tool in rule.tools}
    assert tools <= {tool["name"] for tool in listed}
    assert all(rule.budgeted for rule in file.rules)
