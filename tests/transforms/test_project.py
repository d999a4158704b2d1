from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.paths import ROOT
from proxy.document.patterns import Expression
from proxy.document.tree import Document, Pieces, compact
from proxy.errors import ShapeMismatch
from proxy.ruleset.loading.rulefile import read
from proxy.transforms.project import FromExpression, FromPath, Project
from tests.documents import call, shaped
from tests.fitting import assert_reshaped, fitting, there


def project(options: str) -> Project:
    """Read a projection as a rule file has it."""
    rule = f"version: 1\nrules: [{{tools: t, response: [{{project: {options}}}]}}]"
    reading = read("r.yaml", rule.encode())
    assert reading.problems == ()
    assert reading.rules is not None
    [step] = reading.rules.rules[0].pipeline
    assert isinstance(step, Project)
    return step


def test_lines_are_a_mismatch() -> None:
    with pytest.raises(ShapeMismatch):
        project("[a]")(Document(Pieces(["a"])).root, call())


@pytest.mark.parametrize("before", ["{}", '{"items": []}', '{"items": [{"user": null}]}'])
def test_a_document_with_nothing_at_the_place_is_left_alone(before: str) -> None:
    step = project("{at: items.user.names, fields: [n]}")
    assert shaped(before.encode(), step) == compact(before.encode())


def test_a_default_is_made_anew_for_every_object() -> None:
    step = project("{fields: [{tags: {path: tags, default: []}}]}")
    for _ in range(2):
        document = Document.read(b'[{"x": 1}, {"tags": [1]}]')
        step(document.root, call())
        first = document.root.open()[0]["tags"]
        assert document.encode() == b'[{"tags":[]},{"tags":[1]}]'
        assert type(first).__name__ == "Raw"


@given(fitting(), st.data())
def test_what_is_projected_fits_its_schema(pair: tuple[Any, Any], data: st.DataObject) -> None:
    schema, document = pair
    source = there(document) | there(document).map(lambda path: FromPath(path, "none", True))
    outs = data.draw(st.dictionaries(st.sampled_from("abxy"), source, min_size=1))
    default: Any = data.draw(st.sampled_from([None, 0, []]))
    at, to = ROOT, None
    if data.draw(st.booleans()):
        at = data.draw(there(document))
        named = at.text[-1] not in "*]"
        to = data.draw(st.sampled_from([None, "a", "new"])) if named else None
    fields: list[Any] = [outs]
    if data.draw(st.booleans()):
        fields.append({"z": FromExpression(Expression("a || b"))})
    assert_reshaped(Project(tuple(fields), at, to, default), schema, document)


def test_the_schema_has_exactly_the_fields() -> None:
    schema = {
        "type": "object",
        "properties": {
            "run": {
                "type": ["object", "null"],
                "properties": {"id": {"type": "string"}, "log": {"type": "array"}},
            }
        },
        "required": ["run"],
        "additionalProperties": False,
    }
    step = project("{at: run, to: summary, fields: [id, {n: {jmespath: 'length(log)'}}]}")
    assert step.reshape(schema) == {
        "type": "object",
        "properties": {
            "summary": {
                "type": ["object", "null"],
                "properties": {"id": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "n": True},
                "required": ["id", "n"],
                "additionalProperties": False,
            }
        },
        "required": ["summary"],
        "additionalProperties": False,
    }
