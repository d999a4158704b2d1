"""Sizes as people write them, and what is said of those that are none."""

import pytest
from mcp_abridge.document.sizes import size


@pytest.mark.parametrize(
    ("text", "bytes"),
    [("1", 1), ("900B", 900), ("8kB", 8000), ("8KB", 8000), ("4MiB", 4 << 20), ("1GB", 10**9)],
)
def test_a_size_is_a_number_with_or_without_a_unit(text: str, bytes: int) -> None:
    assert size(text) == bytes


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5kB", "8 kB", "kB", "8kb", "8TB", "²B"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size; write it like 8kB, 256MB or 1GiB"):
        size(text)
