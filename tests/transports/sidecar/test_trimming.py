"""Memory that is free between blocks in use goes back to the system."""

import ctypes
import subprocess
import sys

import pytest

SECONDS = 60.0
GLIBC = hasattr(ctypes.CDLL(None), "malloc_trim")


def output(script: str, *words: str) -> str:
    command = [sys.executable, "-c", script, *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=True
    ).stdout


BLOCKS = """
from pathlib import Path
from proxy.transports.sidecar.sidecar import trim

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 // 1_000_000

blocks = [b"x" * 60_000 for _ in range(1000)]
del blocks[:-1]
before = resident()
trim()
print(before, resident())
"""


@pytest.mark.skipif(not GLIBC, reason="the C library has no malloc_trim")
def test_memory_below_a_block_in_use_is_returned_to_the_system() -> None:
    before, after = map(int, output(BLOCKS).split())
    assert before > 60
    assert after < before - 40
