"""Rule files that change while they are in use."""

import os
from pathlib import Path

import pytest

from proxy.errors import RuleErrors
from proxy.ruleset import Selection
from proxy.watch import Watch
from tests.rulecases import PYTHON

ONE = "version: 1\nrules: [{name: one, tools: a}]\n"
TWO = "version: 1\nrules: [{name: two, tools: a}]\n"
BAD = "version: 1\nrules: [{name: two, tool: a, respons: []}]\n"


def write(file: Path, text: str, *, unseen: bool = False) -> None:
    """Write a file; `unseen` leaves its time as it was, and its size if the text is as long."""
    before = file.stat() if unseen else None
    file.write_text(text)
    if before is not None:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def names(watch: Watch) -> list[str]:
    return [rule.name for file in watch.files for rule in file.rules]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(ONE)
    os.utime(file, (1, 1))
    return file


def test_a_change_is_read_and_said_once(file: Path) -> None:
    said: list[str] = []
    watch = Watch([str(file)], said.append, pytest.fail)
    before = watch.files
    watch.look()
    assert watch.files is before
    write(file, TWO)
    watch.look()
    watch.look()
    assert names(watch) == ["two"]
    assert said == [f"the rules have changed and apply from now on: {file}"]


def test_a_mistake_leaves_the_old_rules_and_is_said_once(file: Path) -> None:
    said: list[str] = []
    applied: list[str] = []
    watch = Watch([str(file)], applied.append, said.append)
    before = watch.files
    write(file, BAD)
    for _ in range(60):
        watch.look()
    assert watch.files is before
    assert said == [
        f"the rules have changed, but the old ones stay: {file}:2:21: unknown key 'tool' of a "
        "rule; did you mean 'tools'? (and 1 more)"
    ]
    assert applied == []
    write(file, TWO)
    watch.look()
    assert names(watch) == ["two"]


def test_a_change_that_time_and_size_do_not_show_is_seen_at_the_25th_look(file: Path) -> None:
    watch = Watch([str(file)], print, print)
    write(file, TWO, unseen=True)
    for _ in range(24):
        watch.look()
        assert names(watch) == ["one"]
    watch.look()
    assert names(watch) == ["two"]


def test_a_file_that_is_written_anew_as_it_was_is_no_change(file: Path) -> None:
    said: list[str] = []
    watch = Watch([str(file)], said.append, said.append)
    before = watch.files
    write(file, ONE)
    watch.look()
    assert watch.files is before
    assert said == []


def test_a_file_that_comes_into_a_folder_is_read_too(file: Path) -> None:
    watch = Watch([str(file.parent)], print, print)
    write(file.with_name("another.yaml"), TWO)
    for _ in range(25):
        watch.look()
    assert names(watch) == ["two", "one"]


def test_a_file_that_goes_away_leaves_its_rules(file: Path) -> None:
    said: list[str] = []
    watch = Watch([str(file)], said.append, said.append)
    file.unlink()
    watch.look()
    assert names(watch) == ["one"]
    [line] = said
    assert line.startswith("the rules have changed, but the old ones stay: ")


def test_python_stays_allowed_and_as_it_was_first_read(file: Path) -> None:
    own = file.with_name("own.py")
    own.write_text((PYTHON / "own.py").read_text())
    step = "transforms: {noise: 'own:Noise'}\nrules: [{tools: a, response: [noise]}]\n"
    write(file, f"version: 1\n{step}")
    with pytest.raises(RuleErrors):
        Watch([str(file)], print, print)
    watch = Watch([str(file)], print, pytest.fail, allow_python=True)
    [before] = watch.files[0].rules[0].pipeline
    own.write_text("raise ValueError")
    write(file, f"version: 1\n# another one\n{step}")
    watch.look()
    [after] = watch.files[0].rules[0].pipeline
    assert watch.files[0].rules[0].place.endswith(":4")
    assert type(after) is type(before)


def test_what_is_wrong_from_the_start_is_raised(file: Path) -> None:
    file.write_text(BAD)
    with pytest.raises(RuleErrors):
        Watch([str(file)], print, print)


def test_a_selection_goes_by_the_files_as_they_are_now(file: Path) -> None:
    selection = Selection(Watch([str(file)], print, print), None, print)
    before = selection("server", "client")
    assert selection("server", "client") is before
    write(file, TWO)
    after = selection("server", "client")
    assert [rule.name for rule in after.files[0].rules] == ["two"]
    assert selection("server", "client") is after
