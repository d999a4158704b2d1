"""`wrap` puts the wrapper into real configurations of clients; `unwrap` restores every byte."""

import base64
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from mcp_abridge.cli.options import read
from mcp_abridge.cli.wrap.files import ConfigFile
from mcp_abridge.cli.wrap.places import CLIENTS
from mcp_abridge.cli.wrap.text import NotPossible

from tests.cli.conftest import Run
from tests.cli.wrap.conftest import program, state_folder, write
from tests.cli.wrap.samples import SAMPLES
from tests.faults.scale import scaled
from tests.forward_proxy import ForwardProxy, at, tools
from tests.platforms import on_posix
from tests.raw_http import INITIALIZE, RawServer, always, whole
from tests.rulecases import PYTHON
from tests.wire import Wire
from tests.wrapped import START

ONE = '{"mcpServers": {"a": {"command": "x"}}}'


def write_samples(home: Path) -> None:
    for name, text in SAMPLES.items():
        write(home, name, text)


def contents(home: Path) -> dict[str, str]:
    return {name: (home / name).read_bytes().decode() for name in SAMPLES}


def test_all_clients_are_wrapped_once_and_restored_to_the_byte(home: Path, run: Run) -> None:
    write_samples(home)
    listing, advice = run("wrap")
    assert "next: mcp-abridge wrap mem, or wrap --all" in advice
    assert {line.split()[0] for line in listing.splitlines()[3:] if line.strip()} == set(CLIENTS)
    assert "wrapped" not in listing

    words = run("wrap", "--all", "--dry-run").err
    assert contents(home) == SAMPLES
    assert re.findall(r".*: (?!would be wrapped, by ).*\n", words) == []
    assert words.endswith("nothing is written (--dry-run)\n")

    difference, words = run("wrap", "--all")
    wrapped = contents(home)
    for name, text in wrapped.items():
        assert f"+++ {home / name}" in difference
        comments = re.findall(r"(?://|#) \w.*|/\* [^*]*", SAMPLES[name])
        assert [comment for comment in comments if comment not in text] == []
        assert text.startswith("\ufeff") == SAMPLES[name].startswith("\ufeff")
    for secret in ("s3cr3t", "a-long-secret", "$KEYKEY"):
        assert secret not in difference + words
    folder = state_folder()
    backups = sorted((folder / "backups").iterdir())
    private = [*backups, folder / "originals.json"]
    if sys.platform != "win32":
        assert {stat.S_IMODE(file.stat().st_mode) for file in private} == {0o600}
    assert sorted(file.read_bytes().decode() for file in backups) == sorted(SAMPLES.values())

    servers = json.loads(run("wrap", "--json").out)
    assert [server for server in servers if not server["wrapped"]] == []
    assert {s["server"] for s in servers if s["disabled"]} == {"old", "far", "o2"}
    for server in servers:
        first = "mcp-abridge" if server["scope"] == "project" else program(home)
        assert server["starts"].startswith(first), server

    difference, words = run("wrap", "--all")
    assert (difference, contents(home)) == ("", wrapped)
    assert words.count("is wrapped already") == len(servers)

    assert run("unwrap", "--all").err.count(": restored\n") == len(servers)
    assert contents(home) == SAMPLES


def test_the_entries_keep_their_other_members_and_no_secret_is_on_a_command_line(
    home: Path, run: Run
) -> None:
    write_samples(home)
    run("wrap", "--all")
    cursor = """\
    "old": { "command": "US", "args": ["--", "old"], "disabled": true },
    "cur": {
      "command": "US",
      "args": [],
      "env": {"MCP_ABRIDGE_URL": "http://127.0.0.1:1/sse", AUTH} // the stream
    }"""
    remote = """\
[mcp_servers.remote]
command = "US"
args = []
env = { "MCP_ABRIDGE_URL" = "http://127.0.0.1:1/mcp", "MCP_ABRIDGE_HEADER" = "AUTH" }
env_vars = ["HOME_TOKEN"] # at home
"""
    far = '"command": ["US"], "environment": {"MCP_ABRIDGE_URL": "http://127.0.0.1:1/mcp"}'
    cursor = cursor.replace("AUTH", '"MCP_ABRIDGE_HEADER": "Authorization: Bearer a-long-secret"')
    remote = remote.replace("AUTH", "Authorization: Bearer ${HOME_TOKEN}")
    for name, part in (
        (".cursor/mcp.json", cursor),
        (".codex/config.toml", remote.replace("\n", "\r\n")),
        (".config/Code/User/mcp.json", '"gh": {"type": "stdio", "command": "US"'),
        (".config/opencode/opencode.jsonc", far),
    ):
        text = (home / name).read_bytes().decode()
        assert part.replace("US", json.dumps(program(home))[1:-1]) in text


