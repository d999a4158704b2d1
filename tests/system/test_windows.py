"""The calls of Windows; they run on Windows alone, by `make windows` under Wine."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "win32":
    pytest.skip("the calls of Windows", allow_module_level=True)

from mcp_abridge.system import windows

from tests.faults.processes import LIFE
from tests.faults.routes import failure
from tests.faults.scale import scaled
from tests.faults.sidecar import INITIALIZE, ROOT, log_messages, serving
from tests.faults.wrapper import Wrapped, call, command, naughty, ok

# Starts a process of its own, says its number, and ends with nobody's stdin.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
sys.stdout.write(f"{child.pid}\\n")
sys.stdout.flush()
time.sleep(60)
"""
# Starts the proxy, says its number once it has answered, and closes its input with its own.
CLIENT = f"""
import subprocess, sys
proxy = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
proxy.stdin.write({call(1)!r})
proxy.stdout.readline()
sys.stdout.write(f"{{proxy.pid}}\\n")
sys.stdout.flush()
sys.stdin.read()
proxy.stdin.close()
proxy.wait()
"""
PIPES: dict[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "bufsize": 0,
}
SECONDS = 20.0
# Hold a file as most programs of Windows do, which lets nobody put another into its place.
HOLDER = """
import sys
with open(sys.argv[1]) as file:
    sys.stdout.write("held\\n")
    sys.stdout.flush()
    sys.stdin.read()
"""
# The proxy on a system that refuses Job objects.
WITHOUT_JOBS = """
import sys
from mcp_abridge.system import windows
windows._kernel.CreateJobObjectW = lambda *_: None
from mcp_abridge.cli import main
sys.exit(main())
"""
# The proxy, which a signal reaches once a file is there: Wine passes on no Ctrl-C.
INTERRUPTED = """
import os, signal, sys, threading, time
gate, number = sys.argv.pop(1), int(sys.argv.pop(1))
def interrupt():
    while not os.path.exists(gate):
        time.sleep(0.05)
    signal.raise_signal(number)
threading.Thread(target=interrupt, daemon=True).start()
from mcp_abridge.cli import main
sys.exit(main())
"""
OPTIONS = ("--log-format", "json", "--ledger", "off", "--rules", "none")

KERNEL = ctypes.WinDLL("kernel32")
KERNEL.OpenProcess.restype = ctypes.c_void_p


class Running:
    """A process that runs; while this is held, its number is given to no other."""

    def __init__(self, pid: int) -> None:
        self.handle = ctypes.c_void_p(KERNEL.OpenProcess(0x100000, False, pid))  # SYNCHRONIZE
        assert self.handle, f"process {pid} does not run"

    def ends(self, seconds: float) -> bool:
        """Wait for its end; False if it does not come."""
        return bool(KERNEL.WaitForSingleObject(self.handle, int(1000 * seconds)) == 0)


