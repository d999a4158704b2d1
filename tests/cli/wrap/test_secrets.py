"""Secrets in clients' configurations: nothing prints them, and no list of processes has them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.wrap.conftest import program, state_folder, write
from tests.platforms import on_posix
from tests.raw_http import RawRequest, RawServer, whole

SECRET = "hunter2pass"
URLS = [
    f"https://user:{SECRET}@a.invalid/mcp",
    f"https://a.invalid/s/{SECRET}/mcp",
    f"https://a.invalid/{SECRET}",
    f"https://a.invalid/mcp?api_key={SECRET}",
    f"https://a.invalid/mcp?code={SECRET}",
    f"https://a.invalid/mcp?pat={SECRET}",
    f"https://a.invalid/mcp?session={SECRET}",
    f"https://a.invalid/mcp?{SECRET}",
    f"https://a.invalid/mcp#{SECRET}",
]
ARGS = [
    ["--token", SECRET],
    [f"--token={SECRET}"],
    ["-k", SECRET],
    [f"-k{SECRET}"],
    [SECRET],
    ["run", SECRET],
    ["--header", f"Authorization: Bearer {SECRET}"],
    [f"postgres://u:{SECRET}@db/{SECRET}"],
    [f"KEY={SECRET}"],
    [f'{{"key": "{SECRET}"}}'],
]
# What is before the program, or seems to be its name.
COMMANDS = [
    ["docker", "run", "--privileged", "mcp/db", SECRET],
    ["npx", "--no-install", "p", SECRET],
    ["python", "-B", "server.py", SECRET],
    ["docker", "run", f"-p{SECRET}", "mcp/db"],
    ["node", "-e", f"fetch('https://a.invalid/{SECRET}?b=1')", SECRET],
    ["npx", f"https://a.invalid/{SECRET}/p.tgz?b=1"],
    ["npx", f"https://a.invalid/{SECRET}/run"],
    ["deno", "run", "https://a.invalid/p.ts", SECRET],
    ["uvx", "--from", f"p @ git+https://{SECRET}@a.invalid/p", "p"],
    ["uvx", f"--from=p @ git+https://{SECRET}@a.invalid/p", "p"],
    ["mcp-abridge", f"https://a.invalid/{SECRET}/mcp?b=1"],
]
HEADERS = {"headers": {"X-Key": SECRET}}  # a server that is sent a header is not asked for a login
SERVERS = {
    **{f"u{at}": {"url": url, **HEADERS} for at, url in enumerate(URLS)},
    **{f"a{at}": {"command": "npx", "args": ["-y", "p", *a]} for at, a in enumerate(ARGS)},
    **{f"c{at}": {"command": each[0], "args": each[1:]} for at, each in enumerate(COMMANDS)},
    "line": {"command": f"npx -y p --token {SECRET}"},
    "env": {"command": "x", "env": {"KEY": SECRET, "PIN": 70407}},
    "bare": {"url": SECRET},
    "half": {"url": f"https://user:{SECRET}"},
    "other": {"url": "wss://a.invalid/", "note": SECRET, **HEADERS},
}
# What stands beside the servers is no business of a difference, nor what was commented out.
JSONC = f"""{{
  "oauth": {{"token": "{SECRET}", "n": [70407, 123456789]}}, // was {SECRET}
  /* "old": {{"args": ["{SECRET}"]}} */
  "mcpServers": {json.dumps(SERVERS, indent=2)}
}}"""
TOML = f"""api_key = '{SECRET}' # {SECRET}
[other."name"]
texts = ["{SECRET}", '''
{SECRET}''', "\\u0068unter2pass", \"\"\"\\\"\"\" {SECRET}\"\"\"]
[mcp_servers.t]
command = "npx"
args = ["-y", "p", "--token", "{SECRET}"]
[mcp_servers.t.env]
KEY = "{SECRET}"
[mcp_servers.u]
url = "https://a.invalid/s/{SECRET}/mcp"
http_headers = {{ "X-Key" = "{SECRET}" }}
[mcp_servers.u.env]
A = "{SECRET}"
"""
HIDDEN = (SECRET, "70407", "123456789", "unter2pass")


def test_no_secret_of_a_configuration_is_printed(home: Path, run: Run) -> None:
    json_file = write(home, ".cursor/mcp.json", JSONC)
    toml_file = write(home, ".codex/config.toml", TOML)
    one_line = write(home, ".qwen/settings.json", json.dumps({"k": SECRET, "mcpServers": SERVERS}))
    texts = [file.read_bytes() for file in (json_file, toml_file, one_line)]
    printed = [
        run("wrap"),
        run("wrap", "--json"),
        run("wrap", "--all", "--dry-run", code=1),
        *(run("wrap", "--print", name) for name in ("u1", "a0", "env")),
        run("wrap", "--all", code=1),
        run("wrap"),
        run("wrap", "--all", code=1),
        run("doctor", "--", sys.executable, "-c", "", code=1),
        run("unwrap", "--all", code=1),  # what was wrapped by hand is left
    ]
    text = "".join(part for each in printed for part in each)
    assert [line for line in text.splitlines() if any(each in line for each in HIDDEN)] == []
    for part in ("-y p --token ***", "https://a.invalid/s/***/mcp", "+++ ", '"KEY": "***"'):
        assert part in text
    assert "u (codex, user): wrapped, by" in printed[6].err
    assert "https://a.invalid/s/***/mcp" in printed[7].out  # in the list, once it is wrapped
    assert [file.read_bytes() for file in (json_file, toml_file, one_line)] == texts


def test_no_url_and_no_header_stands_among_the_words_of_a_wrapped_entry(
    home: Path, run: Run
) -> None:
    file = write(home, ".cursor/mcp.json", JSONC)
    run("wrap", "--all", code=1)
    text = re.sub(r"(?m)//.*$|/\*.*\*/", "", file.read_text().replace("://", ":\\/\\/"))
    after = json.loads(text)["mcpServers"]
    for at, url in enumerate(URLS):
        entry = after[f"u{at}"]
        assert (entry["command"], entry["args"]) == (program(home), [])
        url = url.partition("#")[0]  # no server gets to see the rest
        assert entry["env"] == {"MCP_ABRIDGE_URL": url, "MCP_ABRIDGE_HEADER": f"X-Key: {SECRET}"}
    for at, words in enumerate(ARGS):
        assert after[f"a{at}"]["args"] == ["--", "npx", "-y", "p", *words]


@on_posix("no script that starts by its first line")
def test_nobody_sees_url_and_headers_in_the_list_of_processes(home: Path, run: Run) -> None:
    if not os.path.isdir("/proc/self"):
        pytest.skip("needs /proc")
    lists: list[str] = []
    requests: list[tuple[str, str]] = []

    def answer(request: RawRequest) -> Iterator[bytes]:
        requests.append((request.path, request.headers.get("x-key", "")))
        processes = Path("/proc").glob("[0-9]*/cmdline")
        lists.extend(path.read_bytes().decode(errors="replace") for path in processes)
        yield whole(b"{}", "503 Busy")

    with RawServer(answer) as server:
        url = f"{server.url}/{SECRET}"
        servers = {"a": {"url": url, **HEADERS}}
        file = write(home, ".cursor/mcp.json", json.dumps({"mcpServers": servers}))
        run("wrap", "a")
        entry = json.loads(file.read_text())["mcpServers"]["a"]
        completed = subprocess.run(
            [entry["command"], *entry["args"]],
            input=b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n',
            env={**os.environ, **entry["env"]},
            capture_output=True,
            timeout=60,
        )
        variables = {"MCP_ABRIDGE_URL": url, "MCP_ABRIDGE_HEADER": f"X-Key: {SECRET}"}
        printed = [run("call", "--header", f"X-Key: {SECRET}", url, code=2)]
        printed += [run("call", code=2, **variables), run("doctor", code=1, **variables)]
        assert set(requests) == {(f"/mcp/{SECRET}", SECRET)}
    assert [each for each in lists if SECRET in each] == []
    assert SECRET.encode() not in completed.stdout + completed.stderr
    assert SECRET not in str(printed)
    assert "HTTP 503" in printed[0].err


def test_a_command_does_not_inherit_the_url_and_headers_of_another_server() -> None:
    code = "import os, sys; sys.stderr.write(repr(dict(os.environ)))"
    variables = {"MCP_ABRIDGE_URL": f"https://a/{SECRET}", "MCP_ABRIDGE_HEADER": f"K: {SECRET}"}
    completed = subprocess.run(
        [sys.executable, "-m", "mcp_abridge", "--", sys.executable, "-c", code],
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "'PATH'" in completed.stderr
    assert SECRET not in completed.stderr


def test_an_entry_of_an_earlier_version_works_and_is_restored_to_the_byte(
    home: Path, run: Run
) -> None:
    url = "https://a.invalid/mcp?x=1"
    members = f'"url": "{url}", "headers": {{"K": "v"}}'
    entry = {"command": program(home), "args": [url], "env": {"MCP_ABRIDGE_HEADER": "K: v"}}
    wrapped = json.dumps(entry)[1:-1]
    before, after = (f'{{"mcpServers": {{"a": {{{each}}}}}}}' for each in (members, wrapped))
    file = write(home, ".cursor/mcp.json", after)
    record = [members, wrapped, f"{{{members}}}", entry, "cursor", False]
    state_folder().mkdir(parents=True)
    records = {json.dumps([str(file), "mcpServers", "a"]): record}
    (state_folder() / "originals.json").write_text(json.dumps(records))
    assert "a (cursor, user): is wrapped already" in run("wrap", "a").err
    assert file.read_text() == after
    run("unwrap", "a")
    assert file.read_text() == before


@on_posix("no line quoted as for a shell of POSIX")
def test_print_shows_typed_words_with_a_warning_and_those_of_a_file_masked(
    home: Path, run: Run
) -> None:
    out, advice = run("wrap", "--print", "a", "--", "npx", "p", "--token", SECRET)
    assert out.count(f"--token {SECRET}\n") >= 5
    assert advice.startswith("if one of these words is secret, others see it in the list of proc")
    assert run("wrap", "--print", "a", "--", "npx", "-y", "p").err == ""
    out, advice = run("wrap", "--print", "a", "--", URLS[1])
    member = {"command": program(home), "args": [], "env": {"MCP_ABRIDGE_URL": URLS[1]}}
    assert f"JSON     {json.dumps({'a': member})}\n" in out
    assert "mcp add" not in out
    assert "only as JSON and links: a line would show others the URL" in advice
    file = write(home, ".cursor/mcp.json", JSONC)
    out, advice = run("wrap", "--print", "a0")
    assert "-- npx -y p --token '***'\n" in out
    assert f"*** may be secret: write there what {file} has" in advice