def test_an_edit_between_the_two_survives(home: Path, run: Run) -> None:
    write_samples(home)
    run("wrap", "--all")
    edits = {
        ".codex/config.toml": ('TOKEN = "s3cr3t"', 'TOKEN = "other"\r\nMORE = "1"'),
        ".config/zed/settings.json": ('"--a"', '"--a", "--b"'),
        ".claude.json": ('"numStartups": 7', '"numStartups": 8'),
        ".cursor/mcp.json": ("{\n", '{\n  "added": {}, // new\n'),
    }
    for name, (old, new) in edits.items():
        text = (home / name).read_bytes().decode()
        write(home, name, text.replace(old, new, 1))
    run("unwrap", "--all")
    for name, text in contents(home).items():
        old, new = edits.get(name, ("", ""))
        assert text == SAMPLES[name].replace(old, new, 1)


def test_a_file_that_its_client_wrote_anew_is_restored(home: Path, run: Run) -> None:
    names = (".claude.json", "project/.mcp.json", ".copilot/mcp-config.json")
    texts = {name: SAMPLES[name] for name in names}
    gemini = '{"mcpServers": {"g": {"httpUrl": "http://a.invalid", "headers": {"K": "v"}}}}'
    texts[".gemini/settings.json"] = gemini
    files = {write(home, name, text): text for name, text in texts.items()}
    run("wrap", "--all")
    for file in files:
        file.write_text(json.dumps({"added": 1, **json.loads(file.read_text())}, indent=3))
    assert "no record" not in run("unwrap", "--all").err
    for file, text in files.items():
        assert json.loads(file.read_text()) == {"added": 1, **json.loads(text)}


def test_without_its_record_an_entry_is_left(home: Path, run: Run) -> None:
    write_samples(home)
    before = json.loads(run("wrap", "--json").out)
    run("wrap", "--all")
    (state_folder() / "originals.json").unlink()
    words = run("unwrap", "--all", code=1).err
    assert words.count("its original entry is not recorded; write it by hand") == len(before)


def test_an_entry_whose_own_command_was_edited_is_left(home: Path, run: Run) -> None:
    file = write(home, ".cursor/mcp.json", ONE)
    run("wrap", "a")
    file.write_text(file.read_text().replace('"x"', '"y"'))
    words = run("unwrap", "a", code=1).err
    assert "a (cursor, user): its entry was changed since; write it by hand: " in words
    originals, backups = (state_folder() / name for name in ("originals.json", "backup"))
    assert f"{originals} has the original, and {backups}" in words


def test_other_rules_for_a_wrapped_server_are_refused(home: Path, run: Run) -> None:
    write(home, ".cursor/mcp.json", ONE)
    run("wrap", "a", "--rules", "github")
    assert run("wrap", "a", "--rules", "github").err.endswith(": is wrapped already\n")
    words = run("wrap", "a", "--rules", "git", code=1).err
    assert words.endswith(
        ": is wrapped already, with other options; `mcp-abridge unwrap a` comes first\n"
    )


