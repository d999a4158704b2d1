"""Python that rule files name: real modules in a folder, loaded as `run` loads them."""

import sys
from pathlib import Path

import pytest
from mcp_abridge.ruleset.loading.plugins import PluginLoader, PythonError, check_parameters
from mcp_abridge.transforms.base import Parameter
from msgspec import Struct

from tests.platforms import with_slashes
from tests.rulecases import PYTHON

BOTH = (PYTHON / "own.py").read_text()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, so that messages name files as a person would."""
    monkeypatch.chdir(tmp_path)
    return Path()


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def load(reference: str, key: str = "transforms", folder: Path | None = None) -> type:
    return PluginLoader(folder or Path(), allowed=True).load(reference, key)


def refusal(reference: str, key: str = "transforms") -> str:
    with pytest.raises(PythonError) as caught:
        load(reference, key)
    return str(caught.value)


def test_nothing_is_run_that_is_not_allowed(here: Path) -> None:
    write(here / "noise.py", "raise SystemExit('it was run')")
    message = "'noise:Noise' is Python code, which runs only with --allow-python"
    with pytest.raises(PythonError, match=message):
        PluginLoader(here, allowed=False).load("noise:Noise", "transforms")


def test_a_class_comes_from_a_file_beside_the_rules_or_in_folders_below(here: Path) -> None:
    write(here / "noise.py", BOTH)
    write(here / "lib" / "shop" / "noise.py", BOTH)
    assert load("noise:Noise").__name__ == "Noise"
    assert load("noise:Gate", "guards").__name__ == "Gate"
    assert load("lib.shop.noise:Noise").__name__ == "Noise"


def test_a_module_that_is_not_beside_the_rules_may_be_installed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(here / "site" / "noise_of_a_package" / "steps.py", BOTH)
    monkeypatch.syspath_prepend(here / "site")
    assert load("noise_of_a_package.steps:Noise").__module__ == "noise_of_a_package.steps"


def test_a_module_beside_the_rules_comes_before_an_installed_one(here: Path) -> None:
    write(here / "json.py", BOTH)
    assert load("json:Noise").__name__ == "Noise"


def test_two_folders_may_each_have_a_module_of_one_name(here: Path) -> None:
    for folder in ("a", "b"):
        write(here / folder / "hints.py", BOTH.replace('"noise"', f'"{folder}"', 1))
    classes = [load("hints:Noise", folder=here / folder) for folder in ("a", "b")]
    assert [vars(each)["name"] for each in classes] == ["a", "b"]


def test_a_file_is_run_once_however_often_it_is_named_unless_it_failed(here: Path) -> None:
    write(here / "lib" / "noise.py", "1 / 0")
    assert "ZeroDivisionError" in refusal("lib.noise:Noise")
    write(here / "lib" / "noise.py", f"{BOTH}\nwith open('runs', 'a') as out: out.write('x')")
    first = load("lib.noise:Noise")
    assert load("noise:Noise", folder=here / "lib") is first
    assert load("noise:Noise", folder=(here / "lib").absolute()) is first
    assert (here / "runs").read_text() == "x"


def test_modules_beside_each_other_import_each_other_with_a_dot(here: Path) -> None:
    write(here / "codes.py", "CODES = ('slow',)")
    write(here / "noise.py", f"from .codes import CODES\n{BOTH}\nNoise.codes = CODES")
    assert vars(load("noise:Noise"))["codes"] == ("slow",)
    assert "codes" not in sys.modules
    write(here / "other.py", "from codes import CODES")
    assert refusal("other:Noise").endswith(
        "; what lies beside it is imported by 'from .codes import ...'"
    )


# tests/cases/bad/python.yaml has more of the first kind.
@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("niose:Noise", "no module 'niose': no file niose.py, and none is installed; did you mean"),
        ("json.no:A", "no module 'json.no': no file json/no.py, and none is installed"),
        ("noise:Nosie", "noise.py has no class 'Nosie'; did you mean 'Noise'?"),
        ("json:Zebra", "the module 'json' has no class 'Zebra'"),
        ("json:dumps", "'json:dumps' is no msgspec Struct; write class dumps(Struct"),
        (
            "noise:Gate",
            "'noise:Gate' is no transform: it has no window, cuts; name a guard",
        ),
    ],
)
def test_a_reference_that_leads_to_no_class_is_reported(
    reference: str, message: str, here: Path
) -> None:
    write(here / "noise.py", BOTH)
    assert with_slashes(refusal(reference)).startswith(message)
    advice = "'noise:Noise' is a transform, not a guard; name it under 'transforms'"
    assert refusal("noise:Noise", "guards") == advice


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n1 / 0", " raises ZeroDivisionError: division by zero (noise.py:2)"),
        ("def a(:", " raises SyntaxError: invalid syntax (noise.py, line 1)"),
        ("raise SystemExit", " raises SystemExit: (noise.py:1)"),
    ],
)
def test_an_exception_of_a_module_is_reported_with_its_line(
    text: str, message: str, here: Path
) -> None:
    write(here / "noise.py", text)
    assert refusal("noise:Noise") == f"noise.py{message}"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("(Struct, frozen=True)", "(Struct)", "can change while it is in use; write class "),
        ("    cuts: ClassVar[bool] = False\n", "", "is no transform: it has no cuts"),
        ("def __call__", "def call", "is no transform: it has no __call__"),
        ('= "noise"', '= "keep"', "has the name 'keep', which a step of the proxy's own has"),
        ("window: ClassVar[bool] = False", "window: ClassVar[bool] = True", "cannot be a window"),
    ],
)
def test_a_class_that_is_no_transform_is_reported_with_the_remedy(
    before: str, after: str, message: str, here: Path
) -> None:
    assert before in BOTH
    write(here / "noise.py", BOTH.replace(before, after, 1))
    assert refusal("noise:Noise").startswith(f"'noise:Noise' {message}")


class _Adding(Struct, frozen=True):
    parameters: object


def test_arguments_that_cannot_be_advertised_are_reported() -> None:
    check_parameters(_Adding({"word": Parameter({"type": "string", "pattern": "^a"})}))
    with pytest.raises(PythonError, match=r"its parameters are .*, not a mapping of names"):
        check_parameters(_Adding(["word"]))
    pattern = Parameter({"type": "string", "pattern": "(?=a)"})
    message = "the pattern of its parameter 'word': .* is not a regular expression RE2 takes"
    with pytest.raises(PythonError, match=message):
        check_parameters(_Adding({"word": pattern}))
