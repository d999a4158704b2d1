"""Python that rule files name: real modules in a folder, loaded as `run` loads them."""

import sys
from pathlib import Path

import pytest
from msgspec import Struct

from proxy.ruleset.guard import Guard
from proxy.ruleset.loading.plugins import ROLES, Python, PythonError, check_parameters
from proxy.transforms import TRANSFORMS
from proxy.transforms.base import Parameter, Transform

BOTH = """
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from proxy.document.tree import Slot
from proxy.ruleset.guard import Allow, Decision, QueryResult
from proxy.transforms.base import Call, Parameter, Schema


class Noise(Struct, frozen=True):
    name: ClassVar[str] = "noise"
    shorthand: ClassVar[str | None] = None
    window: ClassVar[bool] = False
    cuts: ClassVar[bool] = False
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    def __call__(self, root: Slot, call: Call) -> None:
        root.set("noise")

    def reshape(self, schema: Schema) -> Schema | None:
        return None


class Gate(Struct, frozen=True):
    name: ClassVar[str] = "gate"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    def __call__(self, call: Call, found: QueryResult | None) -> Decision:
        return Allow()
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, so that messages name files as a person would."""
    monkeypatch.chdir(tmp_path)
    return Path()


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def load(reference: str, key: str = "transforms", folder: Path | None = None) -> type:
    return Python(folder or Path(), allowed=True).load(reference, key)


def refusal(reference: str, key: str = "transforms") -> str:
    with pytest.raises(PythonError) as caught:
        load(reference, key)
    return str(caught.value)


def test_nothing_is_run_that_is_not_allowed(here: Path) -> None:
    put(here / "noise.py", "raise SystemExit('it was run')")
    with pytest.raises(PythonError) as caught:
        Python(here, allowed=False).load("noise:Noise", "transforms")
    said = "'noise:Noise' is Python code, which runs only with --allow-python"
    assert str(caught.value) == said


def test_a_class_is_found_in_a_file_beside_the_rules(here: Path) -> None:
    put(here / "noise.py", BOTH)
    assert load("noise:Noise").__name__ == "Noise"
    assert load("noise:Gate", "guards").__name__ == "Gate"


def test_dots_in_a_module_are_folders(here: Path) -> None:
    put(here / "lib" / "shop" / "noise.py", BOTH)
    assert load("lib.shop.noise:Noise").__name__ == "Noise"


def test_what_is_not_beside_the_rules_may_be_installed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(here / "site" / "noise_of_a_package" / "steps.py", BOTH)
    monkeypatch.syspath_prepend(here / "site")
    found = load("noise_of_a_package.steps:Noise")
    assert found.__module__ == "noise_of_a_package.steps"


def test_a_file_beside_the_rules_comes_before_what_is_installed(here: Path) -> None:
    put(here / "json.py", BOTH)
    assert load("json:Noise").__name__ == "Noise"
    import json

    assert json.dumps(1) == "1"


def test_two_folders_may_each_have_a_module_of_one_name(here: Path) -> None:
    for folder, name in (("a", "first"), ("b", "second")):
        put(here / folder / "hints.py", BOTH.replace('"noise"', f'"{name}"', 1))
    first = load("hints:Noise", folder=here / "a")
    second = load("hints:Noise", folder=here / "b")
    assert (vars(first)["name"], vars(second)["name"]) == ("first", "second")


def test_a_file_is_run_once_however_often_it_is_named(here: Path) -> None:
    put(here / "lib" / "noise.py", f"{BOTH}\nwith open('runs', 'a') as out: out.write('x')")
    first = load("lib.noise:Noise")
    assert load("lib.noise:Noise") is first
    assert load("noise:Noise", folder=here / "lib") is first
    assert load("noise:Noise", folder=(here / "lib").absolute()) is first
    assert (here / "runs").read_text() == "x"


def test_a_file_that_fails_is_tried_once_for_each_reading(here: Path) -> None:
    put(here / "noise.py", "with open('runs', 'a') as out: out.write('x')\n1 / 0")
    python = Python(here, allowed=True)
    for _ in range(2):
        with pytest.raises(PythonError):
            python.load("noise:Noise", "transforms")
    assert (here / "runs").read_text() == "x"
    put(here / "noise.py", BOTH)
    assert load("noise:Noise").__name__ == "Noise"