def end(child: Any) -> None:
    child.release()
    assert child.process is not None
    child.process.wait(SECONDS)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script of cmd.exe in PATH, in a folder with a blank, that prints its arguments."""
    folder = tmp_path / "a b"
    folder.mkdir()
    file = folder / "shown.cmd"
    file.write_text("@echo off\necho %1\necho %2\n", encoding="ascii")
    monkeypatch.setenv("PATH", f"{folder};{os.environ['PATH']}")
    return file


def test_a_bare_name_is_found_by_path_and_pathext_and_its_words_arrive(script: Path) -> None:
    command = windows.program(["shown", "one", "two words"])
    assert command[0].lower() == str(script).lower()
    child = windows.spawn(["shown", "one", "two words"])
    with os.fdopen(child.stdout, "rb") as output:
        assert output.read().split(b"\r\n")[:2] == [b"one", b'"two words"']
    end(child)


@pytest.mark.parametrize("word", ["%PATH%", "a&b", 'a"b', "a^b", "a|b", "a\nb"])
def test_a_script_gets_no_word_that_it_would_read_otherwise(script: Path, word: str) -> None:
    with pytest.raises(ValueError, match="means something else"):
        windows.spawn(["shown", word])


def test_nor_is_a_script_started_whose_path_cmd_exe_would_read_otherwise(script: Path) -> None:
    folder = script.parent.with_name("R&D")
    script.parent.rename(folder)
    with pytest.raises(ValueError, match="or in its path, means something else"):
        windows.spawn([str(folder / script.name)])


def test_a_sidecar_says_why_it_starts_no_such_script(script: Path) -> None:
    with serving("--", "shown", "a&b") as sidecar:
        response = sidecar.post(INITIALIZE)
    assert response.status == 502
    assert "'&' in an argument, or in its path, means something else" in response.error


def test_a_program_that_is_not_there_is_an_error_with_its_name() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        windows.spawn(["no-such-program"])
    assert caught.value.filename == "no-such-program"


def test_what_a_server_has_started_ends_with_its_job() -> None:
    child = windows.spawn([sys.executable, "-c", PARENT])
    with os.fdopen(child.stdout, "rb") as output:
        grandchild = Running(int(output.readline()))
        assert not grandchild.ends(0)
        assert child.guarded
        assert child.signal(0)
        end(child)  # as if the proxy were killed: the last handle is closed
        assert grandchild.ends(SECONDS)


@pytest.mark.fault(20, "stdio")
@pytest.mark.parametrize("end", ["proxy killed", "client killed", "stdin ended"])
def test_a_server_that_stays_and_what_it_has_started_end_with_the_proxy(end: str) -> None:
    for _ in range(scaled(1, 50)):
        words = [sys.executable, "-c", CLIENT, *command("broods", "stays")]
        with subprocess.Popen(words, cwd=ROOT, **PIPES) as client:
            # The server, its child and its grandchild.
            numbers = [int(client.stderr.readline().split()[1]) for _ in range(3)]
            proxy = int(client.stdout.readline())
            family = [Running(pid) for pid in (proxy, *numbers)]
            if end == "proxy killed":
                os.kill(proxy, signal.SIGTERM)
            elif end == "client killed":
                client.kill()
            else:
                client.stdin.close()
            until = time.monotonic() + LIFE
            assert all(each.ends(max(0.0, until - time.monotonic())) for each in family)
            client.kill()


def test_a_server_without_a_job_is_served_with_a_warning_and_ends_with_its_input() -> None:
    words = [sys.executable, "-c", WITHOUT_JOBS, *OPTIONS, *naughty("stays")]
    with Wrapped(words) as wire:
        wire.works()
        ended = wire.close()
    assert ended.code == 1
    warnings = [f"warning: {windows.UNGUARDED}", f"warning: the server {windows.TERMINATED}"]
    assert log_messages(ended.stderr)[:2] == warnings


@pytest.mark.fault(19, "stdio")
@pytest.mark.parametrize("number", windows.END_SIGNALS)
def test_a_signal_of_a_console_ends_both_sides_and_answers_the_calls_in_flight(
    tmp_path: Path, number: int
) -> None:
    gate = tmp_path / "gate"
    words = [sys.executable, "-c", INTERRUPTED, str(gate), str(int(number)), *OPTIONS]
    with Wrapped([*words, *naughty("silent")]) as wire:
        wire.write(call(2, "never") + call(3))
        assert wire.line() == ok(2, "late")
        wire.write(call(4, "never"))
        gate.touch()
        lines = wire.rest()
        assert wire.process.wait(SECONDS) == 128 + number
    name = signal.Signals(number).name
    assert [failure(line, 4) for line in lines[1:]] == [f"the proxy was ended by {name}"]


def test_no_process_has_a_window() -> None:
    # Wine shows no window of a console; these are the options of all that the proxy starts.
    for options in (windows.DETACHED, windows._SUSPENDED, windows.ProcessGroup(None).options):
        assert options["creationflags"] & subprocess.CREATE_NO_WINDOW


def test_a_large_answer_is_shaped_and_memory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("version: 1\nrules: [{tools: '2*', max_bytes: 3000}]\n", encoding="utf-8")
    with Wrapped(command("large", options=("--rules", str(rules)))) as wire:
        assert len(wire.ask(call(2, str(20 << 20)).strip())) < 4000
        assert log_messages(wire.close().stderr) == []
    windows.reserve(1 << 20)
    with pytest.raises(OSError, match="not enough memory"):
        windows.reserve(1 << 50)


@pytest.mark.parametrize("way", ["replaced", "removed"])
def test_a_file_that_another_program_holds_is_changed_as_soon_as_it_is_free(
    tmp_path: Path, way: str
) -> None:
    path, new = tmp_path / "file", tmp_path / "new"
    path.write_bytes(b"old")

    def change() -> None:
        if way == "removed":
            return windows.unlink(str(path))
        new.write_bytes(b"new")
        return windows.replace(str(new), str(path))

    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], **PIPES) as holder:
        holder.stdout.readline()
        before = time.monotonic()
        with pytest.raises(PermissionError):
            change()
        assert time.monotonic() - before > 0.9
        assert path.read_bytes() == b"old"
        release = threading.Timer(0.3, holder.stdin.close)
        release.start()
        change()
        release.join()
    assert (path.read_bytes() if path.exists() else b"") == (b"new" if way == "replaced" else b"")


def test_a_large_message_fits_into_a_pipe_that_nobody_reads() -> None:
    child = windows.spawn([sys.executable, "-c", "import time; time.sleep(60)"])
    assert os.write(child.stdin, b"x" * 300_000) == 300_000
    end(child)


def test_a_locked_file_can_be_read_and_is_locked_once(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"secret")
    one, two = (windows.open_at_once(path, os.O_RDWR) for _ in range(2))
    assert windows.lock(one)
    assert not windows.lock(two, wait=False)
    assert os.read(two, 10) == b"secret"
    os.close(one)
    assert windows.lock(two, wait=False)
    os.close(two)


WORDS = ["a b", "C:\\folder\\", "a b\\", "", "中文", "https://x/?a=1&b=2", "a|b", "<c>", "d^e"]


def test_words_survive_a_line_and_cmd_exe() -> None:
    words = [*WORDS, 'say "x"']
    assert windows.split(windows.join(words)) == words
    show = [sys.executable, "-c", "import sys; sys.stdout.write(ascii(sys.argv[1:]))"]
    line = f'cmd /s /c "{windows.join([*show, *WORDS])}"'
    assert subprocess.run(line, stdout=subprocess.PIPE, check=True).stdout.decode() == ascii(WORDS)


def test_a_folder_outside_of_the_profile_is_named_and_stores_nothing() -> None:
    assert windows.publicity(os.path.expanduser("~")) is None
    with Wrapped(command("plain", options=("--store", "Z:\\"))) as wire:
        wire.works()
        [warning] = log_messages(wire.close().stderr)
    assert "--store Z:\\: the folder lies outside of" in warning
    assert "keeps its answers in memory" in warning
