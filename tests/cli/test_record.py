"""Recordings: whole exchanges as the server sent them, on disk with the answer, and no secrets."""

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.replay.recordings import RecordedSession, sessions

from tests.builders import call, line, texts
from tests.cli.conftest import Run
from tests.serving import FRONTS
from tests.wire import Wire
from tests.wrapped import ROOT, START, wrapped

# It lists its tools in two pages, and answers with as many books as it is asked for, at the price
# that it is told.
SERVER = """
import json, sys
for raw in sys.stdin:
    call = json.loads(raw)
    id, params = json.dumps(call.get("id")), call.get("params", {})
    asked = params.get("arguments", {})
    if call["method"] == "initialize":
        result = '{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},'
        result += '"serverInfo": {"name": "the shelf", "version": "1"}}'
    elif call["method"] == "tools/list":
        page = '"nextCursor": "2",' * ("cursor" not in params)
        name = "get" if "cursor" in params else "list"
        schema = '{"type": "object", "properties": {"token": {"type": "string"}}}'
        result = '{%s "tools": [{"name": "%s", "inputSchema": %s}]}' % (page, name, schema)
    elif call["method"] == "tools/call":
        count = asked.get("count", 1)
        books = [{"id": f"b-{n}", "token": "abc", "text": "sk-1234" * 20} for n in range(count)]
        text = json.dumps(json.dumps({"books": books}, indent=2))
        result = '{"content": [{"type": "text", "text": %s}], "price": ' % text
        result += asked.get("price", "1.0e0") + "}"
    elif call["method"] == "resources/read":
        text = json.dumps("".join(f"line {n} of a log\\n" for n in range(2000)))
        result = '{"contents": [{"uri": %s, "text": %s}]}' % (json.dumps(params["uri"]), text)
    else:
        continue
    line = '{"jsonrpc":"2.0","id":%s,"result":%s}' % (id, result)
    sys.stdout.write(line + "\\n")
    sys.stdout.flush()
"""
CLIENT = {"name": "a client", "version": "1"}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("server") / "server.py"
    path.write_text(SERVER)
    return [sys.executable, str(path)]


def recorded(server: list[str], folder: Path, *options: str) -> list[str]:
    return wrapped(server, "--rules", "none", "--record", str(folder), *options)


def speak(command: list[str], *requests: bytes) -> tuple[list[bytes], str]:
    """Return the last line that answers each request after `initialize`, and all of stderr."""
    with Wire(command, env={**os.environ, "MCP_ABRIDGE_LEDGER": "off"}) as wire:
        wire.send("initialize", "i", **HELLO)
        answers = [wire.answer(request + b"\n")[-1] for request in requests]
        ended = wire.close()
    assert ended.code == 0, ended.stderr
    return answers, ended.stderr.decode()


def recording(folder: Path) -> RecordedSession:
    [session] = sessions([str(folder)])
    return session


def books(response: bytes) -> list[dict[str, Any]]:
    [text] = texts(response)
    value: dict[str, list[dict[str, Any]]] = json.loads(text)
    return value["books"]


@pytest.mark.fault(45, "stdio")
def test_without_rules_all_passes_unchanged_and_keeps_it_for_its_owner_alone(
    server: list[str], tmp_path: Path
) -> None:
    requests = [
        line(id=1, method="tools/list"),
        line(id=2, method="tools/list", params={"cursor": "2"}),
        call("list", {"count": 900}, id=3),
        call("get/../it", {"n": 1}, id=4),
    ]
    direct, _ = speak(server, *requests)
    answers, error = speak(recorded(server, tmp_path / "new"), *requests)

    assert (answers, error) == (direct, "")
    session = recording(tmp_path)
    assert (session.server, session.client) == ("the shelf", "a client")
    assert list(session.tools) == ["list", "get"]
    names = [os.path.basename(path) for path, _ in session.exchanges]
    assert names == ["0001-list.json", "0002-get_.._it.json"]
    for (_, exchange), request, answer in zip(
        session.exchanges, requests[2:], direct[2:], strict=True
    ):
        assert exchange.request == request
        assert json.loads(exchange.response) == json.loads(answer)
        assert b"1.0e0" in exchange.response
    assert Path(session.path).name.startswith("the_shelf-2")
    for path, folders, files in os.walk(tmp_path / "new"):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
        modes = {stat.S_IMODE(os.stat(f"{path}/{name}").st_mode) for name in files}
        assert modes == ({0o600} if files else set()), folders


