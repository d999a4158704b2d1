"""In the folder of an untrusted checkout, no verb runs what lies there under a name of a module.

The program is a script in a folder of its own, as an installer makes it.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from mcp_abridge.cli import VERBS

from tests.builders import call, document
from tests.cli.conftest import Run
from tests.cli.suggest.recorded import write
from tests.cli.test_weigh import claude, result, use
from tests.faults.scale import LONG, scaled
from tests.faults.sidecar import Sidecar
from tests.plain_server import IMPORT
from tests.test_clients import hello
from tests.wire import Wire
from tests.wrapped import START

NAMES = (
    *("proxy/__init__.py", "proxy.py", "mcp_abridge/__init__.py", "mcp_abridge.py"),
    *("msgspec.py", "queue.py", "json.py", "yaml.py"),
)
# All of them in one folder, or each in one of its own.
STEP = scaled(len(NAMES), 1)
FOLDERS = [NAMES[at : at + STEP] for at in range(0, len(NAMES), STEP)]

ROWS = {"items": [{"id": n, "state": "open", "body": "b" * 100} for n in range(4_000)]}
SERVER = f"""{IMPORT}
tool = {{"inputSchema": {{"type": "object"}}, "annotations": {{"readOnlyHint": True}}}}
rows = {json.dumps(json.dumps(ROWS))}
serve("shelf", "1", [{{"name": "list", **tool}}, {{"name": "rows", **tool}}],
      lambda name, _: {{"content": [{{"type": "text", "text": rows}}]}})
"""
# Shaping the rows takes a process of its own.
RULES = """
version: 1
guards: {own: "own:Own"}
rules:
  - tools: list
    guard: own
    response: [{keep: [items.id]}]
    tests: [{given: {items: [{id: 1, state: open}]}, expect: {items: [{id: 1}]}}]
  - tools: rows
    response: [{jmespath: "{items: items[*].{id: id}}"}]
    tests: [{given: {items: [{id: 1, state: open}]}, expect: {items: [{id: 1}]}}]
"""
OWN = """
import json, queue
from collections.abc import Mapping
from typing import ClassVar

import msgspec, yaml
from mcp_abridge.plugin import Allow, Parameter

class Own(msgspec.Struct, frozen=True):
    name: ClassVar[str] = "own"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    def __call__(self, call, result):
        return Allow()
"""
TOOL = ("--tool", "list")
OF_RULES = ("--allow-python", "rules.yaml")
WITH_RULES = ("--allow-python", "--rules", "rules.yaml")


class Checkout(NamedTuple):
    """A folder with modules that each write a file, and the program that is run there."""

    folder: Path
    program: list[str]
    server: list[str]
    traces: Path

    def run(self, *words: str, stdin: str = "") -> str:
        command = [*self.program, *words]
        completed = subprocess.run(command, input=stdin, capture_output=True, text=True)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout


def lay(folder: Path, names: Sequence[str], traces: Path) -> None:
    """Put modules into a folder that write down that they were run."""
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"open({str(traces)!r}, 'a').write(__name__ + ' ')\n")


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda names: "+".join(names[:2]))
def checkout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    names: Sequence[str] = request.param
    folder, outside = (tmp_path_factory.mktemp(name) for name in ("checkout", "outside"))
    traces = outside / "traces"
    lay(folder, names, traces)
    server = {"command": sys.executable, "args": [str(outside / "server.py")]}
    for path, text in {
        folder / "rules.yaml": RULES,
        folder / "own.py": OWN,
        folder / "answer.json": json.dumps(document(ROWS)),
        folder / ".mcp.json": json.dumps({"mcpServers": {"shelf": server}}),
        folder / "talk.jsonl": claude(use("1", "mcp__shelf__rows"), result("1", json.dumps(ROWS))),
        outside / "server.py": SERVER,
        outside / "mcp-abridge": START,
    }.items():
        path.write_text(text)
    (folder / "calls").mkdir()
    write(folder / "calls", ("list", {}, ROWS))
    program = [sys.executable, str(outside / "mcp-abridge")]
    return Checkout(folder, program, ["--", sys.executable, str(outside / "server.py")], traces)


def wraps(*words: str) -> Callable[[Checkout], object]:
    """Return a use of the verbs that wrap a server: a client of it calls each tool."""

    def start(place: Checkout) -> None:
        with Wire([*place.program, *words, *place.server]) as wire:
            wire.answer(hello("claude-code") + b"\n")
            for number, tool in enumerate(("list", "rows"), 1):
                assert b"3999" in b"".join(wire.answer(call(tool, id=number) + b"\n"))

    return start


def serve(place: Checkout) -> None:
    with Sidecar(*WITH_RULES, "--budget", "off", *place.server, program=place.program) as sidecar:
        session = sidecar.begin()
        assert b"3999" in sidecar.post(call("rows"), session).body


def hook(place: Checkout) -> None:
    response = [{"type": "text", "text": json.dumps(ROWS)}]
    call = {"tool_name": "mcp__shelf__rows", "tool_input": {}, "tool_response": response}
    event = {"hook_event_name": "PostToolUse", **call}
    assert "3999" in place.run("hook", *WITH_RULES, stdin=json.dumps(event))


def says(answer: str, *words: str, server: bool = False) -> Callable[[Checkout], object]:
    """Return a use of a verb by one command line, whose output has the answer."""

    def start(place: Checkout) -> None:
        assert answer in place.run(*words, *(place.server if server else ()))

    return start


USES: dict[str, Callable[[Checkout], object]] = {
    "run": wraps("run", "--budget", "off", "--record", "new", *WITH_RULES),
    "serve": serve,
    "wrap": says("shelf", "wrap", "--all", "--dry-run"),
    "unwrap": says("", "unwrap", "--all"),
    "check": says("ok: rules.yaml", "check", *OF_RULES),
    "test": says("2 passed", "test", *OF_RULES),
    "explain": says("3999", "explain", *TOOL, "--show", *OF_RULES, "answer.json"),
    "schema": says("$schema", "schema"),
    "call": says("items", "call", "rows", *WITH_RULES, server=True),
    "suggest": says("", "suggest", "-o", "new.yaml", server=True),
    "replay": says("list", "replay", "calls", *WITH_RULES),
    "weigh": says("1 MCP tool", "weigh", "talk.jsonl"),
    "report": says("[]", "report", "--json"),
    "doctor": says("shelf", "doctor", *WITH_RULES, server=True),
    "hook": hook,
    "view": says("3999", "view", "answer.json", "items[-1]"),
    "demo": says("fullsync", "demo"),
    "completion": says("mcp-abridge", "completion", "bash"),
}
# Those that a client or a hook starts wherever it is, and one that loads an author's own module.
SHOWN = ("run", "serve", "hook", "test")


@pytest.mark.fault(51, "stdio")
@pytest.mark.fault(51, "http")
@pytest.mark.parametrize("verb", VERBS if LONG else SHOWN)
def test_no_verb_runs_what_the_current_folder_has_under_the_name_of_a_module(
    verb: str, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout.folder)
    checkout.traces.unlink(missing_ok=True)
    USES[verb](checkout)
    assert not checkout.traces.exists(), checkout.traces.read_text()


def test_a_server_that_lies_in_the_current_folder_is_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    (tmp_path / "theirs.py").write_text(SERVER)
    monkeypatch.chdir(tmp_path)
    assert "rows" in run("call", "--", sys.executable, "-m", "theirs").out
