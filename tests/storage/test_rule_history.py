"""Records that a rule file was in force for a server."""

from pathlib import Path

import pytest
from mcp_abridge.storage import rule_history
from mcp_abridge.storage.rule_history import RuleHistory


def test_a_record_is_of_one_server_and_one_file_and_tells_no_secret(tmp_path: Path) -> None:
    RuleHistory("server --token swordfish", pytest.fail).add("rules.yaml")

    again = RuleHistory("server --token swordfish", pytest.fail)
    assert "rules.yaml" in again
    assert str(Path("rules.yaml").absolute()) in again
    assert "other.yaml" not in again
    assert "rules.yaml" not in RuleHistory("other server", pytest.fail)
    [record] = Path(again.folder).iterdir()
    assert record.read_text() == f"{Path('rules.yaml').absolute()}\n"
    assert "swordfish" not in record.name
    assert record.stat().st_mode & 0o777 == 0o600


def test_the_oldest_records_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_history, "_MOST", 3)
    for number in range(5):
        RuleHistory(f"server {number}", pytest.fail).add("rules.yaml")
    history = RuleHistory("server 4", pytest.fail)
    assert "rules.yaml" in history
    assert len(list(Path(history.folder).iterdir())) == 3


def test_if_nothing_can_be_read_or_recorded_the_log_says_so_once_and_this_process_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    lines: list[str] = []
    history = RuleHistory("server", lines.append)
    for _ in range(2):
        assert "rules.yaml" not in history
    for _ in range(2):
        history.add("rules.yaml")
    unread, unrecorded = lines
    assert "whether it was in force in an earlier session cannot be read" in unread
    assert "`required: true` of `server` in it stops calls then" in unrecorded
    assert "rules.yaml" in history


def test_a_rule_file_that_never_was_meant_for_a_server_is_forgotten_alone() -> None:
    for name in ("one.yaml", "two.yaml"):
        RuleHistory("server", pytest.fail).add(name)
    history = RuleHistory("server", pytest.fail)
    Path(history.record("one.yaml")).unlink()
    assert ("one.yaml" in history, "two.yaml" in history) == (False, True)
