"""Rule files as people write them: cases/good load, cases/bad say in detail what is wrong."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.ruleset.loading.convert import fields
from mcp_abridge.ruleset.loading.rule_model import CaseSpec, RuleFileSpec, RuleSpec
from mcp_abridge.ruleset.loading.rulefile import read
from mcp_abridge.ruleset.loading.yaml_errors import MAX_PROBLEMS
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleFile
from mcp_abridge.transforms import TRANSFORMS

from tests.faults.scale import scaled
from tests.platforms import on_posix
from tests.rulecases import BAD, GOOD, PYTHON, expected


def load(text: str) -> RuleFile:
    reading = read("r.yaml", f"version: 1\n{text}".encode())
    assert reading.problems == ()
    assert reading.rules is not None
    return reading.rules


def one(text: str) -> Rule:
    (rule,) = load(f"rules: [{text}]").rules
    return rule


@pytest.mark.fault(42, "inside")
@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_file_reports_exactly_its_problems(path: Path) -> None:
    reading = read(path.name, path.read_bytes())
    problems = [str(problem).removeprefix(f"{path.name}:") for problem in reading.problems]
    assert problems == expected(path) != []
    assert reading.rules is None


@pytest.mark.fault(42, "inside")
def test_no_more_than_200_problems_of_rules_are_looked_for() -> None:
    reading = read("r.yaml", b"version: 1\nrules: [" + b"[], " * 1000 + b"[]]")
    assert MAX_PROBLEMS < len(reading.problems) < MAX_PROBLEMS + 20
    assert str(reading.problems[0]) == "r.yaml: more than 200 problems; mend these first"
    assert str(reading.problems[1]).startswith("r.yaml:2:9: expected a rule, a mapping with tools")
    assert (reading.rules, reading.readable) == (None, True)


# Each took quadratic time or worse once; how much there is of it.
PART = scaled(4, 1)
LARGE = {
    "references": "rules: [{tools: x, output_schema: {type: object, $defs: {"
    + ", ".join(f"d{n}: {{$ref: '#/$defs/d{n + 1}'}}" for n in range(6_000 // PART))
    + "}}}]",
    "aliases to nothing": "a: ["
    + ", ".join(f"&x{n} 1" for n in range(5_000 // PART))
    + "]\nb: ["
    + "*yy, " * (30_000 // PART)
    + "]",
    "brackets in a text": "a: [" + "a[" * (100_000 // PART) + "]",
    "an alternation": "rules: [{tools: x, response: [replace: {with: x, pattern: '"
    + "(a|b.*)?" * (25_000 // PART)
    + "'}]}]",
    "fields": "rules: [{tools: x, response: [project: ["
    + ", ".join(f"f{n}" for n in range(25_000 // PART))
    + "]]}]",
    "a deep expression": f"rules: [{{tools: x, when: '{'(' * 5_000}a{')' * 5_000}'}}]",
    "a long chain": f"rules: [{{tools: x, when: '{'a.' * (100_000 // PART)}a'}}]",
}


@on_posix("no limits on the memory of a process")
@pytest.mark.slow
@pytest.mark.fault(42, "inside")
def test_a_large_file_is_read_in_bounded_time(tmp_path: Path) -> None:
    for name, text in LARGE.items():
        (tmp_path / f"{name}.yaml").write_text(f"version: 1\n{text}")
    code = "import sys\nfrom mcp_abridge.ruleset.loading.rulefile import read\n"
    code += "for file in sys.argv[1:]: read(file, open(file, 'rb').read())"

    def limited() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (40, 40))
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    process = subprocess.run(
        [sys.executable, "-c", code, *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        check=False,
        preexec_fn=limited,
    )
    assert (process.returncode, process.stderr) == (0, b"")


def test_good_files_load_and_have_every_key() -> None:
    assert [
        each.problems
        for each in (read(path.name, path.read_bytes()) for path in GOOD)
        if each.problems
    ] == []
    text = "\n".join(path.read_text() for path in (*GOOD, *PYTHON.glob("*.yaml")))
    keys = [*fields(RuleFileSpec), *fields(RuleSpec), *fields(CaseSpec)]
    assert [key for key in keys if f"{key}:" not in text] == []


def test_a_key_that_is_left_out_has_the_same_default_in_a_file_and_in_a_rule() -> None:
    defaults = {field.name: field.default for field in msgspec.structs.fields(Rule)}
    in_files = {
        key: field.default
        for key, field in fields(RuleSpec).items()
        if key in defaults and key not in ("tools", "name", "hide", "arguments", "errors", "guard")
    }
    assert in_files == {key: defaults[key] for key in in_files}
    assert len(in_files) > 8


def test_a_rule_is_named_for_its_tools_and_knows_its_line() -> None:
    first, second = load("rules:\n  - tools: [a, b]\n  - {tools: c, name: third}").rules
    assert (first.name, first.place) == ("a, b", "r.yaml:3")
    assert (second.name, second.place) == ("third", "r.yaml:4")


def test_defaults_are_merged_under_every_rule_and_taken_back_with_null() -> None:
    text = (
        "defaults: {max_bytes: 500, mode: shadow}\n"
        "rules: [{tools: a}, {tools: b, mode: active}, {tools: c, max_bytes: null}]"
    )
    rules = load(text).rules
    assert [rule.max_bytes for rule in rules] == [500, 500, None]
    assert [rule.mode for rule in rules] == ["shadow", "active", "shadow"]
    assert [len(rule.pipeline) for rule in rules] == [1, 1, 0]


def test_wrong_defaults_are_reported_once_and_without_any_rule_too() -> None:
    line = "r.yaml:2:23: max_bytes: 0 is less than the minimum of 300"
    for rules in ("[]", "[{tools: a}, {tools: b}]"):
        text = f"version: 1\ndefaults: {{max_bytes: 0}}\nrules: {rules}"
        assert [str(problem) for problem in read("r.yaml", text.encode()).problems] == [line]


def test_max_bytes_is_an_abridge_as_the_last_step() -> None:
    rule = one("{tools: a, max_bytes: 5kB, response: [{keep: [x]}]}")
    assert str(rule.pipeline[-1]) == "AbridgeStep(max_bytes=5000, first_look=None)"
    assert [step.name for step in rule.pipeline] == ["keep", "abridge"]
    assert (rule.max_bytes, rule.snapshot_step.viewable) == (5000, True)
    assert not one("{tools: a, max_bytes: 5KB, view: false}").snapshot_step.viewable


def test_a_list_in_a_response_is_spliced_in_place() -> None:
    text = (
        "x-two: &two [{keep: [a]}, {drop: [b]}]\n"
        "rules: [{tools: a, response: [table, *two, [[table]]]}]"
    )
    names = [step.name for step in load(text).rules[0].pipeline]
    assert names == ["table", "keep", "drop", "table"]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("keep: title", "keep: {paths: [title]}"),
        ("keep: [a, b.c]", "keep: {paths: [a, b.c]}"),
        ("jmespath: a.b", "jmespath: {expression: a.b}"),
        ("abridge: 8kB", "abridge: {max_bytes: 8000}"),
        ("paginate: 50", "paginate: {limit: 50}"),
        ("paginate: {max_bytes: 2KiB}", "paginate: {max_bytes: 2048}"),
        ("table", "table: {}"),
        ("table: ", "table: {}"),
        ("rename: {a.b: c}", "rename: {names: {a.b: c}}"),
        ("rename: {names: c}", "rename: {names: {names: c}}"),
    ],
)
def test_a_short_form_means_its_long_form(short: str, long: str) -> None:
    def pipeline(step: str) -> Any:
        return load(f"rules:\n  - tools: t\n    response:\n      - {step}").rules[0].pipeline

    assert str(pipeline(short)) == str(pipeline(long))


# Words, values and signs that mean something to the loader, put together at random.
WORDS = st.sampled_from([*TRANSFORMS, *fields(RuleSpec), *fields(CaseSpec), *fields(RuleFileSpec)])
SIGNS = ["1", "-1", "~", "''", "a[].b", "1e999", "<<", "*a", "&a", "!a", "@", "(", "[?x]"]
VALUES = st.sampled_from(
    [*SIGNS, "- a", "a: b", "a == 'b'", "{argument: a}", "x-a: &a", "[[a, {b: c}], 1]", "{a: [1]}"]
)
NODES = WORDS | VALUES | st.text(max_size=5) | st.builds("{{{}: {}}}".format, WORDS, VALUES)


@given(st.data())
def test_a_good_file_with_one_word_replaced_never_raises(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(GOOD)).read_text()
    place = data.draw(st.sampled_from(list(re.finditer(r"[\w*.]+|[^\w\s]", text))))
    text = text[: place.start()] + data.draw(NODES) + text[place.end() :]
    reading = read("r.yaml", text.encode(errors="replace"))
    assert (reading.rules is None) == bool(reading.problems)


@pytest.mark.slow
@pytest.mark.fault(42, "inside")
@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_file_cut_anywhere_never_raises(path: Path) -> None:
    raw = path.read_bytes()
    for end in range(0, len(raw), scaled(29, 7)):
        reading = read("r.yaml", raw[:end])
        assert (reading.rules is None) == bool(reading.problems)
