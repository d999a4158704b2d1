import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from mcp_abridge.cli.schema import PAGES
from mcp_abridge.ruleset.loading.yaml_nodes import plain_value, read
from mcp_abridge.ruleset.selection import library

from tests.cli.conftest import Run
from tests.reference import schemas
from tests.reference.__main__ import PARTS, RULES, SIDECAR
from tests.rulecases import BAD, GOOD, PYTHON, editor

CONFIGS = Path(__file__).parents[1] / "cases" / "config"
WHOLE = [
    pytest.param(schemas.rules(), id="rules"),
    pytest.param(schemas.configuration(), id="configuration"),
]


VALIDATOR = Draft7Validator(schemas.rules())


def value(path: Path) -> Any:
    root, _ = read(path.name, path.read_bytes())
    assert root is not None
    return plain_value(root)


@pytest.mark.parametrize(
    ("flag", "make"), [((), schemas.rules), (("--config",), schemas.configuration)]
)
def test_the_verb_prints_valid_schemas(flag: tuple[str], make: Any, run: Run) -> None:
    assert json.loads(run("schema", *flag).out) == make()
    Draft7Validator.check_schema(make())


@pytest.mark.parametrize(
    "path",
    [*GOOD, *PYTHON.glob("*.yaml"), *library().values()],
    ids=lambda path: path.stem,
)
def test_every_good_file_fits_the_schema(path: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(value(path))] == []


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_the_schema_refuses_a_wrong_structure_and_no_mistake_that_only_check_can_see(
    path: Path,
) -> None:
    if (verdict := editor(path)) in ("accepts", "refuses"):
        assert VALIDATOR.is_valid(value(path)) == (verdict == "accepts")


@pytest.mark.parametrize(
    ("head", "fits"),
    [({}, False), ({"guards": {"noise": "own:Gate"}}, False), ({"transforms": {}}, True)],
)
@pytest.mark.parametrize("step", ["noise", {"noise": {"most": 3}}, [["noise"]]])
@pytest.mark.parametrize("key", ["response", "errors"])
def test_the_schema_accepts_a_step_of_a_plugin_if_files_may_name_one(
    key: str, step: Any, head: dict[str, Any], fits: bool
) -> None:
    text = {"version": 1, **head, "rules": [{"tools": "a", key: step}]}
    assert VALIDATOR.is_valid(text) is fits
    assert VALIDATOR.is_valid({"version": 1, **head, "defaults": {key: step}}) is fits


def test_options_of_a_built_in_step_are_checked_everywhere() -> None:
    steps: list[Any] = [{"clip": {"word": 1}}, "keep", {"clip": {}, "noise": {}}]
    for step in steps:
        text = {"version": 1, "transforms": {}, "rules": [{"tools": "a", "response": step}]}
        assert not VALIDATOR.is_valid(text)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*/*.yaml")), ids=lambda path: path.stem)
def test_the_schema_of_configurations_refuses_only_a_wrong_structure(path: Path) -> None:
    fits = path.parent.name == "good" or editor(path) == "accepts"
    assert Draft7Validator(schemas.configuration()).is_valid(value(path)) == fits


@pytest.mark.parametrize("whole", WHOLE)
def test_every_option_of_the_schema_is_described_by_a_sentence(whole: schemas.Schema) -> None:
    definitions = {"": whole, **whole["definitions"]}
    texts = {
        f"{name}.{key}": option.get("description", "")
        for name, definition in definitions.items()
        for key, option in definition.get("properties", {}).items()
    }
    assert [name for name, text in texts.items() if not re.fullmatch("[^a-z].*[.]", text)] == []


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (("--sidecar",), [SIDECAR]),
        (("--reference", "steps"), [RULES.parent / "reference" / "steps.md"]),
        (("--reference",), [RULES, *(RULES.parent / "reference" / f"{name}.md" for name in PAGES)]),
    ],
)
def test_the_verb_prints_a_reference_on_demand(
    words: tuple[str, ...], files: list[Path], run: Run
) -> None:
    texts = [file.read_text(encoding="utf-8") for file in files]
    assert run("schema", *words) == ("\n".join(texts), "")


def test_every_page_of_the_reference_is_printed_in_the_order_of_its_head_page(run: Run) -> None:
    names = re.findall(r"\]\(reference/(\w+)\.md\)", RULES.read_text())
    assert tuple(dict.fromkeys(names[1:])) == PAGES
    assert {path.stem for path in PARTS} == set(PAGES)
    assert "'views', 'clients'" in run("schema", "--reference", "budgets", code=2).err