def test_rules_apply_to_the_client_s_copy_and_not_to_the_recording(
    server: list[str], tmp_path: Path
) -> None:
    rules, folder = tmp_path / "rules.yaml", tmp_path / "recorded"
    rules.write_text("version: 1\nrules: [{tools: '*', response: [{keep: [books.id]}]}]\n")
    words = ["--rules", str(rules), "--record", str(folder)]
    [answer], _ = speak(wrapped(server, *words), call("list", {"count": 50}))

    [(_, exchange)] = recording(folder).exchanges
    assert books(answer) == [{"id": f"b-{n}"} for n in range(50)]
    assert {tuple(book) for book in books(exchange.response)} == {("id", "token", "text")}


def test_secrets_are_masked_by_name_and_by_pattern(server: list[str], tmp_path: Path) -> None:
    command = recorded(server, tmp_path, "--redact", "TOKEN", "--redact", r"sk-\d+")
    requests = [
        line(id=1, method="tools/list"),
        call("list", {"count": 2, "auth": {"token": "abc"}, "note": "uses sk-77"}, id=2),
    ]
    [_, answer], _ = speak(command, *requests)

    assert books(answer)[0]["token"] == "abc"
    session = recording(tmp_path)
    [(path, exchange)] = session.exchanges
    assert exchange.arguments == {"count": 2, "auth": {"token": "***"}, "note": "uses ***"}
    assert books(exchange.response) == [
        {"id": f"b-{n}", "token": "***", "text": "***" * 20} for n in range(2)
    ]
    # As long as before, but for what is masked; and a schema is no secret.
    assert '\\n    {\\n      \\"id\\"' in Path(path).read_text()
    assert session.tools["list"]["inputSchema"]["properties"] == {"token": {"type": "string"}}


def test_reads_of_resources_are_recorded_too_and_replayed(
    server: list[str], tmp_path: Path, run: Run
) -> None:
    read = line(id=3, method="resources/read", params={"uri": "log:///sk-1234/a"})
    direct, _ = speak(server, read)
    answers, _ = speak(recorded(server, tmp_path / "new", "--redact", "sk-[0-9]+"), read)

    assert answers == direct
    [(_, exchange)] = recording(tmp_path).exchanges
    assert (exchange.tool, exchange.arguments) == ("resources/read", {"uri": "log:///***/a"})
    assert "line 1999" in json.loads(exchange.response)["result"]["contents"][0]["text"]
    rules = tmp_path / "rules.yaml"
    rules.write_text('version: 1\nrules: [{resources: "log:*", max_bytes: 4000}]\n')
    [row] = json.loads(run("replay", "--json", "--rules", rules, tmp_path / "new").out)["tools"]
    assert (row["tool"], row["rule"], row["calls"]) == ("resources/read", "log:*", 1)
    assert row["after"] <= 4000 < row["before"]


def test_a_killed_wrapper_leaves_the_recordings_of_answered_calls(
    server: list[str], tmp_path: Path
) -> None:
    with Wire(recorded(server, tmp_path)) as wire:
        wire.send("initialize", "i", **HELLO)
        for number in range(1, 6):
            wire.answer(call("list", {"count": number}, id=number) + b"\n")
        wire.kill()
    counts = [len(books(each.response)) for _, each in recording(tmp_path).exchanges]
    assert counts == [1, 2, 3, 4, 5]


@pytest.mark.fault(45, "stdio")
def test_a_full_folder_keeps_the_oldest_recordings_and_logs_that_once(
    server: list[str], tmp_path: Path
) -> None:
    command = recorded(server, tmp_path, "--record-size", "20kB")
    requests = [call("list", {"count": count}, id=id) for id, count in enumerate((50, 50, 50, 1))]
    answers, error = speak(command, *requests)

    assert [len(books(answer)) for answer in answers] == [50, 50, 50, 1]
    assert len(recording(tmp_path).exchanges) == 1
    [warning] = error.splitlines()
    assert warning.startswith("mcp-abridge: error: --record: 20000 bytes are in ")
    # What an earlier session left counts as well.
    _, error = speak(command, requests[0])
    assert "20000 bytes" in error
    assert sum(len(session.exchanges) for session in sessions([str(tmp_path)])) == 1


