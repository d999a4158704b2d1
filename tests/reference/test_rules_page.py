"""The pages and schemas are current; the examples, paths and links of the rule language hold."""

import json
import re
from typing import Any

import pytest
import yaml
from mcp_abridge.document.paths import Path
from mcp_abridge.replay import cases
from mcp_abridge.ruleset.loading import rulefile
from mcp_abridge.ruleset.rule_set import RuleFile
from mcp_abridge.schema.keywords import FORMATS
from mcp_abridge.transforms import TRANSFORMS

from tests.documents import shaped
from tests.reference.__main__ import PAGES, PARTS, RULES, SCHEMAS, current

PAGE = "\n".join(part.read_text(encoding="utf-8") for part in (RULES, *PARTS))
PROSE = " ".join(PAGE.split())
# What a step does, in the table at the top of its page; `…` stands for anything.
ROW = re.compile(r"^\| [^|]+ \| `(\w+: [^|]+?)`[^|]*\| `([^|]+)` \| `([^|]+)` \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE)


def blocks(text: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)


EXAMPLES = [block for block in blocks(PAGE) if block.startswith("response:")]


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


@pytest.mark.parametrize("path", [*PAGES, *SCHEMAS], ids=lambda path: "/".join(path.parts[-2:]))
def test_a_generated_page_or_schema_is_current(path: Any) -> None:
    assert path.read_text(encoding="utf-8") == current(path), "run `make reference`"


@pytest.mark.parametrize(("step", "before", "after"), ROWS, ids=lambda cell: cell[:40])
def test_a_row_of_the_table_of_steps_is_what_the_step_does(
    step: str, before: str, after: str
) -> None:
    [rule] = read(f"version: 1\nrules:\n  - tools: list\n    response:\n      - {step}\n").rules
    value = json.loads(shaped(before.encode(), *rule.pipeline))
    # A text that was read as structure is written as JSON in its place.
    value = json.loads(value) if step.startswith("parse") else value
    text = json.dumps(value, ensure_ascii=False)
    assert re.fullmatch(re.escape(after).replace("…", ".*"), text), text


def test_the_table_of_steps_has_every_step_but_the_one_that_bounds_the_rest() -> None:
    assert {step.partition(":")[0] for step, *_ in ROWS} == TRANSFORMS.keys() - {"abridge"}


def test_every_format_and_every_step_after_a_window_is_named() -> None:
    assert code(r"Of `format`, (.+?) are;") == set(FORMATS)
    following = {name for name, kind in TRANSFORMS.items() if kind.works_on_pages}
    assert code(r"a window only (.+?) may follow") == following


def test_every_path_that_is_shown_can_be_read() -> None:
    rows = re.findall(r"^\| (`.+?) \|", PAGE.partition("| path |")[2], re.MULTILINE)
    paths = [path for row in rows for path in re.findall(r"`([^`]+)`", row)]
    assert len(paths) > 5
    for path in paths[:9]:
        Path.parse(yaml.safe_load(path) if path.startswith("'") else path)


@pytest.mark.parametrize("block", EXAMPLES)
def test_the_example_of_a_transform_passes_as_the_test_of_a_rule(block: str) -> None:
    indented = "".join(f"    {line}\n" for line in block.splitlines())
    assert check(read(f"version: 1\nrules:\n  - tools: list\n{indented}"))
