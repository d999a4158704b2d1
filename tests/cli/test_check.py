from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.rulecases import BAD, GOOD, PYTHON, expected


def test_valid_files_are_listed_with_their_counts(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text("version: 1\nrules: [{tools: a, tests: [{given: 1, expect: 1}]}]\n")
    Path("b.yaml").write_text("version: 1\nrules: []\n")
    output = "ok: a.yaml: 1 rule, 1 test\nok: b.yaml: 0 rules, 0 tests\n"
    assert run("check", "a.yaml", "b.yaml") == (output, "")


def test_every_problem_is_on_stderr_and_the_code_is_1(run: Run) -> None:
    (seven,) = [path for path in BAD if path.stem == "seven"]
    out, err = run("check", seven, GOOD[0], code=1)
    assert err.splitlines() == [f"{seven}:{line}" for line in expected(seven)]
    assert len(err.splitlines()) == 7
    assert out.startswith(f"ok: {GOOD[0]}: ")


def test_a_given_file_that_is_absent_is_a_problem_of_its_line(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rule = "version: 1\nrules:\n- tools: a\n  tests:\n  - {given_file: a.json, expect: 1}\n"
    Path("r.yaml").write_text(rule)
    assert run("check", "r.yaml", code=1).err == "r.yaml:5: given_file: there is no file 'a.json'\n"


def test_an_unreadable_file_gives_2_and_the_others_are_checked(tmp_path: Path, run: Run) -> None:
    (seven,) = [path for path in BAD if path.stem == "seven"]
    missing, broken = tmp_path / "missing.yaml", tmp_path / "broken.yaml"
    broken.write_text("version: 'one\n")
    err = run("check", missing, seven, broken, code=2).err
    lines = err.splitlines()
    assert lines[0] == f"{missing}: no such file or directory"
    assert lines[-1] == f"{broken}:1:10: this quote is not closed"
    assert len(lines) == 9


@pytest.mark.parametrize(
    ("words", "variable", "code"), [((), "", 1), (("--allow-python",), "", 0), ((), "1", 0)]
)
def test_python_is_loaded_only_with_the_flag_or_its_variable(
    words: tuple[str, ...], variable: str, code: int, run: Run
) -> None:
    [path] = PYTHON.glob("*.yaml")
    out, err = run("check", path, *words, MCP_ABRIDGE_ALLOW_PYTHON=variable, code=code)
    assert out == (f"ok: {path}: 3 rules, 7 tests\n" if code == 0 else "")
    refusal = "'own:Noise' is Python code, which runs only with --allow-python"
    assert err.splitlines()[:1] == [f"{path}:4:21: transforms: {refusal}"] * code
