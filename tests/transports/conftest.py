"""Fixtures of the tests of transports."""

import os
from collections.abc import Iterator
from contextlib import suppress

import pytest


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for end in (reading, writing):
        with suppress(OSError):
            os.close(end)