def test_modules_beside_each_other_import_each_other_with_a_dot(here: Path) -> None:
    put(here / "codes.py", "CODES = ('slow',)")
    put(here / "noise.py", f"from .codes import CODES\n{BOTH}\nNoise.codes = CODES")
    assert vars(load("noise:Noise"))["codes"] == ("slow",)
    assert "codes" not in sys.modules


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("noise", "expected 'module:Class', found 'noise'"),
        ("noise.py", "expected 'module:Class', found 'noise.py'"),
        ("lib.a.B", "expected 'module:Class', found 'lib.a.B'; write 'lib.a:B'"),
        ("noise.py:Noise", "expected 'module:Class', found 'noise.py:Noise'; write 'noise:Noise'"),
        ("./lib/a.py:B", "expected 'module:Class', found './lib/a.py:B'; write 'lib.a:B'"),
        ("a:b.C", "expected 'module:Class', found 'a:b.C'"),
        (
            "niose:Noise",
            "no module 'niose': no file niose.py, and none is installed; did you mean 'noise'?",
        ),
        ("lib.noise:Noise", "no module 'lib.noise': no file lib/noise.py, and none is installed"),
        (
            "json.nothing:A",
            "no module 'json.nothing': no file json/nothing.py, and none is installed",
        ),
        ("noise:Nosie", "noise.py has no class 'Nosie'; did you mean 'Noise'?"),
        ("noise:Zebra", "noise.py has no class 'Zebra'; known: Noise, Gate"),
        ("json:Zebra", "the module 'json' has no class 'Zebra'"),
        ("noise:Any", "'noise:Any' is no msgspec Struct; write class Any(Struct, frozen=True)"),
        (
            "json:dumps",
            "'json:dumps' is no msgspec Struct; write class dumps(Struct, frozen=True)",
        ),
    ],
)
def test_what_is_not_there_is_said_with_what_is(reference: str, said: str, here: Path) -> None:
    put(here / "noise.py", BOTH)
    assert refusal(reference) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n1 / 0", "noise.py:2 raises ZeroDivisionError: division by zero"),
        ("def a(:", "noise.py:1 raises SyntaxError: invalid syntax"),
        ("raise SystemExit", "noise.py:1 raises SystemExit"),
        ("def a():\n    raise KeyError('x')\na()", "noise.py:2 raises KeyError: 'x'"),
        (
            "import no_such_module",
            "noise.py:1 raises ModuleNotFoundError: No module named 'no_such_module'; "
            "it must be installed where mcp-abridge is",
        ),
        (
            "from codes import CODES",
            "noise.py:1 raises ModuleNotFoundError: No module named 'codes'; "
            "what lies beside it is imported by 'from .codes import ...'",
        ),
        (
            "from .cods import CODES",
            "noise.py:1 raises ModuleNotFoundError: No module named '.cods'",
        ),
        (
            "from .broken import x",
            "noise.py:1 raises ImportError: cannot import name 'x' from '.broken' (broken.py)",
        ),
        ("raise ValueError('a\\nb')", "noise.py:1 raises ValueError: a b"),
    ],
)
def test_what_a_module_raises_is_said_with_its_line(text: str, said: str, here: Path) -> None:
    put(here / "codes.py", "CODES = ()")
    put(here / "broken.py", "")
    put(here / "noise.py", text)
    assert refusal("noise:Noise").replace(f"{here.absolute()}/", "") == said


WRONG = [
    (
        '(Struct, frozen=True):\n    name: ClassVar[str] = "noise"',
        '(Struct):\n    name: ClassVar[str] = "noise"',
        "can change while it is in use; write class Noise(Struct, frozen=True)",
    ),
    (
        "class Noise(Struct, frozen=True)",
        "class Noise",
        "is no msgspec Struct; write class Noise(Struct, frozen=True)",
    ),
    (
        "def reshape",
        "def _reshape",
        "is no transform: it has no reshape; if it is a guard, name it under 'guards'",
    ),
    (
        "    cuts: ClassVar[bool] = False\n",
        "",
        "is no transform: it has no cuts; if it is a guard, name it under 'guards'",
    ),
    (
        "    shorthand: ClassVar[str | None] = None\n    window: ClassVar[bool] = False",
        "    shorthand: ClassVar[str | None]",
        "is no transform: it has no shorthand or window",
    ),
    (
        "def __call__(self, root: Slot",
        "def call(self, root: Slot",
        "is no transform: it has no __call__",
    ),
    (
        'name: ClassVar[str] = "noise"',
        'name: str = "noise"',
        "has no text as its name; write name: ClassVar[str] = ...",
    ),
    (
        '= "noise"',
        '= "keep"',
        "has the name 'keep', which a step of the proxy's own has; choose another one",
    ),
    (
        '= "noise"',
        '= "contract"',
        "has the name 'contract', which a step of the proxy's own has; choose another one",
    ),
    (
        "[str | None] = None\n    window",
        "[Any] = 3\n    window",
        "has a shorthand that is no option; write shorthand: ClassVar[str | None] = None",
    ),
    (
        "None] = None\n    window",
        'None] = "word"\n    words: str = ""\n    window',
        "has the shorthand 'word', which is no option; did you mean 'words'?",
    ),
    (
        "cuts: ClassVar[bool] = False",
        "cuts: ClassVar[Any] = 0",
        "has no true or false in cuts; write cuts: ClassVar[bool] = False",
    ),
    (
        "window: ClassVar[bool] = False",
        "window: ClassVar[bool] = True",
        "cannot be a window (window = True): only the proxy's own are; let 'paginate' or "
        "'truncate' follow it",
    ),
    (
        "(self, root: Slot, call: Call)",
        "(self, root: Slot)",
        "has a __call__ that takes other arguments; write def __call__(self, root, call)",
    ),
    (
        "(self, schema: Schema)",
        "(self)",
        "has a reshape that takes other arguments; write def reshape(self, schema)",
    ),
    (
        "    def __call__(self, root",
        "    async def __call__(self, root",
        "has an async __call__, but nothing waits for it; write def __call__(self, root, call)",
    ),
    (
        "    def reshape(self, schema: Schema) -> Schema | None:\n        return None",
        "    reshape: ClassVar[int] = 3",
        "has a reshape that is no method; write def reshape(self, schema)",
    ),
]


