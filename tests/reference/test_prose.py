import re

import yaml

from proxy.document.paths import Path
from proxy.ruleset.loading import rulefile
from proxy.ruleset.loading.checks import AFTER_A_WINDOW
from proxy.ruleset.rule import RuleFile
from proxy.schema.keywords import FORMATS
from proxy.testing import cases
from tests.reference.prose import OPENING, filled


def files() -> list[RuleFile]:
    found = []
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", OPENING, re.DOTALL)):
        read = rulefile.read(f"{number}.yaml", block.encode())
        assert read.rules is not None, read.problems
        found.append(read.rules)
    return found


def test_every_example_is_a_rule_file_whose_tests_pass() -> None:
    verdicts = [verdict for file in files() for verdict in cases.run(file)]
    assert [verdict.message for verdict in verdicts if not verdict.ok] == []
    assert len(verdicts) == 5


def test_the_form_of_errors_and_a_contract_have_an_example() -> None:
    rules = [rule for file in files() for rule in file.rules]
    assert any(rule.errors for rule in rules)
    assert any(rule.validate == "refuse" for rule in rules)


def test_every_format_that_is_checked_is_named() -> None:
    said = re.search(r"Of `format`, (.+?) are;", " ".join(OPENING.split()))
    assert said is not None
    assert set(re.findall(r"`([\w-]+)`", said[1])) == set(FORMATS)


def test_every_path_that_is_shown_can_be_read() -> None:
    _, _, table = OPENING.partition("| path |")
    rows = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    shown = [each for row in rows for each in re.findall(r"`([^`]+)`", row)]
    assert len(shown) > 5
    for each in shown:
        Path.parse(yaml.safe_load(each) if each.startswith("'") else each)


def test_what_may_follow_a_window_is_said_as_it_is_checked() -> None:
    said = re.search(r"a window only (.+?) may follow", " ".join(OPENING.split()))
    assert said is not None
    assert set(re.findall(r"`(\w+)`", said[1])) == AFTER_A_WINDOW


def test_code_tables_and_titles_are_left_as_they_are() -> None:
    kept = ["# " + "a " * 80 + "b", "| " + "a " * 80 + "|", "```\n" + "a " * 80 + "b\n```"]
    assert filled("\n\n".join(kept)) == "\n\n".join(kept)