def test_rules_with_which_the_server_would_not_start_are_refused(home: Path, run: Run) -> None:
    file = write(home, ".cursor/mcp.json", ONE)
    own = write(home, "own.py", (PYTHON / "own.py").read_text())
    step = "transforms: {noise: 'own:Noise'}\nrules: [{tools: a, response: [{noise: [a]}]}]\n"
    rules = write(home, "own.yaml", f"version: 1\n{step}")
    bad = write(home, "bad.yaml", "version: 1\nrules: [{tools: a, response: [{kep: a}]}]\n")
    empty = own.parent / "empty"
    empty.mkdir()
    for name, words in (
        (bad, f"{bad}:2:32: unknown transform 'kep'; did you mean 'keep'?"),
        (rules, "is Python code, which runs only with --allow-python"),
        ("gihub", "--rules gihub: no bundled rule file has this name; did you mean 'github'?"),
        (empty, f"--rules {empty}: a directory without *.yaml files"),
    ):
        assert words in run("wrap", "a", "--rules", name, code=2).err
    assert file.read_text() == ONE
    run("wrap", "a", "--rules", rules, "--allow-python")
    words = json.loads(file.read_text())["mcpServers"]["a"]["args"]
    assert words == ["--rules", str(rules), "--allow-python", "--", "x"]


def test_a_wrapped_server_is_told_of_scripts(home: Path, run: Run) -> None:
    file = write(home, ".cursor/mcp.json", ONE)
    run("wrap", "a", "--scripts", "on", "--rules", "github")
    words = json.loads(file.read_text())["mcpServers"]["a"]["args"]
    assert words[words.index("--rules") :][:5] == ["--rules", "github", "--scripts", "on", "--"]
    assert "only --client" in run("wrap", "--hook", "--scripts", "on", code=2).err


def test_a_name_means_all_scopes_or_those_of_one_client(home: Path, run: Run) -> None:
    user = write(home, ".cursor/mcp.json", ONE)
    project = write(home, "project/.cursor/mcp.json", ONE)
    codex = write(home, ".codex/config.toml", '[mcp_servers.a]\ncommand = "z"\n')
    words = run("wrap", "a", "--client", "cursor").err
    assert "a (cursor, user): wrapped" in words
    assert "a (cursor, project): wrapped, by mcp-abridge\n" in words
    assert ["mcp-abridge" in file.read_text() for file in (user, project, codex)] == [1, 1, 0]
    run("wrap", "a")
    assert "mcp-abridge" in codex.read_text()
    words = run("unwrap", "b", code=2).err
    assert words == "mcp-abridge unwrap: no client has a server 'b'; known: a\n"


def test_one_of_two_equal_servers_is_restored(home: Path, run: Run) -> None:
    text = '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}, "c": {"command": "x"}}}'
    file = write(home, ".cursor/mcp.json", text)
    run("wrap", "--all")
    run("unwrap", "b")
    starts = [server["starts"] for server in json.loads(run("wrap", "--json").out)]
    assert starts == [f"{program(home)} -- x", "x", f"{program(home)} -- x"]
    run("unwrap", "c", "a")
    assert file.read_text() == text


def test_a_file_that_changes_meanwhile_is_left(home: Path) -> None:
    path = write(home, ".cursor/mcp.json", "{}")
    file = ConfigFile(str(path))
    file.text = '{"ours": 1}'
    path.write_text('{"theirs": 1}')
    with pytest.raises(NotPossible, match="was changed meanwhile; try again"):
        file.write()
    assert [(entry.name, entry.read_text()) for entry in path.parent.iterdir()] == [
        ("mcp.json", '{"theirs": 1}')
    ]


