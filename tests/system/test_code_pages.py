"""The code page of the machine, which changes nothing; `make windows` has three."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mcp_abridge.system import platform

if platform.PIPED is None:
    pytest.skip("code pages are those of Windows", allow_module_level=True)

from tests.faults.sidecar import call
from tests.faults.wrapper import naughty

FOLDER = "李 明 Привет Übung"
# Says what Python writes without us, so that the test does not hold on a machine with UTF-8.
ENCODING = "import sys; sys.stdout.write(sys.stdout.encoding)"
NOISY = """
import sys
for line in sys.stdin.buffer:
    sys.stderr.buffer.write("заметка 笔记\\n".encode() + bytes([0x80, 0xFF, 10]))
    sys.stderr.buffer.flush()
    sys.stdout.buffer.write(line.replace(b'"method"', b'"result"'))
    sys.stdout.buffer.flush()
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PYTHONUTF8", raising=False)
    home = tmp_path / FOLDER
    home.mkdir()
    monkeypatch.setenv("USERPROFILE", str(home))
    if python("-c", ENCODING).stdout == b"utf-8":
        pytest.skip("on Windows: no code page here but that of UTF-8")
    return home


def python(*words: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, *words]
    return subprocess.run(command, input=stdin, capture_output=True, check=False)


def verb(*words: object, stdin: bytes = b"", code: int = 0) -> str:
    """Run a verb; return what it writes to both, which must be UTF-8 with lines as we end them."""
    ended = python("-m", "mcp_abridge", *map(str, words), stdin=stdin)
    assert ended.returncode == code, ended
    raw = ended.stdout + ended.stderr
    assert b"\r" not in raw
    return raw.decode()


def test_what_we_write_is_utf_8_and_so_is_what_we_read(home: Path) -> None:
    rules = home / "规则.yaml"
    rules.write_text("version: 1\nrules: [{tools: x, Описание: 1}]\n", encoding="utf-8")
    assert f"{rules}:2:" in verb("check", rules, code=1)
    assert "'Описание'" in verb("check", rules, code=1)
    wrapper = ("--rules", rules, *naughty("plain"))
    assert f"{rules}:2:" in verb(*wrapper, stdin=call(1) + b"\n", code=2)
    assert "unexpected '--нет'" in verb("--нет", code=2)
    config = home / ".cursor" / "mcp.json"
    config.parent.mkdir()
    config.write_text('{"mcpServers": {"文件": {"command": "файл"}}}', encoding="utf-8")
    assert "文件" in verb("wrap")
    assert "файл" in verb("wrap", "--json")
    answer = home / "答案.json"
    answer.write_text(json.dumps({"строка": "米"}, ensure_ascii=False), encoding="utf-8")
    assert "米" in verb("view", answer, '"строка"')


def test_bytes_of_a_server_and_of_its_stderr_pass(home: Path) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "米 каша"}
    raw = json.dumps(request, ensure_ascii=False).encode() + b"\n"
    words = ("-m", "mcp_abridge", "--rules", "none", "--", sys.executable, "-c", NOISY)
    ended = python(*words, stdin=raw)
    assert ended.stdout == raw.replace(b'"method"', b'"result"')
    assert "заметка 笔记\n".encode() + b"\x80\xff\n" in ended.stderr
