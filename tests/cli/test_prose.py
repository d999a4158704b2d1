import re

import yaml

from proxy.cli.prose import OPENING, filled
from proxy.loading import rulefile
from proxy.loading.consistency import AFTER_A_WINDOW
from proxy.paths import Path


def test_the_opening_example_is_a_rule_file() -> None:
    found = re.search(r"```yaml\n(.*?)```", OPENING, re.DOTALL)
    assert found is not None
    read = rulefile.read("opening.yaml", found[1].encode())
    assert read.problems == ()


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
