"""Memory that is free between blocks in use goes back to the system."""

import ctypes
import subprocess
import sys

import pytest

GLIBC = hasattr(ctypes.CDLL(None), "malloc_trim")


BLOCKS = """
from pathlib import Path
from mcp_abridge.system.allocator import trim

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
    command = [sys.executable, "-c", BLOCKS]
    completed = subprocess.run(command, capture_output=True, timeout=60.0, check=True)
    before, after = map(int, completed.stdout.split())
    assert before > 60
    assert after < before - 40
