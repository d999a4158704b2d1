"""The secret of a store, and the environments that it tells apart."""

import json
import re
import subprocess
import sys
from pathlib import Path

from mcp_abridge.storage import scope
from mcp_abridge.storage.folder import Folder
from mcp_abridge.storage.scope import changed_variables, secret
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
        changed_variables(str(tmp_path / name), "a command", {"TOKEN": "x"})
    one, other = (
        {file.name for file in (tmp_path / name).iterdir()} - {"secret", scope.ENVIRONMENTS}
        | {*re.findall(r'[^"]{40}', (tmp_path / name / scope.ENVIRONMENTS).read_text())}
        for name in ("one", "other")
    )
    assert len(one) == len(other) == 3
    assert one.isdisjoint(other)


def test_a_new_environment_is_compared_with_the_likest_of_the_same_server(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert changed_variables(folder, "a", {"TOKEN": "1", "HOME": "/a"}) == []
    assert changed_variables(folder, "b", {"TOKEN": "2"}) == []
    assert changed_variables(folder, "a", {"TOKEN": "2", "HOME": "/b"}) == ["TOKEN", "HOME"]
    assert changed_variables(folder, "a", {"TOKEN": "2", "HOME": "/b"}) == []
    assert changed_variables(folder, "a", {"TOKEN": "2", "HOME": "/b", "RUN": "1"}) == ["RUN"]
    assert changed_variables(folder, "a", {"TOKEN": "2"}) == ["HOME"]


def test_endless_environments_fill_no_folder(tmp_path: Path) -> None:
    for number in range(scope._MOST + 9):
        changed_variables(str(tmp_path), "a", {"RUN": str(number)})
    assert {file.name for file in tmp_path.iterdir()} == {"secret", scope.ENVIRONMENTS}
    assert len(json.loads((tmp_path / scope.ENVIRONMENTS).read_text())) == scope._MOST
