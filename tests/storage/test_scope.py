"""The secret of a store: from a name in it, nobody finds what it stands for."""

import subprocess
import sys
from pathlib import Path

from mcp_abridge.storage.folder import Folder
from mcp_abridge.storage.scope import secret
from mcp_abridge.storage.snapshots import Key, Snapshot

READ = "import sys; from mcp_abridge.storage.scope import secret; print(secret(sys.argv[1]))"


def test_processes_that_start_at_once_have_one_secret(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    # As a process leaves it that is killed while it writes.
    path.write_bytes(b"torn")
    command = [sys.executable, "-c", READ, str(path)]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    [value] = {reader.communicate(timeout=60)[0].strip() for reader in readers}

    assert value == secret(str(path))
    assert len(value) == 64
    assert secret(str(tmp_path / "other")) != value
    assert (tmp_path / "other").stat().st_mode & 0o777 == 0o600


def test_a_name_in_a_store_cannot_be_computed_from_a_guess_of_what_it_stands_for(
    tmp_path: Path,
) -> None:
    key = Key("a command and its TOKEN", "rule", "call")
    for name in ("one", "other"):
        Folder(str(tmp_path / name)).put(key, Snapshot(b"{}", b"[]"))
    one, other = (
        {file.name for file in (tmp_path / name).iterdir()} - {"secret"}
        for name in ("one", "other")
    )
    assert len(one) == len(other) == 1
    assert one.isdisjoint(other)
