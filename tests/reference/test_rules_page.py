"""The reference of the rule language is current, and its examples, paths and links hold."""

import json
import re
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from proxy.document.paths import Path
from proxy.ruleset.loading import rulefile
from proxy.ruleset.loading.checks import AFTER_A_WINDOW
from proxy.ruleset.rule import RuleFile
from proxy.schema.keywords import FORMATS
from proxy.testing import cases
from proxy.transforms import TRANSFORMS
from proxy.transforms.base import Transform
from tests.reference import examples
from tests.reference.__main__ import PAGES, RULES, current
from tests.reference.markdown import anchor
from tests.reference.reshaping import CANNOT_SAY, RELAXING, example, reshaping

PAGE = RULES.read_text(encoding="utf-8")
PROSE = " ".join(PAGE.split())
SAYING = [name for name, kind in TRANSFORMS.items() if example(kind)[1] is not None]


def blocks(text: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)


EXAMPLES = [
    pytest.param(name, block, id=f"{name}-{number}")
    for name, kind in TRANSFORMS.items()
    for number, block in enumerate(blocks("\n\n".join(examples.example(kind))))
]


def read(text: str) -> RuleFile:
    reading = rulefile.read("example.yaml", text.encode())
    assert reading.rules is not None, reading.problems
    return reading.rules


def check(file: RuleFile) -> int:
    results = list(cases.run(file))
    assert [result.message for result in results if not result.ok] == []
    return len(results)


def code(text: str) -> set[str]:
    """Return the words in backquotes of the first part of the prose that `text` matches."""
    match = re.search(text, PROSE)
    assert match is not None
    return set(re.findall(r"`([\w-]+)`", match[1]))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_the_generated_blocks_of_a_page_are_current(path: Any) -> None:
    assert path.read_text(encoding="utf-8") == current(path), "run `make reference`"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_every_link_leads_to_one_title(path: Any) -> None:
    page = path.read_text(encoding="utf-8")
    titles = [anchor(title) for title in re.findall(r"^##+ (.+)$", page, re.MULTILINE)]
    links = set(re.findall(r"\]\(#([^)]+)\)", page))
    # Of several titles of one name, a link leads to the first alone.
    assert {link: titles.count(link) for link in links} == dict.fromkeys(links, 1)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_lines_are_short_but_for_tables_and_code(path: Any) -> None:
    page = path.read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL).splitlines()
    assert [line for line in prose if len(line) > 120 and not line.startswith("|")] == []


def test_every_example_of_the_prose_is_a_rule_file_whose_tests_pass() -> None:
    files = [read(block) for block in blocks(PAGE) if block.startswith("version: 1")]
    assert sum(map(check, files)) == 5
    rules = [rule for file in files for rule in file.rules]
    assert any(rule.errors for rule in rules)
    assert any(rule.validate == "refuse" for rule in rules)


def test_every_format_and_every_step_after_a_window_is_named() -> None:
    assert code(r"Of `format`, (.+?) are;") == set(FORMATS)
    assert code(r"a window only (.+?) may follow") == AFTER_A_WINDOW


def test_every_path_that_is_shown_can_be_read() -> None:
    rows = re.findall(r"^\| (`.+?) \|", PAGE.partition("| path |")[2], re.MULTILINE)
    paths = [path for row in rows for path in re.findall(r"`([^`]+)`", row)]
    assert len(paths) > 5
    for path in paths[:9]:
        Path.parse(yaml.safe_load(path) if path.startswith("'") else path)


@pytest.mark.parametrize(("name", "block"), EXAMPLES)
def test_an_example_is_its_doctest_and_passes_as_the_test_of_a_rule(name: str, block: str) -> None:
    indented = "".join(f"    {line}\n" for line in block.splitlines())
    file = read(f"version: 1\nrules:\n  - tools: list\n{indented}")
    assert check(file)
    [step] = file.rules[0].pipeline
    steps = [run.step for run in examples.runs(TRANSFORMS[name])]
    assert plain(step) in map(plain, steps)


def plain(step: Transform) -> Any:
    """Return a step as it would be written: expressions are not equal to each other."""
    return step.name, examples.options(step)


def fits(schema: Any, value: Any) -> bool:
    return bool(Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize("name", SAYING)
def test_the_document_of_an_example_fits_its_schema_before_and_after(name: str) -> None:
    before, after = example(TRANSFORMS[name])
    run = examples.runs(TRANSFORMS[name])[0]
    assert fits(before, json.loads(run.before))
    if run.after is not None:  # a document read from a text is complete at the end only
        assert fits(after, json.loads(run.after))
    text = "\n\n".join(reshaping(TRANSFORMS[name]))
    if TRANSFORMS[name].reshape is RELAXING:
        assert text == ""
    else:
        assert [yaml.safe_load(block) for block in blocks(text)] == [{"from": before, "to": after}]


def test_a_step_that_cannot_say_says_that() -> None:
    silent = set(TRANSFORMS) - set(SAYING)
    assert silent == {"jmespath", "recast"}
    for name in silent:
        assert " ".join(next(reshaping(TRANSFORMS[name])).split()).endswith(CANNOT_SAY)
