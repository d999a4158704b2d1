"""Rule files that change while they are in use."""

import os
from pathlib import Path

import pytest
from mcp_abridge.errors import RuleErrors
from mcp_abridge.ruleset.rule_set import RuleFile
from mcp_abridge.ruleset.watch import Watch

from tests.platforms import on_posix
from tests.rulecases import PYTHON

ONE = "version: 1\nrules: [{name: one, tools: a}]\n"
TWO = "version: 1\nrules: [{name: two, tools: a}]\n"


def names(watch: Watch) -> list[str]:
    return [rule.name for file in watch.files for rule in file.rules]


def watching(file: Path) -> tuple[Watch, list[str], list[str]]:
    """Watch a file; return the lines on changes that apply, and on those that do not, too."""
    applied: list[str] = []
    warnings: list[str] = []
    return Watch([str(file)], applied.append, warnings.append), applied, warnings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(ONE)
    os.utime(file, (1, 1))
    return file


def test_a_file_that_comes_into_a_folder_is_read_too(file: Path) -> None:
    watch = Watch([str(file.parent)], print, print)
    file.with_name("another.yaml").write_text(TWO)
    watch.look()
    assert names(watch) == ["two", "one"]


@on_posix("no links that any user may make")
def test_a_folder_that_a_link_leads_to_may_be_swapped(tmp_path: Path) -> None:
    # As Kubernetes does with a ConfigMap: files lead through a link, which is replaced.
    for name, text in (("..1", ONE), ("..2", TWO)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rules.yaml").write_text(text)
        os.utime(tmp_path / name / "rules.yaml", (1, 1))
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "rules.yaml").symlink_to("..data/rules.yaml")
    for each in (tmp_path, tmp_path / "rules.yaml"):
        watch = Watch([str(each)], print, pytest.fail)
        (tmp_path / "..next").symlink_to("..2")
        os.replace(tmp_path / "..next", tmp_path / "..data")
        watch.look()
        assert names(watch) == ["two"]
        (tmp_path / "..next").symlink_to("..1")
        os.replace(tmp_path / "..next", tmp_path / "..data")


class Racing(Watch):
    """Has its file written anew right after it was read, once."""

    def _load(self) -> tuple[RuleFile, ...]:
        files = super()._load()
        [name] = self._names
        if ONE in Path(name).read_text():
            Path(name).write_text(TWO)
        return files


def test_a_write_while_the_files_are_read_is_not_missed(file: Path) -> None:
    watch = Racing([str(file)], print, pytest.fail)
    watch.look()
    assert names(watch) == ["two"]


@pytest.mark.fault(43, "inside")
def test_a_file_that_is_half_written_leaves_the_old_rules_until_it_is_whole(file: Path) -> None:
    watch, _, lines = watching(file)
    for end in (20, 30, len(TWO)):
        file.write_text(TWO[:end])
        watch.look()
        assert names(watch) == (["two"] if end == len(TWO) else ["one"])
    assert len(lines) == 2


@pytest.mark.fault(43, "inside")
@pytest.mark.parametrize(
    "what",
    [
        pytest.param("pipe", marks=on_posix("no named pipes in folders")),
        pytest.param("endless", marks=on_posix("no devices that are files")),
        "gone",
    ],
)
def test_a_path_that_is_no_file_leaves_the_old_rules_until_it_is_one(file: Path, what: str) -> None:
    watch, applied, lines = watching(file)
    file.unlink()
    if what == "pipe":
        os.mkfifo(file)
    elif what == "endless":
        file.symlink_to("/dev/zero")
    for _ in range(60):
        watch.look()
    assert (names(watch), applied) == (["one"], [])
    [line] = lines
    assert line.startswith("the rules have changed, but the old ones stay: ")
    file.unlink(missing_ok=True)
    file.write_text(TWO)
    watch.look()
    assert (names(watch), len(applied)) == (["two"], 1)


def test_python_stays_allowed_and_as_it_was_first_read(file: Path) -> None:
    own = file.with_name("own.py")
    own.write_text((PYTHON / "own.py").read_text())
    step = "transforms: {noise: 'own:Noise'}\nrules: [{tools: a, response: [noise]}]\n"
    file.write_text(f"version: 1\n{step}")
    with pytest.raises(RuleErrors):
        Watch([str(file)], print, print)
    watch = Watch([str(file)], print, pytest.fail, allow_python=True)
    [before] = watch.files[0].rules[0].pipeline
    own.write_text("raise ValueError")
    file.write_text(f"version: 1\n# another one\n{step}")
    watch.look()
    [after] = watch.files[0].rules[0].pipeline
    assert watch.files[0].rules[0].place.endswith(":4")
    assert type(after) is type(before)
