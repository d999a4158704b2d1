"""`weigh` sums up what models read, from transcripts as Claude Code and Codex write them.

Those in `transcripts/` are of Codex 0.171.0 with a server `crm-eu`. Of lines that stay, only texts
that Codex had cut are shorter, and say so; what tells of no call is left out.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

ROWS = json.dumps([{"id": n, "title": f"Row {n}", "body": "b" * 300} for n in range(400)])
TRANSCRIPTS = Path(__file__).parent / "transcripts"
SAVED = (
    "Error: result (%d characters across 1 line) exceeds maximum allowed tokens. Output has been"
    " saved to %s.\nFormat: Plain text\n"
)


def claude(*messages: tuple[str, list[dict[str, Any]]]) -> str:
    records = [{"type": role, "message": {"role": role, "content": c}} for role, c in messages]
    return "".join(json.dumps(each) + "\n" for each in records)


def use(id: str, name: str) -> tuple[str, list[dict[str, Any]]]:
    return "assistant", [{"type": "tool_use", "id": id, "name": name, "input": {}}]


def result(id: str, content: Any) -> tuple[str, list[dict[str, Any]]]:
    return "user", [{"type": "tool_result", "tool_use_id": id, "content": content}]


def codex(*payloads: dict[str, Any]) -> str:
    records = [{"type": "response_item", "payload": payload} for payload in payloads]
    return "".join(json.dumps(each) + "\n" for each in records)


def output(text: str) -> dict[str, Any]:
    head = {"type": "input_text", "text": "Wall time: 0.0155 seconds\nOutput:"}
    content = [head, {"type": "input_text", "text": text}]
    return {"type": "function_call_output", "call_id": "c", "output": content}


CALL = {"type": "function_call", "name": "list", "namespace": "mcp__crm", "call_id": "c"}


def weights(run: Run, folder: Path) -> dict[str, dict[str, Any]]:
    return {each.pop("tool"): each for each in json.loads(run("weigh", folder, "--json").out)}


def test_answers_are_counted_as_the_model_read_them(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a").mkdir()
    blocks = [{"type": "text", "text": "äb\ud83d"}, {"type": "image", "source": {}}]
    item = use("1", "mcp__crm__get_item"), result("1", blocks)
    other = use("2", "Bash"), result("2", "not of an MCP server")
    listed = use("3", "mcp__crm__list"), result("3", ROWS)
    transcript = claude(*item, *other, *listed) + 'no JSON: "mcp__\n'
    (tmp_path / "a" / "s.jsonl").write_text(transcript)
    (tmp_path / "rollout.jsonl").write_text(codex(CALL, output("x" * 300)))
    (tmp_path / "notes.txt").write_text("no transcript")

    tools = weights(run, tmp_path)
    assert list(tools) == ["crm/list", "crm/get_item"]
    size = len(ROWS)
    figures = {"calls": 2, "read": size + 300, "whole": size + 300, "largest": size, "cut": 0}
    assert figures.items() <= tools["crm/list"].items()
    assert 300 < tools["crm/list"]["in_budget"] < 12_000
    assert tools["crm/get_item"]["read"] == 4


@pytest.mark.parametrize("transcript", ["s.jsonl", "s/subagents/agent-1.jsonl"])
def test_an_answer_that_the_client_saved_is_weighed_whole_and_no_other_file(
    transcript: str, tmp_path: Path, run: Run
) -> None:
    own, other = (tmp_path / session / "tool-results" for session in ("s", "other"))
    for folder in (own, other):
        folder.mkdir(parents=True)
        (folder / "saved.txt").write_text(ROWS)
    (own / "link").symlink_to(other / "saved.txt")
    os.mkfifo(own / "pipe")
    paths = own / "saved.txt", own / "link", own / "pipe", own / "gone", other / "saved.txt"
    (tmp_path / transcript).parent.mkdir(exist_ok=True)
    (tmp_path / transcript).write_text(
        "".join(
            claude(use(str(number), f"mcp__crm__{number}"), result(str(number), SAVED % (9, path)))
            for number, path in enumerate(paths)
        )
        + codex(CALL, output("x" * 9 + "…2000 tokens truncated…" + "y" * 9))
    )
    tools = weights(run, tmp_path)
    assert tools["crm/0"]["whole"] == len(ROWS)
    assert tools["crm/0"]["in_budget"] < 12_000
    for tool in ("crm/1", "crm/2", "crm/3", "crm/4", "crm/list"):
        assert (tools[tool]["whole"], tools[tool]["cut"]) == (0, 1)


def test_what_a_script_printed_stands_beside_what_its_calls_returned(run: Run) -> None:
    tools = weights(run, TRANSCRIPTS / "codex-scripts.jsonl")
    assert [*tools] == [f"crm-eu/{name}" for name in ("export", "list", "get", "broken", "slow")]
    assert sum(each["to_scripts"] for each in tools.values()) == 6
    printed = {name.partition("/")[2]: each["read"] for name, each in tools.items()}
    # Two answers, of which the larger counts; a script that printed first and went on.
    assert printed["export"] > 400 > 23 == printed["get"] == len('first\n{"state": "done"}')
    assert printed["list"] == len('60\n["A-1003","A-1043"]')
    export = tools["crm-eu/export"]
    assert (export["whole"], export["cut"]) == (154_699, 1)
    assert export["in_budget"] == export["read"]
    assert "6 of them went to scripts" in run("weigh", TRANSCRIPTS / "codex-scripts.jsonl").out


def test_a_script_that_had_not_ended_has_its_calls(tmp_path: Path, run: Run) -> None:
    lines = (TRANSCRIPTS / "codex-scripts.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "r.jsonl").write_text("".join(lines[:11]))
    assert weights(run, tmp_path)["crm-eu/get"]["calls"] == 2


def test_an_answer_that_codex_cut_is_known_whole_from_its_event(run: Run) -> None:
    tools = weights(run, TRANSCRIPTS / "codex-calls.jsonl")
    assert [*tools] == ["crm-eu/list", "crm-eu/get", "crm-eu/broken"]
    figures = {"calls": 1, "read": 11_993, "cut": 1, "whole": 14_206, "to_scripts": 0}
    assert figures.items() <= tools["crm-eu/list"].items()


def test_a_name_that_no_stream_takes_is_escaped(tmp_path: Path, run: Run) -> None:
    (tmp_path / "s.jsonl").write_text(claude(use("1", "mcp__crm__\ud83d"), result("1", "a")))
    assert list(weights(run, tmp_path)) == ["crm/\ud83d"]
    assert "crm/\\ud83d" in run("weigh", tmp_path).out


def test_a_table_shows_the_largest_and_what_to_do_next(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    assert "no answer of an MCP tool in 0 sessions" in run("weigh", code=1).err
    assert "nowhere: No such file or directory" in run("weigh", "nowhere", code=2).err
    (tmp_path / "notes.txt").write_text("no transcript")
    expected = "notes.txt: expected a transcript (.jsonl), a folder of them, or session.json"
    assert expected in run("weigh", tmp_path / "notes.txt", code=2).err

    (tmp_path / "projects" / "p").mkdir(parents=True)
    path = tmp_path / "projects" / "p" / "s.jsonl"
    path.write_text(claude(use("1", "mcp__crm__list"), result("1", ROWS)))
    out = run("weigh").out
    assert f"1 answer of 1 MCP tool in 1 session of the last 30 days: {len(ROWS):,} bytes" in out
    assert "crm/list" in out
    assert "`mcp-abridge wrap` lists your clients' servers; `wrap --all` wraps them" in out
