"""The transforms over the documents in cases/*.yaml, compared to the byte."""

import json
from pathlib import Path

import pytest
from mcp_abridge.document.tree import Document
from mcp_abridge.errors import DocumentError
from mcp_abridge.replay.cases import cases, check_case
from mcp_abridge.replay.checks import Case
from mcp_abridge.ruleset.rule import Rule

from tests.builders import file
from tests.documents import call, open_all

FILES = sorted((Path(__file__).parent / "cases").iterdir())


# They are read in the test: each worker of a run would read all of them.
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_cases_of_a_transform(path: Path) -> None:
    rules = file(path.read_text(), path.stem)
    for rule, number, case in cases(rules):
        assert check_case(rules, rule, case) == [], f"{rule.name}: {number}"
        assert_same_once_opened(rule, case)


def assert_same_once_opened(rule: Rule, case: Case) -> None:
    """Check that a document that earlier steps have opened becomes the same."""
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
    assert output == case.get("expect_text", before.encode().decode()), rule.name
