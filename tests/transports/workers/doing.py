"""Jobs with a step that does something to its process, and their results."""

import json
from typing import Any

from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.shaping.job import ShapeJob, ShapeResult

from tests.builders import answer, document, texts
from tests.transports.steps import Step

SECONDS = 60.0
LARGE = {"items": [{"id": number, "text": "lorem ipsum"} for number in range(50_000)]}
RAW = answer(document(LARGE))


def doing(deed: str | Step, place: str = "", *, raw: bytes = RAW, **members: Any) -> ShapeJob:
    """Return a job, with a large response, whose last step does `deed`."""
    step = Step(deed, place) if isinstance(deed, str) else deed
    members.setdefault("pipeline", (step,))
    rule = Rule(name="rule", tools=("*",), **members)
    return ShapeJob(rule=rule, tool="tool", id=b"1", raw=raw)


def step_document(outcome: ShapeResult) -> dict[str, Any]:
    """Read the document of the step: its process and thread."""
    assert outcome.outcome == "shaped", outcome.log_line
    document: dict[str, Any] = json.loads(texts(outcome.raw)[0])
    return document


def failed(outcome: ShapeResult) -> str:
    """Return where and why a job failed, which must leave the response as it is."""
    assert (outcome.raw, outcome.outcome) == (RAW, "failed")
    assert outcome.log_line is not None
    return outcome.log_line.removeprefix("rule: tool: failed at ")
