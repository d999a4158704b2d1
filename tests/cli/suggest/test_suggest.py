"""`suggest` drafts rules from recordings of real servers, and each draft passes its own test."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.cli import main
from mcp_abridge.replay.play import Replay
from mcp_abridge.replay.recordings import sessions
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.ruleset.selection import load

from tests import servers
from tests.cli.conftest import Run
from tests.cli.suggest.recorded import Calls, record, write
from tests.history import with_history
from tests.servers.install import needs
from tests.wrapped import ROOT

FULLSYNC = [sys.executable, str(ROOT / "examples/fullsync/server.py")]
STATUS = "roxtra_index_full_sync_status"
NOISY = 4_000  # bytes of an answer, from which on a tool gets a rule


def draft(recording: str, folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Draft rules into a file that passes `check` and `test`; return it and its figures."""
    path = folder / "drafted.yaml"
    assert main(["suggest", recording, "-o", str(path)]) == 0
    assert main(["check", str(path)]) == 0
    assert main(["test", str(path)]) == 0
    assert all(rule.tests for file in load([str(path)]) for rule in file.rules)
    return path, figures(recording)


def figures(recording: str) -> list[dict[str, Any]]:
    """Return the rules of a draft as JSON."""
    with redirect_stdout(StringIO()) as out:
        assert main(["suggest", recording, "--json"]) == 0
    rows: list[dict[str, Any]] = json.loads(out.getvalue())
    return rows


def visible(rules: Path, recording: str, tool: str) -> int:
    """Return the bytes of the answers of a tool that a model sees under some rules."""
    files = RuleSet(load([str(rules)]))
    exchanges = [each for one in sessions([recording]) for _, each in one.exchanges]
    replays = [Replay(files, each) for each in exchanges if each.tool == tool]
    assert replays
    return sum(replay.answer.visible_size.most for replay in replays)


# The example with the six growing arrays


@pytest.mark.long
def test_the_arrays_of_a_growing_status_are_dropped_as_by_the_hand_made_rule(
    tmp_path: Path,
) -> None:
    calls: Calls = [(STATUS, {}), ("roxtra_index_full_sync", {}), (STATUS, {})]
    calls = [*calls, ("roxtra_search", {"query": "a"})]
    command = [*FULLSYNC, "--index-dir", str(tmp_path / "index")]
    sync = record(tmp_path / "recording", command, calls)
    path, [rule] = draft(sync, tmp_path)
    [step] = rule["steps"]
    names = ["folderQueue", "visitedFolderIds", "discoveredFileIds"]
    names += ["processedContentFileIds", "failedFileIds", "unsupportedFileIds"]
    assert {*step["drop"]} == {f"progress.{name}" for name in names}
    text = path.read_text()
    assert text.startswith("# yaml-language-server: $schema=rules.schema.json\n")
    assert "server: {name: roxtra-index}" in text
    assert "66 %  progress.discoveredFileIds: 41,357 to 41,495 ids, grows" in text
    assert "No rule: no answer above 4,000 bytes: roxtra_search" in text

    by_hand = visible(ROOT / "examples/fullsync/rules.yaml", sync, STATUS)
    assert visible(path, sync, STATUS) <= 1.2 * by_hand


SERIES = {
    "metric": "cpu",
    "timestamps": [*range(1_700_000_000, 1_700_000_400)],
    "hosts": [f"host-{n}" for n in range(400)],
    "values": [n % 90 for n in range(400)],
}
TABLE = {
    "columns": [f"column_{n}" for n in range(60)],
    "types": ["VARCHAR"] * 60,
    "rows": [[n * m for m in range(60)] for n in range(120)],
}


def test_arrays_of_the_same_length_are_columns_and_rows_no_ids(tmp_path: Path) -> None:
    recording = write(tmp_path, ("series", {}, SERIES), ("query", {}, TABLE), ("other", {}, {}))
    path, rules = draft(recording, tmp_path)
    steps = {rule["tools"][0]: rule["steps"] for rule in rules}
    columns = ["timestamps", "hosts", "values"]
    assert steps["series"] == [{"paginate": {"at": columns, "limit": 1000}}]
    assert steps["query"] == [{"paginate": {"at": "rows", "limit": 1000}}]
    assert "rows: 120 arrays" in path.read_text()


