"""Tests of the look at how much memory there is."""

import re
import resource
import sys
from pathlib import Path

import pytest

from proxy.document.tree import have_room


def test_there_is_room_for_what_is_not_large() -> None:
    have_room(0)
    have_room(10 << 20)


def test_what_no_machine_can_hold_has_no_room() -> None:
    with pytest.raises(MemoryError, match=r"^for a document of 9223372036854775807 bytes$"):
        have_room(sys.maxsize)


@pytest.mark.skipif(sys.platform != "linux", reason="the size is read from /proc")
def test_a_limit_of_the_process_counts() -> None:
    status = Path("/proc/self/status").read_text()
    size = int(re.findall(r"VmSize:\s+(\d+)", status)[0]) << 10
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), before[1]))
    try:
        have_room(1 << 20)
        with pytest.raises(MemoryError):
            have_room(32 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