def test_an_answer_that_no_client_could_read_is_recorded_too(
    server: list[str], tmp_path: Path
) -> None:
    odd = call("list", {"price": "1,0"}, id=1)
    with Wire(recorded(server, tmp_path), env={**os.environ, "MCP_ABRIDGE_LEDGER": "off"}) as wire:
        wire.send("initialize", "i", **HELLO)
        wire.write(odd + b"\n")
        same = wire.line()
        wire.close()

    assert same.endswith(b'"price": 1,0}}\n')
    [file] = next(tmp_path.iterdir()).glob("000*")
    assert json.loads(file.read_text())["response"] == same.decode().rstrip()


@pytest.mark.fault(44, "stdio")
def test_an_exchange_that_cannot_be_written_passes(server: list[str], tmp_path: Path) -> None:
    # No file may be larger than 16 kB, as on a disk that fills up; Python's caches are none of it.
    limited = ["sh", "-c", 'ulimit -f 32; PYTHONDONTWRITEBYTECODE=1 exec "$@"', "sh"]
    requests = [call("list", {"count": count}, id=count) for count in (2, 500, 400, 3)]
    answers, error = speak([*limited, *recorded(server, tmp_path)], *requests)

    assert [len(books(answer)) for answer in answers] == [2, 500, 400, 3]
    reason = f"an exchange was not recorded in {tmp_path}: File too large"
    assert error == f"mcp-abridge: error: --record: {reason}\n"
    session = recording(tmp_path)
    names = [os.path.basename(path) for path, _ in session.exchanges]
    assert names == ["0001-list.json", "0004-list.json"]
    assert not list(Path(session.path).glob("*.new"))


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--record", "--record: an exchange was not recorded in {}: File exists\n"),
        ("--store", "--store {}: file exists; this session keeps its answers in memory\n"),
    ],
)
def test_a_folder_that_cannot_be_used_is_no_reason_to_fail_and_told_even_the_quiet(
    option: str, reason: str, server: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    [answer], error = speak(wrapped(server, "--quiet", option, str(file)), call("list"))
    assert len(books(answer)) == 1
    assert error == f"mcp-abridge: error: {reason.format(file)}"


def test_a_pattern_that_is_none_is_refused_before_anything_is_made(
    tmp_path: Path, run: Run
) -> None:
    out, error = run("--record", tmp_path / "new", "--redact", "(", "--", "x", code=2)
    assert (out, "is not a regular expression RE2 takes" in error) == ("", True)
    assert not (tmp_path / "new").exists()


def test_the_verb_of_an_earlier_version_does_the_same(server: list[str], tmp_path: Path) -> None:
    words = ["record", "--redact", "token", str(tmp_path), "--deadline", "60", "--", *server]
    direct, _ = speak(server, call("list", {"count": 900}))
    answers, error = speak([sys.executable, "-c", START, *words], call("list", {"count": 900}))
    assert answers == direct
    assert error == "mcp-abridge: `record` is now `run --rules none --record`\n"
    [(_, exchange)] = recording(tmp_path).exchanges
    assert {book["token"] for book in books(exchange.response)} == {"***"}


@pytest.mark.parametrize(
    ("front", "mode"), [("stdio", "auto"), ("http", "legacy"), ("http to a command", "auto")]
)
def test_each_transport_records_whole_answers(front: str, mode: Any, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    server = [sys.executable, str(ROOT / "tests/fixtures/counting_server.py"), f"{tmp_path}/calls"]
    words = ["--record", str(folder), "--budget", "off"]
    with FRONTS[front](server, (), tmp_path, *words) as running, running.connect(mode) as client:
        for tool in ("plain", "reads"):
            client.call(tool, {})
    recorded = list(sessions([str(folder)]))
    assert {session.server for session in recorded} == {"counting"}
    exchanges = {each.tool: each for session in recorded for _, each in session.exchanges}
    assert sorted(exchanges) == ["plain", "reads"]
    for each in exchanges.values():
        assert len(json.loads(texts(each.response)[0])["rows"]) == 1000