def test_a_list_without_a_later_call_or_with_pages_of_the_server_stays(tmp_path: Path) -> None:
    ids = {"done": [f"d-{n}" for n in range(900)], "failed": [f"f-{n}" for n in range(700)]}
    [rule] = figures(write(tmp_path, ("status", {}, ids)))
    assert rule["steps"] == [{"paginate": {"at": ["done", "failed"], "limit": 1000}}]
    [rule] = figures(write(tmp_path, ("status", {}, {**ids, "next_range": "d-900"})))
    assert rule["steps"] == []
    assert "next_range: the server has pages of its own" in rule["evidence"]


# Servers of other people


def of_filesystem(folder: Path) -> tuple[list[str], Calls]:
    for n in range(400):
        inner = folder / "many" / f"folder {n % 12:02}"
        inner.mkdir(parents=True, exist_ok=True)
        (inner / f"file {n:03}.txt").write_text("")
    (folder / "long.txt").write_text("".join(f"{n} a line of the file\n" for n in range(3_000)))
    return servers.filesystem(folder), [
        ("search_files", {"path": str(folder), "pattern": "**/*.txt"}),
        ("directory_tree", {"path": str(folder)}),
        ("read_text_file", {"path": str(folder / "long.txt")}),
        ("list_directory", {"path": str(folder)}),
        ("get_file_info", {"path": str(folder / "many" / "folder 03" / "file 123.txt")}),
    ]


def of_git(folder: Path) -> tuple[list[str], Calls]:
    with_history(folder, 200, {199: ("long.txt", "".join(f"line {n}\n" for n in range(2_000)))})
    revision = ["git", "-C", str(folder), "rev-parse", "HEAD~150"]
    early = subprocess.run(revision, check=True, capture_output=True, text=True).stdout.strip()
    for n in range(400):
        (folder / f"new file {n:03}.txt").write_text("")
    here = {"repo_path": str(folder)}
    return servers.git(folder), [
        ("git_log", here | {"max_count": 200}),
        ("git_status", here),
        ("git_show", here | {"revision": "HEAD"}),
        ("git_show", here | {"revision": early}),
    ]


def of_sqlite(folder: Path) -> tuple[list[str], Calls]:
    with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
        shop.execute("create table orders (id integer, customer text, note text, total real)")
        rows = ((n, f"customer {n % 40}", "a long note " * 40, n * 1.5) for n in range(300))
        shop.executemany("insert into orders values (?, ?, ?, ?)", rows)
    return servers.sqlite(folder / "shop.db"), [
        ("read_query", {"query": "select * from orders"}),
        ("read_query", {"query": "select * from orders where customer = 'customer 17'"}),
    ]


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(
    "server",
    [
        of_filesystem,
        pytest.param(of_git, marks=pytest.mark.long),
        pytest.param(of_sqlite, marks=[pytest.mark.long, needs("sqlite")]),
    ],
)
def test_the_drafts_take_70_percent_off_every_noisy_tool_of_a_server(
    server: Callable[[Path], tuple[list[str], Calls]], tmp_path: Path
) -> None:
    served = tmp_path / "served"
    served.mkdir()
    command, calls = server(served.resolve())
    recording = record(tmp_path / "recording", command, calls)
    path, rules = draft(recording, tmp_path)
    covered = {tool for rule in rules for tool in rule["tools"]}
    exchanges = [each for one in sessions([recording]) for _, each in one.exchanges]
    noisy = {each.tool for each in exchanges if len(each.response) > 2 * NOISY}
    assert noisy <= covered
    # What later calls took from an answer is shown, or a view or page away.
    assert main(["replay", recording, "--rules", str(path), "--fail-on", "loss"]) == 0
    for rule in rules:
        assert rule["misfits"] == 0
        assert rule["after"] <= 0.3 * rule["before"], rule["tools"]
        assert any(f"{tool}: " in path.read_text() for tool in rule["tools"])


# Each kind of evidence

ISSUES = [
    {
        "number": 100 + n,
        "key": f"K-{n}",
        "ticket": f"K-{n}",
        "title": f"The parser fails on line {n}",
        "url": f"https://api.example.org/issues/{100 + n}",
        "html_url": f"https://example.org/issues/{100 + n}",
        "picture": f"https://pictures.example.org/{n * n}a.png",
        "repository_url": "https://api.example.org/repository",
        "locked": False,
        "plan": "standard plan",
        "state": "open",
        "author": {"login": f"ann-{n % 3}", "followers_url": "https://api.example.org/followers"},
        "body": f"Since the update, {n} of them fail. " * 30,
        "watchers": [f"person-{m}" for m in range(20)],
    }
    for n in range(40)
]


