"""The transforms over the documents in cases/*.yaml, compared to the byte."""

import json
from pathlib import Path

import pytest
from mcp_abridge.document.tree import Document
from mcp_abridge.errors import DocumentError
from mcp_abridge.replay.cases import cases, check_case
from mcp_abridge.replay.checks import Case
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleFile

from tests.builders import file
from tests.documents import call, open_all

FILES = [file(path.read_text(), path.stem) for path in (Path(__file__).parent / "cases").iterdir()]
CASES = [
    pytest.param(each, rule, case, id=f"{each.name}: {rule.name}: {number}")
    for each in FILES
    for rule, number, case in cases(each)
]


@pytest.mark.parametrize(("rules", "rule", "case"), CASES)
def test_a_case_of_a_transform(rules: RuleFile, rule: Rule, case: Case) -> None:
    assert check_case(rules, rule, case) == []


@pytest.mark.parametrize(("rules", "rule", "case"), CASES)
def test_a_document_that_earlier_steps_have_opened_becomes_the_same(
    rules: RuleFile, rule: Rule, case: Case
) -> None:
    text = case["given_text"]
    try:
        document, before = Document.read(text.encode()), Document.read(text.encode())
    except DocumentError:
        document = before = Document(text)
    open_all(document.root)
    for step in rule.pipeline:
        step(document.root, call(**case.get("arguments", {})))
    document.close()
    after = document.encode().decode()
    output = json.loads(after) if after.startswith('"') else after
    assert output == case.get("expect_text", before.encode().decode())
