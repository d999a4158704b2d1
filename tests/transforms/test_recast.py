import pytest
from mcp_abridge.document.tree import Document
from mcp_abridge.errors import TransformError
from mcp_abridge.query.call import Call, Warned
from mcp_abridge.ruleset.loading.rulefile import read
from mcp_abridge.transforms.recast import Recast

from tests.documents import shaped


def recast(options: str) -> Recast:
    """Read the options as a rule file has them."""
    reading = read("r.yaml", f"version: 1\nrules: [{{tools: t, response: [{options}]}}]".encode())
    assert reading.problems == ()
    assert reading.rules is not None
    [step] = reading.rules.rules[0].pipeline
    assert isinstance(step, Recast)
    return step


@pytest.mark.parametrize(
    ("raw", "warning"),
    [
        ('"what no case knows"', "no case fits what begins with 'what no case knows'"),
        ('{"a": [1.0]}', "no case fits what begins with '{\"a\":[1.0]}'"),
    ],
)
def test_a_document_that_no_case_fits_stays_with_a_warning(raw: str, warning: str) -> None:
    step = recast("recast: {cases: [{match: done, to: {}}, {where: 'b', to: {}}]}")
    document = Document.read(raw.encode())
    step_call = Call("t", warnings=[])
    step(document.root, step_call)

    assert bytes(document.cell[0]) == raw.encode()
    assert not document.changed
    assert step_call.warnings == [Warned("recast: no case fits", warning)]


@pytest.mark.parametrize(
    ("options", "raw", "message"),
    [
        (
            "vocabulary: {status: [ok]}, cases: [{to: {status: '{text}'}}]",
            '"fine"',
            "recast: ValueError: 'fine' is none of the words of 'status'",
        ),
        (
            "vocabulary: {w.code: [A]}, cases: [{to: {w: {path: ''}}}]",
            '[{"code": "A"}, {"code": ["A", 1.0]}]',
            "recast: ValueError: 1.0 is none of the words of 'w.code'",
        ),
        (
            "cases: [{match: x, to: {n: {jmespath: sum(text)}}}]",
            '"x"',
            "recast: sum() takes an array of numbers, found a text",
        ),
    ],
)
def test_a_template_that_cannot_be_filled_fails(options: str, raw: str, message: str) -> None:
    step = recast(f"recast: {{{options}}}")
    with pytest.raises(TransformError) as caught:
        shaped(raw.encode(), step)
    assert str(caught.value) == message