@pytest.mark.parametrize(("before", "after", "said"), WRONG)
def test_a_class_that_is_no_transform_is_said_to_lack_what_it_lacks(
    before: str, after: str, said: str, here: Path
) -> None:
    assert before in BOTH
    put(here / "noise.py", BOTH.replace(before, after, 1))
    assert refusal("noise:Noise") == f"'noise:Noise' {said}"


def test_a_guard_and_a_transform_are_told_apart(here: Path) -> None:
    put(here / "noise.py", BOTH)
    assert refusal("noise:Gate") == (
        "'noise:Gate' is no transform: it has no window, cuts or reshape; if it is a guard, name "
        "it under 'guards'"
    )
    assert refusal("noise:Noise", "guards") == (
        "'noise:Noise' is no guard: it has window, cuts and reshape; name a transform under "
        "'transforms'"
    )


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("set[str]", "set[str]"),
        ("list", "list"),
        ("tuple[int, str]", "tuple[int, str]"),
        ("dict[str, bytes] | None", "bytes"),
        ("Mapping[str, Sequence[complex]]", "complex"),
        ("object", "object"),
    ],
)
def test_an_option_that_no_rule_file_can_hold_is_said(option: str, shown: str, here: Path) -> None:
    before = "    def __call__(self, root"
    put(here / "noise.py", BOTH.replace(before, f"    words: {option}\n\n{before}", 1))
    assert refusal("noise:Noise") == (
        f"'noise:Noise' has an option 'words' of type {shown}, which no rule file can hold"
    )


def test_annotations_that_cannot_be_read_are_said(here: Path) -> None:
    before = "    def __call__(self, root"
    put(here / "noise.py", BOTH.replace(before, f'    words: "Wrods"\n\n{before}', 1))
    assert refusal("noise:Noise") == (
        "'noise:Noise' has options whose types cannot be read: NameError: name 'Wrods' is not "
        "defined"
    )


def test_our_own_transforms_have_all_that_is_asked_of_others() -> None:
    wanted = ("name", "shorthand", "window", "cuts", "parameters", "__call__", "reshape")
    assert ROLES["transforms"].members == wanted
    assert ROLES["guards"].members == ("name", "shorthand", "parameters", "__call__")
    assert {role.protocol for role in ROLES.values()} == {Transform, Guard}
    for kind in TRANSFORMS.values():
        assert all(any(name in vars(each) for each in kind.__mro__) for name in wanted)


class _Adding(Struct, frozen=True):
    parameters: object


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (["word"], "its parameters are ['word'], not a mapping of names to Parameter"),
        ({"word": 3}, "its parameter 'word' is 3, not a Parameter(schema)"),
        (
            {"word": Parameter({"enum": ["a"]})},
            "the schema of its parameter 'word' has no type; known: string, integer, number, "
            "boolean, array, object",
        ),
        (
            {"word": Parameter({"type": "string", "pattern": "(?=a)"})},
            "the pattern of its parameter 'word': '(?=a)' is not a regular expression RE2 takes: "
            "invalid perl operator: (?=",
        ),
    ],
)
def test_arguments_that_cannot_be_advertised_are_said(parameters: object, said: str) -> None:
    with pytest.raises(PythonError) as caught:
        check_parameters(_Adding(parameters))
    assert str(caught.value) == said


def test_arguments_that_can_be_advertised_are_right() -> None:
    check_parameters(_Adding({"word": Parameter({"type": "string", "pattern": "^a"})}))
    check_parameters(_Adding({}))
