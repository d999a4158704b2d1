"""Shows that the raw client keeps bytes and deadlines, and leaves no process behind."""

import os
import sys

import pytest

from tests.wire import Wire


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


ECHO = python("import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)")
SILENT = python("""
import os, sys
os.write(2, b'on stderr')
os.write(1, b'ready\\n')
sys.stdin.read()
""")
STUBBORN = python("""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b'parent\\n' if os.fork() else b'child\\n')
time.sleep(600)
""")


def test_what_is_written_comes_back_as_the_same_bytes() -> None:
    raw = b"\xff\x00 {}\r\n\n" + b"x" * 3_000_000 + b"\n" + b"no newline"
    with Wire(ECHO) as wire:
        wire.write(raw)
        wire.shut_stdin()
        lines = [wire.line() for _ in range(4)]
        assert b"".join(lines) == raw
        assert [len(line) for line in lines] == [7, 1, 3_000_001, 10]
        assert wire.line() == b""


def test_what_takes_too_long_is_an_error_with_what_the_command_said() -> None:
    with Wire(SILENT) as wire:
        assert wire.line() == b"ready\n"
        with pytest.raises(TimeoutError, match=r"no line, only b'' .*on stderr"):
            wire.line(0.5)
    with Wire(STUBBORN) as wire, pytest.raises(TimeoutError, match=r"of 5000000 bytes not taken"):
        wire.write(b"x" * 5_000_000, 0.5)


def test_leaving_kills_the_whole_group() -> None:
    with Wire(STUBBORN) as wire:
        assert {wire.line(), wire.line()} == {b"parent\n", b"child\n"}
        assert wire.group_alive()
    assert wire.process.returncode == -9
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(wire.stdout)
