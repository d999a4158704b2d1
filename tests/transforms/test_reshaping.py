"""The schemas of steps that keep the types of what is left: every result fits them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.paths import ROOT, Path
from mcp_abridge.query.patterns import Expression, Pattern
from mcp_abridge.transforms import TRANSFORMS
from mcp_abridge.transforms.abridge import AbridgeStep
from mcp_abridge.transforms.base import Transform
from mcp_abridge.transforms.clip import Clip
from mcp_abridge.transforms.drop import Drop
from mcp_abridge.transforms.elide import Elide
from mcp_abridge.transforms.filter import Filter
from mcp_abridge.transforms.keep import Keep
from mcp_abridge.transforms.paginate import Paginate
from mcp_abridge.transforms.parse import Parse
from mcp_abridge.transforms.project import FromExpression, FromPath, Project
from mcp_abridge.transforms.rename import Rename
from mcp_abridge.transforms.replace import Replace
from mcp_abridge.transforms.sort import Sort
from mcp_abridge.transforms.truncate import Truncate

from tests.builders import rule
from tests.documents import call, shaped
from tests.fitting import NAMES, arrays, assert_reshaped, fits, fitting, there, where
from tests.reference import examples

CONDITIONS = [Expression(text) for text in ("a", "@ == `1`", "!@", "`false`")]
FEW = st.integers(0, 2)
INFO: Any = {"rest.n": "total", "more": "hasMore"}


def relaxing(document: Any) -> dict[str, st.SearchStrategy[Any]]:
    """Return strategies for the steps that keep the types of what is left of `document`."""
    some = st.lists(there(document), min_size=1, max_size=3).map(tuple)
    parts = there(document).filter(lambda path: set(path.text) - set("*."))
    at = st.just(ROOT) | there(document)
    pages = [Paginate(at=ROOT, limit=1)]
    if arrays(document):
        array = Path.parse(sorted(arrays(document))[0])
        pages += [Paginate(at=array, limit=1, page_info=info) for info in (None, INFO)]
    return {
        "keep": st.builds(Keep, some, at),
        "drop": st.builds(Drop, st.lists(parts, min_size=1, max_size=3).map(tuple), at),
        "filter": st.builds(Filter, where(document), st.sampled_from(CONDITIONS)),
        "sort": st.builds(Sort, st.sampled_from([ROOT, Path.parse("a")]), where(document)),
        "elide": st.builds(Elide, where(document), FEW, FEW),
        "paginate": st.sampled_from(pages),
        "clip": st.builds(Clip, at, FEW),
        "truncate": st.just(Truncate(at=Path.parse("a"), max_length=1)),
        "replace": st.builds(Replace, st.just(Pattern("[a-z]")), st.just("-"), at),
        "abridge": st.just(AbridgeStep(max_bytes=300)),
        "parse": st.builds(Parse, st.just("lines"), at),
        "project": projections(document),
        "rename": renames(document),
    }


@st.composite
def renames(draw: st.DrawFn, document: Any) -> Rename:
    some = there(document).filter(lambda path: path.text[-1] not in "*]")
    names = draw(st.dictionaries(some, st.sampled_from([*NAMES, "new"]), min_size=1))
    targets = {(path.text.rpartition(".")[0], name): path for path, name in names.items()}
    return Rename({path: name for (_, name), path in targets.items()})


@st.composite
def projections(draw: st.DrawFn, document: Any) -> Project:
    source = there(document) | there(document).map(lambda path: FromPath(path, "none", True))
    fields: list[Any] = [draw(st.dictionaries(st.sampled_from("abxy"), source, min_size=1))]
    at, to = ROOT, None
    if draw(st.booleans()):
        at = draw(there(document))
        to = draw(st.sampled_from([None, "a", "new"])) if at.text[-1] not in "*]" else None
    if draw(st.booleans()):
        fields.append({"z": FromExpression(Expression("a || b"))})
    return Project(tuple(fields), at, to, draw(st.sampled_from([None, 0, []])))


GENERAL: Any = Transform.reshape
RELAXING = [
    name for name, kind in TRANSFORMS.items() if kind.reshape is GENERAL and not kind.retypes
]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RELAXING, "paginate", "parse", "project", "rename"])
@given(fitting(), st.data())
def test_a_result_fits_the_schema_that_is_advertised_for_it(
    name: str, pair: tuple[Any, Any], data: st.DataObject
) -> None:
    schema, document = pair
    step = relaxing(document).get(name)
    # Without a strategy of its own, a step has the options of its doctest.
    example = st.sampled_from([run.step for run in examples.runs(TRANSFORMS[name])])
    assert_reshaped(data.draw(example if step is None else step), schema, document)


ROWS = [{"id": n, "note": "x" * 90} for n in range(40)]
OWN = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "minItems": 40, "items": {"required": ["id", "note"]}},
        "pagination": {"type": "string"},
        "state": {"enum": ["pending", "done"]},
    },
    "required": ["items"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "text",
    [
        "abridge: 500",
        "elide: items",
        "paginate: {at: items, limit: 2, page_info: {state: hasMore}}",
        "truncate: {at: state, max_length: 2}",
        "clip: {at: state, max_chars: 2}",
        "replace: {at: state, pattern: e, with: E}",
    ],
)
def test_the_notes_beside_a_cut_document_fit_the_schema(text: str) -> None:
    [step] = rule(f"response: [{{{text}}}]").pipeline
    document = {"items": ROWS, "state": "pending"}
    assert_fits(step, OWN, document)
    assert fits(document, OWN)


@pytest.mark.parametrize(
    "step", [Elide(), Paginate(limit=2), Paginate(limit=2, as_="rows"), AbridgeStep(max_bytes=300)]
)
@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "minItems": 5}}},
        {"type": ["array", "string"]},
    ],
)
def test_an_array_may_be_wrapped_with_a_note_beside_it(
    step: Transform, structured: bool, schema: dict[str, Any]
) -> None:
    assert_fits(step, schema, [*range(200)], structured=structured)
    assert_fits(step, schema, [1], structured=structured)


def assert_fits(step: Transform, schema: Any, document: Any, structured: bool = True) -> None:
    step_call = call(structured=structured)
    after = json.loads(shaped(json.dumps(document).encode(), step, at=step_call))
    reshaped = step.reshape(schema)
    assert reshaped is not None
    if structured and step_call.notices and not isinstance(after, dict):
        after = {"items": after} | {each.name: each.value for each in step_call.notices}
    assert fits(after, reshaped), (after, reshaped)
