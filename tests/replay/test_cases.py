"""The cases of a rule file: what passes, and what is said of what does not."""

import json
import re
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
import yaml
from mcp_abridge.replay import cases
from mcp_abridge.ruleset.loading import rulefile
from mcp_abridge.ruleset.rule_set import RuleFile

from tests.builders import answer, call, document, file, line
from tests.rulecases import PYTHON


def ruled(rules: str, name: str = "rules.yaml") -> RuleFile:
    return file("version: 1\nrules:\n" + dedent(rules), name)


def verdict(rule: str, case: str, name: str = "rules.yaml") -> list[str]:
    """Run one case of a rule, which is for the tool `t` unless it says so; return what is wrong."""
    rule = dedent(rule).strip()
    rule = rule if "tools:" in rule else f"tools: t\n{rule}"
    text = f"- {indent(rule, '  ').strip()}\n  tests: [{case}]"
    [result] = cases.run(ruled(text, name))
    assert result.ok == (not result.message)
    return result.message.splitlines()


PASSING = Path(__file__).with_name("passing.yaml")
DROP = "response: [{drop: b}]"


def guarded(keys: str, names: str, folder: Path = PYTHON) -> list[str]:
    """Run the one case of a rule with these keys and guards; return the mistakes."""
    text = f"version: 1\nguards: {{{names}}}\nrules: [{{tools: t, {keys}}}]"
    read = rulefile.read(str(folder / "r.yaml"), text.encode(), allow_python=True)
    assert read.rules is not None, read.problems
    [result] = cases.run(read.rules)
    return result.message.splitlines()


def careful(case: str) -> list[str]:
    return guarded(f"guard: careful, tests: [{case}]", "careful: 'own:Careful'")


def test_a_case_with_the_expected_result_passes() -> None:
    results = cases.run(file(PASSING.read_text(), "passing.yaml"))
    assert [each for each in results if not each.ok] == []


FAILING: dict[str, str] = yaml.safe_load(PASSING.with_name("failing.yaml").read_text())
VALUE = "{a: {b: 1, c: [1, 2]}, items: [{id: 1, n: x}, {id: 2, n: y}], one: [{id: 7}]}"


@pytest.mark.parametrize(
    ("rule", "case", "lines"),
    [
        (rule, *each.split("\n  ", 1))
        for rule, text in FAILING.items()
        for each in text.strip().split("\n{")
    ],
)
def test_a_case_that_gets_something_else_fails_with_the_differences(
    rule: str, case: str, lines: str
) -> None:
    case = "{" + case.removeprefix("{").replace("VALUE", VALUE)
    assert verdict(rule, case) == lines.split("\n  ")


def test_many_differences_are_cut_short() -> None:
    actual, expected = (f"{{a: {{$repeat: {each}, times: 50}}, b: 1}}" for each in "xy")
    lines = verdict(DROP, f"{{given: {actual}, expect: {expected}}}")
    assert lines[0] == 'a[0]: expected "y", found "x"'
    assert re.fullmatch(r"… and \d+ more", lines[-1])


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("{found: yes, asks: {tool: other}}", 'asks.tool: expected "other", found "may"'),
        ("{found: yes, upstream: null}", "upstream: the call reached the server, with {}"),
        ("{found: no, upstream: {}}", "upstream: nothing reached the server"),
        ("{found: no, expect: {}}", "nothing reached the server: "),
        ("{found_nothing: true, warns: [other]}", 'warns: expected ["other"], found ["not ask'),
    ],
)
def test_a_guard_that_does_something_else_fails_its_case(case: str, message: str) -> None:
    assert careful(case)[0].startswith(message)


HASTY = """
from typing import ClassVar
from msgspec import Struct

class Hasty(Struct, frozen=True):
    name: ClassVar[str] = "hasty"
    shorthand: ClassVar[None] = None
    parameters: ClassVar[dict] = {}

    def __call__(self, call, found):
        raise KeyError(call.tool)
"""


def test_a_guard_that_fails_and_lets_the_call_go_on_fails_its_case(tmp_path: Path) -> None:
    (tmp_path / "hasty.py").write_text(HASTY)
    names = "hasty: 'hasty:Hasty'"
    keys = "guard: hasty, on_failure: pass, tests: {given: {a: 1}, expect: {a: 1}}"
    failure = "t: the guard 'hasty' failed: KeyError: 't' (hasty.py:11)"
    assert guarded(keys, names, tmp_path) == [failure]
    keys = "guard: hasty, tests: {refused: \"the call was withheld: the guard of rule 't' failed\"}"
    assert guarded(keys, names, tmp_path) == []


def test_a_guard_that_asks_nothing_fails_a_case_with_a_question() -> None:
    keys = "guard: gate, tests: [{given: {b: 1}, asks: {tool: a}}]"
    assert guarded(keys, "gate: 'own:Gate'") == ["asks: nothing was asked"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"$repeat": 1}, "write {$repeat: value, times: number}, and no other key beside it"),
        ({"$repeat": 1, "times": 10**9}, "$repeat: times: 1000000000 is not between 0 and 1000000"),
    ],
)
def test_an_invalid_repetition_is_an_error(value: Any, message: str) -> None:
    assert verdict(DROP, f"{{given: {json.dumps(value)}, untouched: true}}") == [message]


RESULT = '{ "jsonrpc": "2.0", "id": 7.0, "result": {"content": [], "x": 1e400} }'
ERROR = line(id=7, error={"code": -32603, "message": "Not Found"}).decode().replace("7", "7.0", 1)


@pytest.mark.parametrize(
    ("response", "case", "lines"),
    [
        (answer(document({"a": 1, "b": 2}), 7).decode(), "expect: {a: 1}, upstream: {x: 1}", []),
        (RESULT, "arguments: {y: 2}, upstream: {y: 2}", []),
        (ERROR, "untouched: true", []),
        (ERROR, "expect: {}", ["the answer is an error: Not Found"]),
    ],
)
def test_a_case_may_name_a_recording_beside_the_rules(
    tmp_path: Path, response: str, case: str, lines: list[str]
) -> None:
    request = call("t", {"x": 1}, id=7).decode().replace('"id":7', '"id":7.0')
    (tmp_path / "a.json").write_text(json.dumps({"request": request, "response": response}))
    rules = str(tmp_path / "rules.yaml")
    assert verdict(DROP, f"{{given_file: a.json, {case}}}", rules) == lines


def test_a_path_that_is_no_file_is_reported_and_not_read() -> None:
    reason = "given_file: '/dev/zero': is no regular file"
    assert verdict(DROP, "{given_file: /dev/zero, untouched: true}") == [reason]


def test_a_case_that_another_rule_takes_fails() -> None:
    loaded = ruled(
        """
        - {name: first, tools: t, when: "op == 'x'", response: [{drop: b}]}
        - name: second
          tools: t
          response: [{drop: c}]
          tests: [{arguments: {op: x}, given: {b: 1, c: 1}, expect: {b: 1}}]
        """
    )

    [verdict] = cases.run(loaded)

    assert verdict.message == "the rule 'first' (rules.yaml:4) takes this call"