@on_posix("no owner and no mode of a file")
def test_files_that_cannot_be_used_are_named_and_the_others_go_on(home: Path, run: Run) -> None:
    broken = write(home, ".cursor/mcp.json", '{\n  "mcpServers": {"a": ]}\n}')
    toml = write(home, ".codex/config.toml", '[mcp_servers.a]\ncommand = "npx\n')
    double = write(home, "project/.codex/config.toml", "[mcp_servers]\na = 1\n[mcp_servers.a]\n")
    latin = write(home, ".gemini/settings.json", "{}")
    latin.write_bytes(b'{"\xff": 1}')
    locked = write(home, ".qwen/settings.json", ONE)
    locked.chmod(0o444)
    unreadable = write(home, ".factory/mcp.json", ONE)
    unreadable.chmod(0)
    target = write(home, "dotfiles/claude", ONE)
    target.chmod(0o640)
    (home / ".claude.json").symlink_to(target)
    words = run("wrap", "--all", code=1).err
    assert f"{broken}:2:23: expecting value; left as it is" in words
    assert f"{toml}:2:14: its quote is not closed, or it has a control character; left" in words
    assert f'{double}: key "a" already exists; left as it is' in words
    assert f"{latin}: 'utf-8' codec can't decode byte" in words
    if os.geteuid():  # root reads all
        assert f"{unreadable}: Permission denied; left as it is" in words
    assert f"a (qwen-code, user): {locked} is read-only, and stays as it is" in words
    assert "a (claude-code, user): wrapped" in words
    assert "mcp-abridge" not in locked.read_text()
    assert "mcp-abridge" in target.read_text()
    assert (home / ".claude.json").is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_claude_desktop_of_the_store_is_listed_beside_the_other_one(home: Path, run: Run) -> None:
    file = "Claude/claude_desktop_config.json"
    own = write(home, f".config/{file}", ONE)
    store = write(home, f"Local/Packages/Claude_p/LocalCache/Roaming/{file}", ONE)
    out, error = run("wrap", "--json", LOCALAPPDATA=str(home / "Local"))
    assert [(row["client"], row["file"]) for row in json.loads(out)] == [
        ("claude-desktop", str(own)),
        ("claude-desktop", str(store)),
    ]
    assert f"claude-desktop has 2 files, and may read only one: {own}, {store}\n" in error
    difference, words = run("wrap", "a")
    for path in (own, store):
        assert f"+++ {path}\n" in difference
        assert f"{path} is written" in words


def test_wrap_says_that_there_is_no_server_to_wrap(home: Path, run: Run) -> None:
    write(home, ".cursor/mcp.json", "")
    assert run("wrap") == ("", "no client has a server here; `claude mcp add`, for one, adds one\n")
    run("wrap", "--all")
    words = run("wrap", "fs", code=2).err
    assert words == "mcp-abridge wrap: no client has a server 'fs'; known: none\n"
    words = run("unwrap", code=2).err
    assert words.startswith("mcp-abridge unwrap: say which: NAME, or --all (`mcp-abridge wrap`")
    file = write(home, ".cursor/mcp.json", ONE)
    [row] = json.loads(run("unwrap", "a", "--json").out)
    place = {"client": "cursor", "scope": "user", "file": str(file), "server": "a"}
    assert row == {**place, "left": False, "result": "is not wrapped"}


@pytest.fixture(scope="module")
def login_url() -> Iterator[str]:
    """Yield the URL of a server that refuses clients without a token."""
    challenge = 'WWW-Authenticate: Bearer resource_metadata="x"'
    with RawServer(always(whole(b"", "401 Unauthorized", challenge))) as server:
        yield server.url


@on_posix("no named pipes in folders")
def test_a_url_that_wants_a_login_goes_through_mcp_remote_or_is_left(
    home: Path, run: Run, login_url: str
) -> None:
    os.mkfifo(fifo := home / "fifo")
    entries = {
        "login": {"url": login_url},
        "oauth": {"url": "https://example.invalid/mcp", "oauth": {"enabled": True}},
        "own": {"url": login_url, "headers": {"Authorization": "Bearer x"}},
        "secret": {"url": f"{login_url}?key=1"},
        "file": {"url": f"file://{fifo}"},
        "blank": {"url": "http://example.invalid/a b"},
        "helper": {"url": login_url, "headersHelper": "/bin/token"},
        "id": {"url": login_url, "oauth": {"clientId": "x"}},
        "socket": {"url": "wss://example.invalid/"},
        "extension": {"settings": {}},
        "line": {"command": "npx -y server"},
        "form": {"command": "x", "args": {"b": 1}},
    }
    file = write(home, ".cursor/mcp.json", json.dumps({"mcpServers": entries}))
    words = run("wrap", "--all", code=1).err
    after = json.loads(file.read_text())["mcpServers"]
    remote = ["--", "npx", "-y", "mcp-remote@0.15.1"]
    assert after["login"]["args"] == [*remote, login_url]
    assert after["oauth"]["args"] == [*remote, "https://example.invalid/mcp"]
    bearer = {"MCP_ABRIDGE_URL": login_url, "MCP_ABRIDGE_HEADER": "Authorization: Bearer x"}
    assert (after["own"]["args"], after["own"]["env"]) == ([], bearer)
    assert words.count("mcp-remote takes its URL as a word, which others see in the list of") == 2
    reasons = {
        "secret": "wants a login, for which mcp-remote takes its URL as a word, so that others see",
        "helper": "the client logs in for it (headersHelper)",
        "id": "the client logs in for it (oauth)",
        "socket": "speaks WebSocket",
        "file": "its URL cannot be used: expected a URL such as http://server:3000/mcp, found",
        "blank": "its URL cannot be used: expected a URL such as http",
        "extension": "has neither a command nor a URL",
        "line": "its command is a whole line",
        "form": "its entry has an unusual form; edit it by hand",
    }
    for name, reason in reasons.items():
        assert after[name] == entries[name]
        assert f"{name} (cursor, user): {reason}" in words


