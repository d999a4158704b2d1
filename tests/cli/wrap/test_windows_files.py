"""Configurations as Windows has them: `wrap` could change what it does not mean to."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.wrap.conftest import program, write
from tests.wire import Wire
from tests.wrapped import START

NODE = {
    "command": "C:\\Program Files\\nodejs\\node.exe",
    "args": ["C:\\Users\\李 明\\我的 服务\\server.js", "--root=D:\\data\\"],
}
NPX = {"command": "cmd", "args": ["/c", "npx", "-y", "@x/files", "C:\\Users\\李 明\\Übung"]}
ENTRIES = {"node": NODE, "npx": NPX}
TOML = """\
[mcp_servers.node]
command = 'C:\\Program Files\\nodejs\\node.exe'
args = ["C:\\\\Users\\\\李 明\\\\我的 服务\\\\server.js", '--root=D:\\data\\']

[mcp_servers.npx]
command = "cmd"
args = ["/c", "npx", "-y", "@x/files", 'C:\\Users\\李 明\\Übung'] # 文件
"""
KEYS = {
    ".claude.json": "mcpServers",
    ".config/Claude/claude_desktop_config.json": "mcpServers",
    ".cursor/mcp.json": "mcpServers",
    ".gemini/settings.json": "mcpServers",
    ".config/Code/User/mcp.json": "servers",
}


def lines_of_windows(text: str, *, mark: bool) -> bytes:
    """Return a file with lines that end as on Windows, after a byte order mark if asked."""
    return ("\ufeff" * mark + text.replace("\n", "\r\n")).encode()


@pytest.mark.parametrize("mark", [False, True], ids=["plain", "byte order mark"])
def test_files_of_windows_are_wrapped_and_restored_to_the_byte(
    home: Path, run: Run, mark: bool
) -> None:
    files = {".codex/config.toml": lines_of_windows(TOML, mark=False)}
    for number, (name, key) in enumerate(KEYS.items()):
        text = json.dumps({key: ENTRIES}, indent="\t", ensure_ascii=number % 2 == 0)
        files[name] = lines_of_windows(text, mark=mark)
    for name, raw in files.items():
        write(home, name, "").write_bytes(raw)
    words = run("wrap", "--all").err
    assert words.count(": wrapped, by ") == 2 * len(files), words
    for name, key in KEYS.items():
        raw = (home / name).read_bytes()
        assert raw.count(b"\n") == raw.count(b"\r\n")
        assert raw.startswith(b"\xef\xbb\xbf") is mark
        for entry, server in json.loads(raw.decode("utf-8-sig"))[key].items():
            own = ENTRIES[entry]
            assert server["command"] == program(home)
            assert server["args"] == ["--", own["command"], *own["args"]]
    assert "李 明" in (home / ".codex" / "config.toml").read_text("utf-8")
    run("unwrap", "--all")
    assert {name: (home / name).read_bytes() for name in files} == files


def test_what_is_written_starts_a_server_in_a_folder_of_any_name(
    home: Path, run: Run, tmp_path: Path
) -> None:
    server = tmp_path / "李 明" / "我的 & 服务 %PATH% ^.py"
    server.parent.mkdir()
    server.write_text("import sys\nprint(ascii(sys.argv[1:]), file=sys.stderr)\nsys.stdin.read()\n")
    own = [str(server), "a b", 'say "x"', "%PATH%", "a&b", "", "末\\"]
    config = {"mcpServers": {"own": {"command": sys.executable, "args": own}}}
    file = write(home, ".cursor/mcp.json", json.dumps(config))
    run("wrap", "--all")
    args = json.loads(file.read_text("utf-8"))["mcpServers"]["own"]["args"]
    with Wire([sys.executable, "-c", START, *args]) as wire:
        wire.write(b"{}\n")
        assert wire.close().stderr.decode().splitlines()[-1] == ascii(own[1:])


ROWS = """
import json, sys
for line in sys.stdin:
    text = json.dumps([{"id": id, "name": "李 明" * 20} for id in range(200)])
    result = {"content": [{"type": "text", "text": text}]}
    response = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": result}
    print(json.dumps(response), flush=True)
"""


# Wine 8 resolves no path beyond 260 characters, which `wrap` and `--store` do with theirs.
def test_paths_of_any_characters_are_found_those_of_rules_and_servers_at_any_length(
    home: Path, run: Run
) -> None:
    folder = home / "李 明 & 100% ^"
    store, long = folder / "store", folder.joinpath("x" * 120, "y" * 120)
    long.mkdir(parents=True)
    server, rules = long / "server.py", long / "rules.yaml"
    own = {"command": sys.executable, "args": [str(server)]}
    file = write(folder, ".claude.json", json.dumps({"mcpServers": {"own": own}}))
    server.write_text(ROWS, encoding="utf-8")
    rules.write_text("version: 1\nrules: [{tools: list, max_bytes: 1000}]\n")
    run("wrap", "own", "--rules", rules, CLAUDE_CONFIG_DIR=str(folder))
    args = json.loads(file.read_text("utf-8"))["mcpServers"]["own"]["args"]
    assert args == ["--rules", str(rules), "--", own["command"], str(server)]
    with Wire([sys.executable, "-c", START, "--store", str(store), *args]) as wire:
        params = {"name": "list", "arguments": {}}
        [answer] = wire.send("tools/call", 1, **params)
        assert wire.close().stderr == b""
    assert len(answer) < 2000
    assert len([*store.glob("*.snapshot")]) == 1
