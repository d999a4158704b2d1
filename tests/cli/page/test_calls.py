"""`replay --html` and `--watch`: recorded calls in a browser, and rules that are edited."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.page.conftest import Click
from tests.faults.scale import LONG

CALLS, LINE = (10_000, 10_000_000) if LONG else (500, 1_000_000)
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e"
ISSUES = [
    {"number": n, "title": f"title {n}", "state": "open", "body": f"body of {n} " + "x" * 300}
    for n in range(100, 180)
]
RULE = """version: 1
rules:
  - tools: list_issues
    response:
      - keep: [number, title]
"""


def record(folder: Path, *calls: tuple[str, dict[str, Any], Any], client: str = "codex") -> Path:
    folder.mkdir()
    (folder / "session.json").write_text(json.dumps({"server": "tracker", "client": client}))
    for number, (tool, arguments, content) in enumerate(calls):
        text = content if isinstance(content, str) else json.dumps(content)
        line = {"jsonrpc": "2.0", "id": number}
        params = {"name": tool, "arguments": arguments}
        exchange = {
            "request": {**line, "method": "tools/call", "params": params},
            "response": {**line, "result": {"content": [{"type": "text", "text": text}]}},
        }
        (folder / f"{number:05}-call.json").write_text(json.dumps(exchange))
    return folder


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """Record calls, one of which uses a value of another, and one of a hostile server."""
    return record(
        tmp_path / "recordings",
        ("list_issues", {"state": "open"}, ISSUES),
        ("get_issue", {"issue_number": 117, "mark": "title 131"}, ISSUES[17]),
        ("read_log", {}, "\n".join(f"{n}: worker started" for n in range(3000))),
        (HOSTILE, {HOSTILE: HOSTILE}, [{HOSTILE: HOSTILE}, "\x1b[31m" + "y" * LINE]),
        ("whoami", {}, {"login": "ann"}),
    )


def elements(html: str) -> dict[str, Any]:
    parts = re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', html)
    return {name: json.loads(text) for name, text in parts}


def test_the_page_holds_calls_and_answers_and_is_for_its_owner_alone(
    recordings: Path, tmp_path: Path, run: Run
) -> None:
    path = tmp_path / "page.html"
    path.touch()
    path.chmod(0o644)
    err = run("replay", recordings, "--html", path).err
    assert err == (
        f"mcp-abridge replay: wrote {path} with the recorded answers; you alone can read the file\n"
    )
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    html = path.read_text(encoding="utf-8")
    assert "<img" not in html
    assert "\u202e" not in html
    assert len(html) < 1_000_000  # one line of megabytes is cut
    parts = elements(html)
    head = parts["calls-data"]
    hostile = HOSTILE.replace("\u202e", "\\u202e")
    tools = ["list_issues", "get_issue", "read_log", hostile, "whoami"]
    assert [call[0] for call in head["calls"]] == tools
    clients = [each["label"] for each in head["clients"]]
    assert clients[:3] == ["as recorded", "Claude Code", "Codex"]
    assert {*parts} == {"calls-data", *(f"call-{n}" for n in range(5))}
    detail = parts["call-0"]
    view = detail["views"][detail["of"][0]]
    assert {*view["marks"]} == {"s", "c"}  # all titles, and the beginning of each body
    assert ["117", "shown"] in [[each["value"], each["place"]] for each in view["used"]]


def test_values_are_masked_and_one_client_is_enough(recordings: Path, run: Run) -> None:
    html = run("replay", recordings, "--html", "-", "--redact", "title", "--client", "codex").out
    assert "title 105" not in html
    assert json.loads(elements(html)["call-0"]["trees"][0][1][4]) == "***"
    assert [each["label"] for each in elements(html)["calls-data"]["clients"]] == ["codex"]


def test_a_page_of_nothing_or_without_a_file_is_refused(tmp_path: Path, run: Run) -> None:
    (tmp_path / "empty").mkdir()
    err = run("replay", tmp_path / "empty", "--html", tmp_path / "page", code=2).err
    assert "no recorded call in" in err
    err = run("replay", tmp_path / "none", "--html", tmp_path / "page", code=2).err
    assert f"no recorded call in {tmp_path / 'none'}, which is not there; `mcp-abridge" in err
    assert not (tmp_path / "page").exists()
    assert "--html FILE" in run("replay", tmp_path / "empty", "--open", code=2).err


def test_explain_writes_a_page_of_one_call(recordings: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "page.html"
    run("explain", recordings / "00000-call.json", "--html", path)
    parts = elements(path.read_text(encoding="utf-8"))
    assert {*parts} == {"calls-data", "call-0"}
    assert parts["calls-data"]["calls"][0][0] == "list_issues"


@pytest.fixture
def served(recordings: Path, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Serve the page; return its address and the rule file that it follows."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULE.replace("keep: [number, title]", "drop: [body]"))
    command = [sys.executable, "-m", "mcp_abridge", "replay", "--watch", "--rules"]
    with (
        open(tmp_path / "stderr", "w") as errors,
        subprocess.Popen(
            [*command, rules, "--", recordings], stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        yield process.stdout.readline().strip(), rules
        process.terminate()


def test_only_who_has_the_address_is_answered(served: tuple[str, Path], tmp_path: Path) -> None:
    import urllib.error
    import urllib.request

    address, _ = served
    head, token = address.rstrip("/").rsplit("/", 1)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", head)
    assert len(token) >= 32

    def status(url: str, **headers: str) -> int:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    assert status(address) == 200
    assert status(address, Origin=head) == 200
    assert status(address, Origin="http://example.org") == 403
    assert status(address, Host="example.org") == 403
    assert status(f"{head}/{'x' * len(token)}/") == 404
    assert status(f"{head}/") == 404
    assert status(f"{address}call/0?client=0") == 200
    assert status(f"{address}call/99?client=0") == 404
    assert status(f"{address}call/0?client=99") == 400
    with socket.create_connection(("127.0.0.1", int(head.rpartition(":")[2]))) as connection:
        connection.sendall(b"GET /\x1b[31m HTTP/1.1\r\n\r\n")
        assert b" 400 " in connection.recv(100)
    assert (tmp_path / "stderr").read_text().count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows starts its browser without words")
def test_the_words_of_a_browser_open_the_page_once(recordings: Path, tmp_path: Path) -> None:
    from urllib.error import HTTPError
    from urllib.request import urlopen

    words, browser = tmp_path / "words", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {words}.new\nmv {words}.new {words}\n')
    browser.chmod(0o700)
    command = [sys.executable, "-m", "mcp_abridge", "replay", "--watch", "--open"]
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    with subprocess.Popen(
        [*command, recordings],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        while not words.exists():
            time.sleep(0.01)
        opened = words.read_text().strip()
        assert opened != address
        with urlopen(opened) as response:
            assert response.url == address
        with pytest.raises(HTTPError, match="404"):
            urlopen(opened)
        process.terminate()


@pytest.mark.slow
def test_in_a_browser_calls_are_found_opened_and_followed(
    recordings: Path, served: tuple[str, Path], tmp_path: Path, run: Run, click: Click
) -> None:
    page, many = tmp_path / "page.html", tmp_path / "many.html"
    run("replay", recordings, "--html", page)
    calls = (("whoami", {"n": n}, {"login": n}) for n in range(CALLS))
    run("replay", record(tmp_path / "many", *calls), "--html", many, "--client", "codex")
    address, rules = served
    view = click("click_calls.mjs", page, many, address, rules, RULE, tmp_path)
    assert view["errors"] == []
    assert view["accessible"] == []  # what axe has to say of four states
    assert view["beyond"] == [0, 0]  # no part of it is wider than a telephone
    assert {url for url in view["requests"] if not url.startswith(address)} == {
        page.as_uri(), many.as_uri()
    }  # fmt: skip

    hostile = HOSTILE.replace("\u202e", "\\u202e")
    sizes = [hostile, "read_log", "list_issues", "get_issue", "whoami"]
    assert view["sorted"][:2] == [sizes, sizes[::-1]]
    assert view["sorted"][2] == sorted(sizes)
    assert view["found"].startswith("5 of 5 calls, ")
    assert view["filtered"] == ["list_issues"]
    assert view["opened"] == ["call-title", 'list_issues({"state": "open"})']
    assert [step[0] for step in view["steps"]] == ["received", "abridge"]
    assert view["used"][0] == ["117", "[17].number", "get_issue took it as issue_number", "shown"]
    assert sum(int(each.split(": ")[1]) for each in view["legend"]) == 4 * len(ISSUES)
    assert view["hit"] == ["1 of 10, cut short; 10 of them shown or in part", "c found"]
    assert view["read"][0].startswith('{"same":{"state":"open"},"columns":["title","number",')
    assert view["closed"] == "list_issues"  # where the keyboard was before

    assert (view["drawn"], view["drawnThen"]) == (200, 400)
    assert view["of"].startswith(f"{CALLS:,} of {CALLS:,} calls")
    assert view["without"].endswith("14 B (about 5 and 5 tokens).")

    assert view["legendBefore"] == ["shown: 240", "cut short: 0", "left out: 80"]
    assert view["mistakes"] == [
        f"{rules}:2:1: unknown key 'rulez' of a rule file; did you mean 'rules'?",
    ]
    assert view["legendAfter"] == ["shown: 160", "cut short: 0", "left out: 160"]
    assert view["ruleInList"] == "list_issues"
