import json

import pytest

from proxy.document.fuel import LITTLE, Fuel
from proxy.document.tree import Document
from proxy.errors import OutOfFuel, TransformError
from proxy.ruleset.loading.rulefile import read
from proxy.transforms.base import Call, Warned
from proxy.transforms.recast import Recast
from tests.documents import call, shaped


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
        (json.dumps("x" * 200), f"no case fits what begins with {'x' * 80!r}"),
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
            "vocabulary: {w: [A]}, cases: [{to: {w: {jmespath: '@', default: A}}}]",
            '{"A": "A"}',
            "recast: ValueError: a mapping is none of the words of 'w'",
        ),
        (
            "cases: [{match: x, to: {n: {jmespath: sum(text)}}}]",
            '"x"',
            "recast: In function sum(), invalid type for value: x, expected one of: "
            "['array-number'], received: \"string\"",
        ),
    ],
)
def test_a_template_that_cannot_be_filled_fails(options: str, raw: str, message: str) -> None:
    step = recast(f"recast: {{{options}}}")
    with pytest.raises(TransformError) as caught:
        shaped(raw.encode(), step)
    assert str(caught.value) == message


def test_a_document_that_fails_is_not_half_changed() -> None:
    step = recast("recast: {vocabulary: {s: [ok]}, cases: [{to: {n: 1, s: '{text}'}}]}")
    document = Document("bad")
    with pytest.raises(TransformError):
        step(document.root, call())
    assert document.encode() == b'"bad"'


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize(
    ("to", "raw"),
    [
        (f"{{a: {{jmespath: '{' | '.join(['[@, @]'] * 30)}'}}}}", b"1"),
        (f"{{a: '{'{text}' * 200}'}}", b'"%s"' % (b"x" * 10_000)),
        (f"{{a: [{', '.join(['{jmespath: length(v)}'] * 500)}]}}", b'{"v":"%s"}' % (b"x" * 9000)),
    ],
)
def test_recast_ends_with_its_fuel(to: str, raw: bytes) -> None:
    step_call = call()
    step_call.fuel = Fuel(LITTLE)
    with pytest.raises(OutOfFuel):
        shaped(raw, recast(f"recast: {{cases: [{{to: {to}}}]}}"), at=step_call)
