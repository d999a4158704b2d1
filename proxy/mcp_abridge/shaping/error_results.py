"""Runs a rule's `errors` over an error: a marked result, a JSON-RPC error, a refusal.

Invariant: an error stays an error of its kind, and a failure on the way never costs it.
"""

import re

from msgspec import Raw
from msgspec.structs import replace

from mcp_abridge.document import message
from mcp_abridge.document.fuel import LITTLE, Fuel
from mcp_abridge.document.measure import growth_limit
from mcp_abridge.document.message import members
from mcp_abridge.document.tree import Document, Value, compact, encode, text, to_text
from mcp_abridge.errors import DocumentError, Refusal, raised
from mcp_abridge.query.call import Call, Warned
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.shaping import budget, pages, steps
from mcp_abridge.shaping.job import ShapeContext, ShapeJob, ShapeResult
from mcp_abridge.shaping.result.frame import (
    Copy,
    Frame,
    as_text,
    content_of,
    visible_size,
    with_marked_texts,
)
from mcp_abridge.shaping.result.read import LocatedDocument, ParsedResponse, is_error, locate, parse
from mcp_abridge.shaping.result.write import write
from mcp_abridge.storage.snapshots import Snapshot
from mcp_abridge.transforms.abridge import NAME, abridge

_TRUE = Raw(b"true")
# Views that fit any text; others were written for the structure of a result that is no error.
_OF_TEXTS = re.compile(r"\s*(?:(?:grep|head|tail|lines|outline)\b|text\[)")


def of_result(
    job: ShapeJob, response: ParsedResponse, located: LocatedDocument | None, context: ShapeContext
) -> ShapeResult:
    """Return the result for an error result, or for one that its rule treats as an error."""
    rule = job.rule
    before = None if located is None else located.size.to(job.shows)
    if not (rule.errors or rule.structures) or rule.mode == "shadow":
        return job.original("error", None, before)
    if located is None:
        context.warnings.append(
            Warned("errors: no document", "an error of several texts went out as it is")
        )
        return job.original("error", None, before)
    assert job.raw is not None
    document = located.document
    call = replace(steps.call(job, located.frame, context), bound=None, viewable=False)
    try:
        _run(rule, document, call)
        # Some clients check the structuredContent of an error against the success schema.
        result, size = write(as_text(located.frame), document, call.notices)
        result["isError"] = _TRUE
    except (Exception, SystemExit) as error:
        reason = f"{rule.at(job.tool)}: errors: failed at {raised(error)}"
        return job.original("error", reason, before)
    structured = rule.structures and "structuredContent" in located.frame.members
    if not (document.changed or call.notices or structured):
        return replace(_marked(job, before), missing=tuple(call.missing))
    raw = encode({**response.envelope, "result": result})
    if len(raw) > (limit := growth_limit(len(job.raw))):
        reason = f"{rule.at(job.tool)}: errors: a result of {len(raw)} bytes, more than {limit}"
        return job.original("error", reason, before)
    return ShapeResult(
        raw=raw,
        outcome="error",
        visible_before=before or 0,
        visible_after=size.to(job.shows),
        missing=tuple(call.missing),
    )


def _marked(job: ShapeJob, before: int | None) -> ShapeResult:
    original = job.original("error", None, before)
    response = parse(original.raw, intact=True)
    if is_error(response.members):
        return original
    raw = encode({**response.envelope, "result": {**response.members, "isError": _TRUE}})
    return replace(original, raw=raw)


