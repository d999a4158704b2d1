"""Cases that expect nothing yet are filled with what comes out, and nothing else is changed."""

from pathlib import Path
from textwrap import dedent

import pytest
from mcp_abridge.replay import filling
from mcp_abridge.ruleset.selection import load


def fill(tmp_path: Path, text: str) -> tuple[str, list[str]]:
    """Fill a rule file; return its new text and the lines logged, without the folder."""
    path = tmp_path / "r.yaml"
    path.write_bytes(dedent(text).encode())
    [file] = load([str(path)])
    log_lines = [line.replace(f"{path}", path.name) for line in filling.fill(file)]
    load([str(path)])
    return path.read_bytes().decode(), log_lines


def replaced(text: str, changes: dict[str, str]) -> str:
    text = dedent(text)
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def test_a_case_in_braces_gains_a_member(tmp_path: Path) -> None:
    text = """\
        version: 1
        rules:
          - tools: t   # a comment
            response: [{drop: b}]
            tests:
              - {given: {a: 1, b: 2}}   # kept
              - { given: {a: 1} , }
              - {given: {b: 1}, expect: {}}
        """

    new, lines = fill(tmp_path, text)

    changed = {
        "b: 2}}   # kept": 'b: 2}, expect: {"a": 1}}   # kept',
        "} , }": "} ,untouched: true }",
    }
    assert new == replaced(text, changed)
    assert lines == [
        "filled r.yaml:7: t: case 2: untouched",
        "filled r.yaml:6: t: case 1: expect",
    ]


def test_a_case_in_lines_gains_a_line(tmp_path: Path) -> None:
    text = """\
        version: 1
        rules:
          - tools: t
            response: [{drop: b}]
            tests:
              - name: first
                given:
                  a: 1   # one
                  b: 2

              # about the second
              - given_text: |
                  {"a": 2,
                   "b": 3}
          - tools: u
            tests:
              - given: {x: 1}"""

    new, log_lines = fill(tmp_path, text)

    more = {"b: 2\n": 'expect: {"a": 1}\n', '"b": 3}\n': 'expect: {"a": 2}\n'}
    changed = {line: f"{line}        {key}" for line, key in more.items()}
    last = "- given: {x: 1}"
    assert new == replaced(text, {**changed, last: f"{last}\n        untouched: true\n"})
    assert len(log_lines) == 3


def test_line_ends_are_kept_and_texts_and_lone_cases_filled(tmp_path: Path) -> None:
    text = "version: 1\r\nrules:\r\n- tools: t\r\n  tests:\r\n  - given: {a: 1}\r\n"
    assert fill(tmp_path, text)[0] == f"{text}    untouched: true\r\n"
    rule = 'tools: t\n  response: {replace: {pattern: b, with: "ö\u2028"}}'
    new, _ = fill(tmp_path, f"version: 1\nrules:\n  {rule}\n  tests: {{given_text: abc}}\n")
    assert 'tests: {given_text: abc, expect: "aö\\u2028c"}' in new


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            "{given: {$repeat: {a: long enough, b: 1}, times: 500}}",
            "left r.yaml:5: t: case 1: 11008 characters are too many; write expect_at or max_bytes",
        ),
        ("&x {given: {a: 1, b: 1}}", "filled r.yaml:5: t: case 1: expect"),
    ],
)
def test_a_case_that_cannot_be_filled_is_left_and_reported(
    tmp_path: Path, case: str, message: str
) -> None:
    text = f"version: 1\nrules:\n- tools: t\n  response: [{{drop: b}}]\n  tests: [{case}]\n"

    new, [log_line] = fill(tmp_path, text)

    assert log_line.startswith(message)
    assert (new == text) == log_line.startswith("left")


def test_tests_that_several_rules_share_are_left(tmp_path: Path) -> None:
    text = """\
        version: 1
        rules:
          - {tools: t, response: [{drop: b}], tests: &shared [{given: {a: 1, b: 2}}]}
          - {tools: u, response: [{drop: a}], tests: *shared}
        """

    new, log_lines = fill(tmp_path, text)

    assert new == dedent(text)
    assert log_lines == [
        "left r.yaml:3: u: case 1: the case stands in several places, by an anchor",
        "left r.yaml:3: t: case 1: the case stands in several places, by an anchor",
    ]
