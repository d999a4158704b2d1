"""Write the actual result into the cases of a rule file that expect nothing yet."""

import json
from collections.abc import Callable, Iterator
from functools import partial

import yaml

from mcp_abridge.document.printable import printable
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay.cases import check_case, location, name_of, play_case
from mcp_abridge.replay.checks import CHECKS, PlayedCase
from mcp_abridge.ruleset.loading import rulefile
from mcp_abridge.ruleset.loading.rulefile import LoadedRules
from mcp_abridge.ruleset.rule_set import RuleFile

MAX_CHARS = 4_000


def fill(file: RuleFile, *, allow_python: bool = False) -> Iterator[str]:
    """Fill the cases of `file` in place, and yield a line for each case without an expectation.

    Raises OSError if the file cannot be read or written.
    """
    read = partial(rulefile.read, file.name, allow_python=allow_python)
    with open(file.name, newline="", encoding="utf-8") as source:
        text = before = source.read()
    # From the end, so that the places of the earlier cases stay valid.
    for index, rule in reversed(list(enumerate(file.rules))):
        for number, case in reversed(list(enumerate(rule.tests))):
            if CHECKS.keys() & case.keys():
                continue
            name = f"{location(rule, number + 1)}: {rule.name}: {name_of(case, number + 1)}"
            try:
                expectation = _expectation(play_case(file, rule, case))
                text = _filled(read, text, index, number, expectation)
                yield f"filled {name}: {expectation.partition(':')[0]}"
            except (AbridgeError, OSError) as error:
                yield f"left {name}: {error}"
    if text != before:
        with open(file.name, "w", newline="", encoding="utf-8") as target:
            target.write(text)


def _expectation(trial: PlayedCase) -> str:
    play = trial.play
    if not play.calls:
        return f"refused: {_yaml(play.answer.text)}"
    if play.answer.line == play.exchange.response:
        return "untouched: true"
    line = f"expect: {_yaml(trial.document)}"
    if len(line) > MAX_CHARS:
        raise AbridgeError(f"{len(line)} characters are too many; write expect_at or max_bytes")
    return line


def _yaml(value: object) -> str:
    """Return JSON that is YAML too: what YAML forbids or reads as a line end is escaped."""
    return printable(json.dumps(value, ensure_ascii=False), json=True)


def _filled(
    read: Callable[[bytes], LoadedRules], text: str, rule: int, case: int, line: str
) -> str:
    before = read(text.encode()).rules
    node = _case_node(text, rule, case)
    if node.flow_style:
        end = node.end_mark.index - 1
        before_end = text[:end].rstrip()
        comma = "" if before_end.endswith(("{", ",")) else ", "
        filled = f"{before_end}{comma}{line}{text[len(before_end) :]}"
    else:
        indent = " " * node.value[0][0].start_mark.column
        line_end = "\r\n" if "\r\n" in text else "\n"
        end = len(text[: _end(node.value[-1][1])].rstrip("\r\n"))
        comment, _, rest = text[end:].partition("\n")
        head = text[:end] + comment.removesuffix("\r")
        filled = f"{head}{line_end}{indent}{line}{line_end}{rest}"
    loaded = read(filled.encode())
    if loaded.rules is None:
        raise AbridgeError(f"the file would not load any more: {loaded.problems[0]}")
    if before is None or _unfilled(loaded.rules) != _unfilled(before) - 1:
        raise AbridgeError("the case stands in several places, by an anchor")
    owner = loaded.rules.rules[rule]
    for message in check_case(loaded.rules, owner, owner.tests[case]):
        raise AbridgeError(f"it would not pass: {message}")
    return filled


def _unfilled(file: RuleFile) -> int:
    return sum(not CHECKS.keys() & case.keys() for rule in file.rules for case in rule.tests)


def _case_node(text: str, rule: int, case: int) -> yaml.MappingNode:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    rules = _member(root, "rules")
    owner = rules.value[rule] if isinstance(rules, yaml.SequenceNode) else rules
    tests = _member(owner, "tests")
    node = tests.value[case] if isinstance(tests, yaml.SequenceNode) else tests
    if not isinstance(node, yaml.MappingNode):
        raise AbridgeError("the case is not written as a mapping of its own")
    return node


def _member(node: yaml.Node | None, name: str) -> yaml.Node:
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == name:
            member: yaml.Node = value
            return member
    raise AbridgeError(f"no {name!r} is written there")


def _end(node: yaml.Node) -> int:
    """Return the offset of the end of a value, without the comments behind it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return int(node.end_mark.index)
