"""Results with images in them, shaped and drawn as the transports do it."""

import json
from base64 import b64decode, b64encode
from io import BytesIO
from typing import Any

from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.selection import Selection
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.shaping.pipeline import shape
from mcp_abridge.transports.workers.pictures import with_drawings
from msgspec.structs import replace
from PIL import Image

from tests.builders import answer, result

Json = dict[str, Any]


def image(raw: bytes, mime_type: str = "image/png") -> Json:
    """Return an image block."""
    return {"type": "image", "data": b64encode(raw).decode(), "mimeType": mime_type}


def resource(raw: bytes, mime_type: str, uri: str = "file:///a") -> Json:
    """Return an embedded resource."""
    blob = b64encode(raw).decode()
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "blob": blob}}


def link(number: int) -> Json:
    """Return a link to a resource."""
    words = f"The document number {number} of a collection of several hundred."
    uri, name = f"file:///docs/{number}.md", f"document {number}"
    return {"type": "resource_link", "uri": uri, "name": name, "description": words}


def budget(client: str = "claude-code") -> Rule:
    """Return the rule of a client for tools without one."""
    rule = Selection((), "auto", print)(None, client).otherwise
    assert rule is not None
    return rule


def job(*blocks: Json, rule: Rule | None = None, **members: Any) -> ShapeJob:
    """Return the job for a result of these blocks, and other `result` members."""
    raw = answer({"content": [*blocks], **members.pop("result", {})})
    facts: Json = {"tool": "t", "keep": True, "shows": "structured", **members}
    return ShapeJob(rule=rule or budget(), id=b"1", raw=raw, **facts)


def drawn(job: ShapeJob) -> ShapeResult:
    """Return the result of a job, with its images drawn."""
    outcome = shape(job)
    return with_drawings(job, outcome) if outcome.drawings else outcome


def view(job: ShapeJob, expression: str) -> ShapeResult:
    """Return the answer to a view after the first answer to a job."""
    snapshot = drawn(job).snapshot
    assert snapshot is not None
    return drawn(replace(job, raw=None, snapshot=snapshot, view=expression, keep=False))


def blocks(outcome: ShapeResult) -> list[Json]:
    """Return the blocks of a result."""
    content: list[Json] = result(outcome.raw)["content"]
    return content


def picture(block: Json) -> Image.Image:
    """Return the image of a block, whose type is what the block says."""
    inner = block.get("resource", block)
    opened = Image.open(BytesIO(b64decode(inner.get("data") or inner["blob"])))
    assert inner["mimeType"] == Image.MIME[opened.format or ""]
    return opened


def notes(outcome: ShapeResult) -> Json:
    """Return the last block's notice."""
    value: Json = json.loads(blocks(outcome)[-1]["text"])["_abridged"]
    return value