def steps_of(recording: str) -> dict[str, Any]:
    [rule] = figures(recording)
    return {name: options for step in rule["steps"] for name, options in step.items()}


def test_links_repetitions_and_constants_of_rows_go_texts_and_lists_in_them_shrink(
    tmp_path: Path,
) -> None:
    recording = write(tmp_path, ("list", {"page": 1}, ISSUES), ("list", {"page": 2}, ISSUES[:9]))
    draft(recording, tmp_path)
    steps = steps_of(recording)
    assert set(steps["drop"]) == {
        *("url", "repository_url", "author.followers_url"),  # html_url and picture stay
        "ticket",  # is the same as `key`
        "plan",  # is the same everywhere; `locked` and `state` may be the exception next time
    }
    assert steps["clip"] == {"at": "body", "max_chars": 200}
    assert steps["elide"] == {"at": "watchers", "first": 3}
    assert steps["paginate"]["limit"] >= 5


def test_columns_in_use_and_the_values_of_one_answer_alone_stay(tmp_path: Path) -> None:
    get = ("get", {"url": "https://api.example.org/issues/107", "ticket": "K-7"}, "done")
    steps = steps_of(write(tmp_path, ("list", {}, ISSUES), get))
    assert not {"url", "ticket", "plan"} & {*steps["drop"]}
    assert "repository_url" in steps["drop"]


ROWS = [{"id": n, "name": f"row {n}", "text": "words " * 10} for n in range(100)]
NESTED = [{"id": n, "more": {"name": f"row {n}", "text": "words " * 10}} for n in range(100)]
YAML = "\n".join(
    f"- id: {n}\n  more:\n    name: row {n}\n    text: {'words ' * 9}w" for n in range(99)
)
LOG = "".join(f"2026-11-{n % 28:02} 12:00 INFO request {n} took {n % 7} ms\n" for n in range(900))
PROSE = "\n".join(f"{'Word ' * (n % 17)}\n{n * 'x'}." for n in range(120))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (repr(ROWS), {"parse": {"as": "python"}}),
        (YAML, {"parse": {"as": "yaml"}}),
        (f"Found 100 rows:\n{json.dumps(NESTED)}", {"parse": {"as": "json", "after": "^[^\\[{]+"}}),
        (f"Rows\n```json\n{json.dumps(ROWS)}\n```", {"parse": {"as": "json", "fence": "json"}}),
        (LOG, None),
        (
            "\n\n".join(
                f"Commit: {n}\nMessage {n}, {n % 7 * 'and more, '}by ann\n" for n in range(400)
            ),
            None,
        ),
        (PROSE, None),
        ({f"key {n}": {"name": f"value {n}", "n": n} for n in range(300)}, None),
    ],
)
def test_each_form_of_an_answer_gets_a_rule_that_fits(
    text: Any, first: dict[str, Any] | None, tmp_path: Path
) -> None:
    _, [rule] = draft(write(tmp_path, ("get", {}, text)), tmp_path)
    assert rule["steps"][:1] == ([] if first is None else [first])
    assert rule["misfits"] == 0
    assert rule["after"] <= min(4_000, 0.5 * rule["before"])


def test_secrets_are_masked_in_the_test_of_a_rule(tmp_path: Path) -> None:
    secrets = ["ghp_0123456789abcdefghij", "ann@corp.example.com", "hunter2", "eyJhbG.eyJz.c2ln"]
    row = {"n": 1, "password": secrets[2], "mail": secrets[1], "note": f"use {secrets[0]}"}
    rows = [{**row, "text": f"Authorization: Bearer {secrets[3]}"} for _ in range(99)]
    path, _ = draft(write(tmp_path, ("list", {}, {"rows": rows})), tmp_path)
    text = path.read_text()
    assert not [secret for secret in secrets if secret in text]
    assert "***" in text


# Transcripts


