"""Jobs for tests, and their results; a step that raises."""

from collections.abc import Mapping
from typing import Any

import msgspec
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.shaping.pipeline import shape
from mcp_abridge.storage.snapshots import Snapshot
from mcp_abridge.transforms.base import Parameter

from tests.builders import answer, result, rule, texts

CONTRACT = """
name: jobs
output_schema: {type: object, properties: {n: {type: integer, maximum: 10}}, required: [n]}
"""


def job(rule: Rule, raw: bytes, **members: Any) -> ShapeJob:
    return ShapeJob(rule=rule, tool="t", id=b"1", raw=raw, **members)


def shaped(text: str, value: dict[str, Any], **members: Any) -> ShapeResult:
    return shape(job(rule(text), answer(value), **members))


def snapshot_of(text: str, value: dict[str, Any]) -> Snapshot:
    outcome = shaped(text, value, keep=True)
    assert outcome.snapshot is not None
    return outcome.snapshot


def page(text: str, snapshot: Snapshot, **arguments: Any) -> ShapeResult:
    window = {"limit": 2, "offset": 0, **arguments}
    return shape(
        ShapeJob(rule=rule(text), tool="t", id=b'"x"', snapshot=snapshot, arguments=window)
    )


def structured(outcome: ShapeResult) -> Any:
    return result(outcome.raw).get("structuredContent")


def withheld(outcome: ShapeResult) -> str:
    """Return the text of an error that stands for a response."""
    assert result(outcome.raw)["isError"] is True
    [text] = texts(outcome.raw)
    return text


class Raises:
    """A step that raises whatever it is given."""

    name, window, cuts = "raises", False, False
    parameters: Mapping[str, Parameter] = {}

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, root: object, call: object) -> None:
        raise self.error


def with_step(rule: Rule, step: object, at: int) -> Rule:
    steps: list[Any] = [*rule.pipeline[:at], step, *rule.pipeline[at:]]
    return msgspec.structs.replace(rule, pipeline=tuple(steps))
