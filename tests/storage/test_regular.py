"""Files that others may have put there."""

import os
from pathlib import Path

import pytest
from mcp_abridge.storage.regular import open_regular


def test_a_fifo_a_folder_and_a_link_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name in ("fifo", "."):
        with pytest.raises(OSError, match="is no regular file"):
            open_regular(tmp_path / name)
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(tmp_path / "link", follow=False)
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"content"