def of_response(job: ShapeJob, context: ShapeContext) -> ShapeResult | None:
    """Return the result for a JSON-RPC error, whose message is shaped as the text of a result.

    Long data are cut to half of the room, since some clients show them. Notices stand at the end of
    the message, the only place that all clients show. None if the response is no error alone.
    """
    assert job.raw is not None
    rule, limit = job.rule, job.rule.max_bytes
    outer = message.outer_members(job.raw)
    if "result" in outer or not (rule.errors or limit is not None):
        return None
    try:
        error = members(outer.get("error", Raw(b"null")))
        reason = text(error.get("message"))
    except DocumentError:
        return None
    if reason is None:
        return None
    original = job.original("error")
    if rule.mode == "shadow":
        return original
    notices: Value = {}
    data = error.get("data")
    if limit is not None and data is not None:
        if len(job.raw) > limit and len(memoryview(data)) > limit // 2:
            from mcp_abridge.summary.abridgement import of_server

            cut = Document({"data": data})
            abridge(cut, limit // 2, Call(job.tool))
            parts = cut.root.open()
            notices = {**parts.pop(NAME, {}), **of_server(reason)}
            error["data"] = Raw(compact(encode(parts["data"])))
        rule = replace(rule, max_bytes=limit - len(memoryview(error["data"])))
    pseudo = message.refusal(job.id, reason, job.modern)
    job, response = replace(job, raw=pseudo, rule=rule), parse(pseudo, intact=True)
    shaped = of_result(job, response, locate(response.members, "auto"), context)
    shaped = bounded(job, shaped, context)
    _, texts = content_of(parse(shaped.raw, intact=True).members)
    endings = [encode({NAME: notices}).decode()] if notices else []
    reworded = "\n".join([*texts.values(), *endings])
    if reworded == reason and error.get("data") == data:
        return replace(original, log_line=shaped.log_line, missing=shaped.missing)
    raw = encode({**outer, "error": {**error, "message": reworded}})
    sizes = {"visible_before": original.visible_before, "visible_after": len(raw)}
    return replace(shaped, raw=raw, **sizes)


def bounded(job: ShapeJob, error: ShapeResult, context: ShapeContext) -> ShapeResult:
    """Return an error within its rule's bound: a long traceback would fill a model's context.

    A view shows the rest, as for other results, and a first call may have one for texts.
    """
    rule = job.rule
    if rule.max_bytes is None or rule.mode == "shadow" or len(error.raw) <= rule.max_bytes:
        return error
    try:
        response = parse(error.raw, intact=True)
        return _bounded_result(job, error, response, context)
    except DocumentError:  # a JSON-RPC error, bounded already
        return error
    except (Exception, SystemExit) as failure:
        reason = f"{rule.at(job.tool)}: max_bytes: failed at {raised(failure)}"
        return replace(error, log_line=error.log_line or reason)


def _bounded_result(
    job: ShapeJob, error: ShapeResult, response: ParsedResponse, context: ShapeContext
) -> ShapeResult:
    blocks, texts = content_of(response.members)
    size = visible_size(response.members, blocks)
    if budget.overrun(job, size) <= 0:
        return error
    located = locate(response.members, "auto", (blocks, texts))
    if located is None or budget.leaves_no_room(job, located.frame):
        # Several texts are joined: the end of the last matters most.
        document = Document("\n".join(texts.values()))
        frame = Frame(response.members, blocks, (Copy("text", blocks=tuple(texts)),))
    else:
        # Some clients check the structuredContent of an error against the success schema.
        document, frame = located.document, as_text(located.frame)
    frame.error = True
    # No client requires structuredContent of a result that is marked as an error.
    frame.members["isError"] = _TRUE
    view = job.view if job.view is not None and _OF_TEXTS.match(job.view) else None
    job = replace(job, rule=job.rule.for_errors, view=view)
    frozen = pages.freeze(document)()
    snapshot = Snapshot(budget.trim_other_blocks(job, with_marked_texts(frame)).encode(), frozen)
    context = replace(context, observe=None)
    try:
        page = pages.cut_page(job, snapshot, context)
    except Refusal:
        page = pages.cut_page(replace(job, view=None), snapshot, context)
    return replace(
        error,
        raw=encode({**response.envelope, "result": page.result}),
        visible_before=size.to(job.shows) if error.raw is job.raw else error.visible_before,
        visible_after=page.size.to(job.shows),
        snapshot=snapshot if job.keep and job.rule.snapshot_step.viewable else None,
    )


def refusal(rule: Rule, call: Call, id: bytes, reason: str, modern: bool) -> bytes:
    """Return an error result with the reason of a refusal, in the form of the rule's `errors`."""
    try:
        # The proxy's own text needs no warning if no case matches it, and little fuel: it is
        # short, and other messages wait.
        document = Document(reason)
        _run(rule, document, replace(call, warnings=[], fuel=Fuel(LITTLE)))
        reason = to_text(document.cell[0])
    except (Exception, SystemExit) as error:  # the reason of a refusal must never be lost
        call.warn("errors: a step failed", f"a refusal went out as it is: {error}")
    return message.refusal(id, reason, modern)


def _run(rule: Rule, document: Document, call: Call) -> None:
    for each in rule.errors:
        step = steps.for_text(each, rule.errors, call) if document.textual else each
        if step is not None:
            step(document.root, call)
    document.close()