def test_a_transcript_has_the_answers_and_the_models_own_words(tmp_path: Path) -> None:
    ids, failures = [f"d-{n}" for n in range(3_000)], [f"f-{n}" for n in range(2_500)]
    status = {"progress": {"status": "running", "doneIds": ids, "failedIds": failures}}
    use = {"type": "tool_use", "id": "1", "name": "mcp__sync__status", "input": {"verbose": True}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": json.dumps(status)}
    text = {"type": "text", "text": "One document failed: f-2071."}
    records = [("assistant", use), ("user", result), ("assistant", text)]
    lines = [{"type": who, "message": {"role": who, "content": [x]}} for who, x in records]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "settings.json").write_text("the client's own")
    path, [rule] = draft(str(tmp_path), tmp_path)
    assert "\nserver:" not in path.read_text()  # the client calls it as it likes
    assert rule["steps"][0] == {"drop": ["progress.doneIds"]}
    assert "progress.failedIds stays: the model's own text has it" in path.read_text()


def test_codex_writes_arguments_as_a_text(tmp_path: Path) -> None:
    name = {"name": "list", "namespace": "mcp__crm"}
    calls: list[dict[str, Any]] = [
        {"type": "function_call", **name, "call_id": "1", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": json.dumps({"rows": ISSUES})},
        {"type": "function_call", "name": "exec", "call_id": "2", "arguments": '{"cmd": "x K-7"}'},
    ]
    lines = [{"type": "response_item", "payload": payload} for payload in calls]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    [rule] = figures(str(tmp_path))
    assert "rows.ticket stays: the model's own text has it" in rule["used"]


@pytest.mark.parametrize("form", ["calls", "scripts"])
def test_the_answers_in_a_session_of_codex_get_a_rule(
    form: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    transcript = Path(__file__).parents[1] / "transcripts" / f"codex-{form}.jsonl"
    _, [rule] = draft(str(transcript), tmp_path)
    assert (rule["tools"], rule["before"]) == (["list"], 14_206)
    if form == "scripts":
        assert "id stays: the model's own text has it" in rule["used"]
        cut = "no rule for export: the client kept no whole answer; `mcp-abridge --record DIR` does"
        assert cut in capfd.readouterr().err


# Refusals


def test_each_tool_without_a_rule_has_its_reason(tmp_path: Path, run: Run) -> None:
    blocks = {
        "several": [{"type": "text", "text": "A line.\n" * 900}] * 2,
        "picture": [{"type": "image", "data": "aaaa", "mimeType": "image/png"}],
        "broken": [{"type": "text", "text": "A line.\n" * 900}],
    }
    for number, (tool, content) in enumerate(blocks.items()):
        params = {"name": tool, "arguments": {}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = {"content": content, "isError": tool == "broken"}
        exchange = {"request": request, "response": {"jsonrpc": "2.0", "id": 1, "result": result}}
        (tmp_path / f"{number}.json").write_text(json.dumps(exchange))
    out, error = run("suggest", tmp_path)
    assert out == ""
    assert [line.removeprefix("mcp-abridge suggest: ") for line in error.splitlines()] == [
        "no rule for several: its answers are several text blocks; the budget cuts them, and"
        " `document: blocks` in a rule of your own takes them for a list",
        "no rule for picture: its answers have no text",
        "no rule for broken: its answers are errors",
    ]


def test_small_answers_need_no_rule_and_a_file_is_replaced_by_force_alone(
    tmp_path: Path, run: Run
) -> None:
    out, error = run("suggest", write(tmp_path, ("get", {}, {"id": 1})))
    assert out == ""
    assert "no rule for get: no answer above 4,000 bytes" in error
    path = tmp_path / "mine.yaml"
    path.write_text("mine\n")
    words = ("suggest", write(tmp_path, ("list", {}, ISSUES)), "-o", path)
    assert "mine.yaml is there already; --force replaces it" in run(*words, code=2).err
    assert path.read_text() == "mine\n"
    folder = run(*words[:-1], tmp_path, "--force", code=2).err
    assert "is a folder; name a file in it" in folder
    run(*words, "--force")
    assert "version: 1" in path.read_text()


def test_recordings_of_several_servers_need_a_choice(tmp_path: Path, run: Run) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, ("list", {}, ISSUES))
        (tmp_path / name / "session.json").write_text(json.dumps({"server": name, "client": "x"}))
    expected = "these are recordings of several servers; choose one by --server: one, two"
    assert expected in run("suggest", tmp_path, code=2).err
    expected = "no recording of a server 'tow'; did you mean 'two'?"
    assert expected in run("suggest", tmp_path, "--server", "tow", code=2).err
    assert "server: {name: two}" in run("suggest", tmp_path, "--server", "two").out
