"""Jobs for tests, and what comes of them; a step that raises."""

from collections.abc import Mapping
from typing import Any

import msgspec

from proxy.ruleset.rule import Rule
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.shaping.pipeline import shape
from proxy.storage.snapshots import Snapshot
from proxy.transforms.base import Parameter
from tests.given import answer, result, rule, texts

CONTRACT = """
name: jobs
output_schema: {type: object, properties: {n: {type: integer, maximum: 10}}, required: [n]}
"""


def job(made: Rule, raw: bytes, **members: Any) -> ShapeJob:
    return ShapeJob(rule=made, tool="t", id=b"1", raw=raw, **members)


def shaped(text: str, value: dict[str, Any], **members: Any) -> ShapeResult:
    return shape(job(rule(text), answer(value), **members))


def kept(text: str, value: dict[str, Any]) -> Snapshot:
    made = shaped(text, value, keep=True)
    assert made.snapshot is not None
    return made.snapshot


def page(text: str, snapshot: Snapshot, **arguments: Any) -> ShapeResult:
    asked = {"limit": 2, "offset": 0, **arguments}
    return shape(ShapeJob(rule=rule(text), tool="t", id=b'"x"', snapshot=snapshot, arguments=asked))


def structured(outcome: ShapeResult) -> Any:
    return result(outcome.raw).get("structuredContent")


def withheld(made: ShapeResult) -> str:
    """Return what an error says that stands for a response."""
    assert result(made.raw)["isError"] is True
    [text] = texts(made.raw)
    return text


class Raises:
    """A step that raises whatever it is given."""

    name, window, cuts = "raises", False, False
    parameters: Mapping[str, Parameter] = {}

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, root: object, call: object) -> None:
        raise self.error


def with_step(made: Rule, step: object, at: int) -> Rule:
    steps: list[Any] = [*made.pipeline[:at], step, *made.pipeline[at:]]
    return msgspec.structs.replace(made, pipeline=tuple(steps))
