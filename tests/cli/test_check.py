import argparse
from pathlib import Path

import pytest

from proxy.cli import check
from tests.rulecases import BAD, GOOD, PYTHON, expected


def checked(*rules: object) -> int:
    parser = argparse.ArgumentParser()
    check.add(parser)
    return check.run(parser.parse_args([str(name) for name in rules]))


def test_files_that_are_right_are_named_with_what_they_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text("version: 1\nrules: [{tools: a, tests: [{given: 1, expect: 1}]}]\n")
    Path("b.yaml").write_text("version: 1\nrules: []\n")
    assert checked("a.yaml", "b.yaml") == 0
    assert capsys.readouterr() == (
        "ok: a.yaml: 1 rule, 1 test\nok: b.yaml: 0 rules, 0 tests\n",
        "",
    )


def test_every_problem_is_on_stderr_and_the_code_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    (seven,) = [path for path in BAD if path.stem == "seven"]
    assert checked(seven, GOOD[0]) == 1
    out, err = capsys.readouterr()
    assert err.splitlines() == [f"{seven}:{line}" for line in expected(seven)]
    assert len(err.splitlines()) == 7
    assert out.startswith(f"ok: {GOOD[0]}: ")


def test_a_given_file_that_is_absent_is_a_problem_of_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rule = "version: 1\nrules:\n- tools: a\n  tests:\n  - {given_file: a.json, expect: 1}\n"
    Path("r.yaml").write_text(rule)
    assert checked("r.yaml") == 1
    assert capsys.readouterr() == ("", "r.yaml:5: given_file: there is no file 'a.json'\n")

    Path("a.json").write_text("1")
    assert checked("r.yaml") == 0


def test_what_cannot_be_read_gives_2_and_the_other_files_are_checked_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (seven,) = [path for path in BAD if path.stem == "seven"]
    missing, broken = tmp_path / "missing.yaml", tmp_path / "broken.yaml"
    broken.write_text("version: 'one\n")
    assert checked(missing, seven, broken) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{missing}: no such file or directory"
    assert lines[-1] == f"{broken}:1:10: this quote is not closed"
    assert len(lines) == 9


@pytest.mark.parametrize(
    ("words", "variable", "code"),
    [((), "", 1), ((), "off", 1), (("--allow-python",), "", 0), ((), "1", 0)],
)
def test_python_is_loaded_only_where_a_flag_or_its_variable_says_so(
    words: tuple[str, ...],
    variable: str,
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MCP_ABRIDGE_ALLOW_PYTHON", variable)
    [path] = PYTHON.glob("*.yaml")
    assert checked(path, *words) == code
    out, err = capsys.readouterr()
    assert out == (f"ok: {path}: 3 rules, 7 tests\n" if code == 0 else "")
    refusal = "'own:Noise' is Python code, which runs only with --allow-python"
    assert err.splitlines()[:1] == [f"{path}:4:21: transforms: {refusal}"] * code