@on_posix("no script that starts by its first line")
def test_the_command_that_is_written_starts_without_the_path_of_a_shell(
    home: Path, run: Run
) -> None:
    answer = '{"jsonrpc": "2.0", "id": 1, "result": {}}'
    script = f"input(); print('{answer}', flush=True); input()"
    server = {"command": sys.executable, "args": ["-c", script]}
    file = write(home, ".cursor/mcp.json", json.dumps({"mcpServers": {"a": server}}))
    rules = write(home, "project/rules.yaml", "version: 1\nrules: []\n")
    run("wrap", "a", "--rules", "./rules.yaml", "--rules", "github")
    entry = json.loads(file.read_text())["mcpServers"]["a"]
    assert entry["args"][:5] == ["--rules", str(rules), "--rules", "github", "--"]
    completed = subprocess.run(
        [entry["command"], *entry["args"]],
        input=b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n',
        env={"HOME": str(home)},
        cwd="/",
        capture_output=True,
        timeout=60,
    )
    assert json.loads(completed.stdout) == json.loads(answer)
    assert "did you mean 'github'" in run("wrap", "a", "--rules", "gihub", code=2).err


def test_from_the_cache_of_uvx_the_command_is_uvx(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(home, ".cursor/mcp.json", ONE)
    monkeypatch.setattr("sys.prefix", os.path.join("/x", "uv", "archive-v0", "Abc"))
    monkeypatch.setattr("mcp_abridge.cli.wrap.entry._origin", list)
    run("wrap", "a")
    entry = json.loads(file.read_text())["mcpServers"]["a"]
    assert Path(entry["command"]).stem == "uvx"
    assert entry["args"] == [f"mcp-abridge@{version('mcp-abridge')}", "--", "x"]
    assert json.loads(run("wrap", "--json").out)[0]["wrapped"] is True
    run("unwrap", "a")
    assert file.read_text() == ONE


@pytest.mark.parametrize("word", ["mcp-abridge", "mcp-abridge@0.0.1", "mcp-abridge[redis]@0.1"])
def test_an_entry_of_any_version_is_wrapped_already_and_can_be_restored(
    word: str, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(home, ".cursor/mcp.json", ONE)
    (home / ("uvx.exe" if sys.platform == "win32" else "uvx")).touch(0o755)
    monkeypatch.setenv("PATH", str(home), prepend=os.pathsep)
    with monkeypatch.context() as earlier:
        earlier.setattr("mcp_abridge.cli.wrap.entry.launcher", lambda *, shared: ["uvx", word])
        run("wrap", "a")
    advice = f" by {word}; unwrap it, and wrap it again, for {program(home)}"
    newer = advice if word == "mcp-abridge@0.0.1" else ""
    assert f"a (cursor, user): is wrapped already{newer}\n" in run("wrap", "a").err
    run("unwrap", "a")
    assert file.read_text() == ONE


def test_print_has_a_line_for_each_client_and_links(home: Path, run: Run) -> None:
    out = run("wrap", "--print", "my fs", "--", "npx", "-y", "fs", "a b").out
    us = program(home)
    name, word = ('"my fs"', '"a b"') if sys.platform == "win32" else ("'my fs'", "'a b'")
    assert f"claude mcp add {name} -- {us} -- npx -y fs {word}\n" in out
    assert f"gemini mcp add {name} {us} -- npx -y fs {word}\n" in out
    words = ["--", "npx", "-y", "fs", "a b"]
    entry = {"command": us, "args": words}
    [link] = re.findall(r"cursor://\S+", out)
    query = parse_qs(urlsplit(link).query)
    assert query["name"] == ["my fs"]
    assert json.loads(base64.b64decode(query["config"][0])) == entry
    [link] = re.findall(r"vscode:mcp/install\?(\S+)", out)
    assert json.loads(unquote(link)) == {"name": "my fs", **entry}
    assert read(words, {}).command == words[1:]

    write(home, ".cursor/mcp.json", '{"mcpServers": {"a": {"url": "https://example.org/mcp"}}}')
    assert f"codex mcp add a -- {us} https://example.org/mcp\n" in run("wrap", "--print", "a").out
    advice = "; for one without an entry, write its command or URL after --\n"
    refusal = run("wrap", "--print", "b", "https://b", code=2).err
    assert refusal == f"mcp-abridge wrap: no client has a server 'b'; known: a{advice}"
    assert run("wrap", "--print", code=2).err.endswith(f" that is not wrapped{advice}")
    write(home, ".cursor/mcp.json", '{"mcpServers": {"a": {"command": "x", "env": {"K": "v3ry"}}}}')
    out, advice = run("wrap", "--print", "a")
    assert "v3ry" not in out
    assert advice == "its environment or headers are not in these lines: add them\n"


@on_posix("no script that starts by its first line")
def test_an_entry_that_wrap_writes_uses_the_proxy_that_the_client_passes(
    home: Path, run: Run
) -> None:
    with RawServer(tools) as server, ForwardProxy() as proxy:
        entry = {"url": at(server), "headers": {"X-Key": "k"}}
        file = write(home, ".cursor/mcp.json", json.dumps({"mcpServers": {"far": entry}}))
        run("wrap", "--all")
        wrapper = json.loads(file.read_text())["mcpServers"]["far"]
        env = {**os.environ, **wrapper["env"], "HTTP_PROXY": proxy.url()}
        with Wire([wrapper["command"], *wrapper.get("args", [])], env=env) as wire:
            wire.write(INITIALIZE + b"\n")
            assert "result" in json.loads(wire.line())
        assert f"POST {at(server)}" in proxy.targets
        assert server.requests[0].headers["x-key"] == "k"


def test_wrap_asks_through_the_proxy_whether_a_server_wants_a_login(home: Path, run: Run) -> None:
    with RawServer(lambda _: iter([whole(b"", "401 Unauthorized")])) as server:
        config = json.dumps({"mcpServers": {"far": {"url": at(server)}}})
        with ForwardProxy() as proxy:
            write(home, ".cursor/mcp.json", config)
            run("wrap", "--all", http_proxy=proxy.url())
            assert proxy.targets == {f"POST {at(server)}"}
        run("unwrap", "--all")
        err = run("wrap", "--all", http_proxy=proxy.url("u:hunter2@")).err
    assert f"cannot be reached now, through the proxy {proxy.url('***@')} (http_proxy)" in err


def environment(folder: Path) -> Path:
    """Return the command of an environment of its own that has the package."""
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "rest.pth").write_text("\n".join(filter(None, sys.path)))
    command = folder / "bin" / "mcp-abridge"
    command.write_text(f"#!{folder}/bin/python\n{START}")
    command.chmod(0o755)
    return command


@pytest.mark.parametrize("way", ["moved", "removed"][: scaled(1, 2)])
@on_posix("no script that starts by its first line")
def test_entries_of_an_environment_that_is_gone_are_listed_and_another_restores_them(
    way: str, home: Path, run: Run
) -> None:
    texts = {name: SAMPLES[name] for name in (".claude.json", ".codex/config.toml")}
    for name, text in texts.items():
        write(home, name, text)
    one, other = (environment(home.parent / name) for name in ("one", "other"))

    def types(command: Path, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, *words], capture_output=True, text=True, timeout=60)

    assert types(one, "wrap", "--all").returncode == 0
    assert f'"{one}"' in (home / ".claude.json").read_text()
    assert "does not exist" not in types(other, "wrap").stderr
    if way == "removed":
        shutil.rmtree(one.parents[1])
    else:
        one.parents[1].rename(home.parent / "elsewhere")
        other = home.parent / "elsewhere" / "bin" / "mcp-abridge"
        other.write_text(other.read_text().replace("/one/", "/elsewhere/"))
    fault = f"its command {one} does not exist"
    advice = f"mem (claude-code, user): {fault}; `mcp-abridge unwrap --all` restores it\n"
    assert advice in types(other, "wrap").stderr
    assert f"warning: {advice}" in types(other, "doctor", "--", "true").stdout
    words = types(other, "wrap", "--all").stderr
    assert f"is wrapped already, but {fault}; unwrap it, and wrap it again\n" in words
    assert types(other, "unwrap", "--all").returncode == 0
    assert {name: (home / name).read_bytes().decode() for name in texts} == texts


def test_a_script_whose_python_is_gone_is_named(home: Path, run: Run) -> None:
    write(home, ".cursor/mcp.json", ONE)
    run("wrap", "a")
    Path(program(home)).write_text("#!/gone/bin/python -E\n")
    fault = f"its command {program(home)} starts /gone/bin/python -E, which does not exist"
    assert f"a (cursor, user): {fault}" in run("wrap").err


def test_unwrap_all_restores_what_was_wrapped_in_other_folders(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write(home, f"project/{name}", ONE) for name in (".mcp.json", ".cursor/mcp.json")]
    other = write(home, "other/.mcp.json", ONE)
    run("wrap", "--all")
    monkeypatch.chdir(other.parent)
    run("wrap", "--all")
    other.unlink()
    (elsewhere := home / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    assert "project" not in run("wrap").out
    words = run("unwrap", "--all", code=1).err
    assert f"a (cursor, in {files[1]}): restored\n" in words
    assert f"unwrap: {other} is gone; what is recorded of it stays\n" in words
    assert [file.read_text() for file in files] == [ONE, ONE]


def test_an_entry_comes_back_though_another_branch_had_it_unwrapped(home: Path, run: Run) -> None:
    file, other = write(home, "project/.mcp.json", ONE), write(home, ".cursor/mcp.json", ONE)
    run("wrap", "a", "--client", "claude-code")
    wrapped = file.read_text()
    file.write_text(ONE)  # a branch without it
    run("wrap")
    run("wrap", "a", "--client", "cursor")
    run("unwrap", "a", "--client", "cursor")
    file.write_text(wrapped)
    run("unwrap", "a")
    assert (file.read_text(), other.read_text()) == (ONE, ONE)


def test_a_file_that_a_project_shares_gets_a_warning_and_the_line_that_others_need(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(home, "project/.vscode/mcp.json", '{"servers": {"a": {"command": "x"}}}')
    others = f"{file} is for all who have the project, and each of them needs"
    install = "`pipx install mcp-abridge`, or `uv tool install mcp-abridge`"
    assert f"{others} {install}\n" in run("wrap", "a").err
    run("unwrap", "a")
    folder = home.parent
    (folder / "pyvenv.cfg").touch()
    active = f"; so do you, since clients find mcp-abridge only while {folder} is active\n"
    for words in (["wrap", "a", "--dry-run"], ["wrap", "a"]):
        assert f"{others} {install}{active}" in run(*words).err
    run("unwrap", "a")
    monkeypatch.setenv("PATH", "/usr/bin")
    names = f"; so do you, since it names {program(home)}; then unwrap it, and wrap it again\n"
    assert f"{others} {install}{names}" in run("wrap", "a").err
    run("unwrap", "a")
    monkeypatch.setattr("sys.prefix", os.path.join("/x", "uv", "archive-v0", "Abc"))
    monkeypatch.setattr("mcp_abridge.cli.wrap.entry._origin", list)
    assert f"{others} uv, for uvx\n" in run("wrap", "a").err
    assert '"command": "uvx"' in file.read_text()
    write(home, ".cursor/mcp.json", ONE)
    assert "for all who" not in run("wrap", "a", "--client", "cursor").err
