"""Runs a rule's `errors` over an error: a marked result, a JSON-RPC error, a refusal.

Invariant: an error stays an error of its kind, and a failure on the way never costs it.
"""

from msgspec import Raw
from msgspec.structs import replace

from proxy.document import message
from proxy.document.fuel import LITTLE, Fuel
from proxy.document.measure import growth_limit
from proxy.document.message import members
from proxy.document.tree import Document, Value, encode, text
from proxy.errors import DocumentError, raised
from proxy.ruleset.rule import Rule
from proxy.shaping import budget as bound
from proxy.shaping import pages, steps
from proxy.shaping.job import ShapeContext, ShapeJob, ShapeResult
from proxy.shaping.result.blocks import content_of
from proxy.shaping.result.frame import Copy, Frame, as_text
from proxy.shaping.result.locate import LocatedDocument, read
from proxy.shaping.result.parse import ParsedResponse, failed, take_apart
from proxy.shaping.result.visible import visible
from proxy.shaping.result.write import write
from proxy.storage.snapshots import Snapshot
from proxy.transforms.abridge import NAME, abridge
from proxy.transforms.base import Call, Warned

_TRUE = Raw(b"true")


def of_result(
    job: ShapeJob, line: ParsedResponse, reading: LocatedDocument | None, attempt: ShapeContext
) -> ShapeResult:
    """Return the outcome for a result that is an error, or that its rule treats as one."""
    rule = job.rule
    before = None if reading is None else reading.shown.to(job.shows)
    marks = rule.errors or rule.structures
    if not marks or rule.mode == "shadow":
        return job.original("error", None, before)
    if reading is None:
        attempt.warnings.append(
            Warned("errors: no document", "an error of several texts went out as it is")
        )
        return job.original("error", None, before)
    assert job.raw is not None
    document = reading.document
    call = replace(steps.call(job, reading.frame, attempt), bound=None, viewable=False)
    try:
        _run(rule, document, call)
        # Some clients check the structuredContent of an error against the success schema.
        frame = as_text(reading.frame)
        written, shown = write(frame, document, call.notices)
        written["isError"] = _TRUE
    except (Exception, SystemExit) as error:
        said = f"{rule.at(job.tool)}: errors: failed at {raised(error)}"
        return job.original("error", said, before)
    promised = rule.structures and "structuredContent" in reading.frame.members
    if not (document.changed or call.notices or promised):
        return replace(_marked(job, before), missing=tuple(call.missing))
    raw = encode({**line.envelope, "result": written})
    if len(raw) > (room := growth_limit(len(job.raw))):
        said = f"{rule.at(job.tool)}: errors: a result of {len(raw)} bytes, more than {room}"
        return job.original("error", said, before)
    return ShapeResult(
        raw=raw,
        word="error",
        visible_before=before or 0,
        visible_after=shown.to(job.shows),
        missing=tuple(call.missing),
    )


def _marked(job: ShapeJob, before: int | None) -> ShapeResult:
    """Return an error that the rule's steps left unchanged, marked as an error."""
    original = job.original("error", None, before)
    line = take_apart(original.raw, intact=True)
    if failed(line.members):
        return original
    raw = encode({**line.envelope, "result": {**line.members, "isError": _TRUE}})
    return replace(original, raw=raw)


def of_response(job: ShapeJob, attempt: ShapeContext) -> ShapeResult | None:
    """Return the outcome for a JSON-RPC error, None if the response is none."""
    assert job.raw is not None
    if not job.rule.errors:
        # A response with both `result` and `error` is not only an error.
        bare = job.rule.max_bytes is not None and "result" not in message.outer_members(job.raw)
        return job.original("error") if bare and _error(job.raw) is not None else None
    call = Call(
        job.tool, job.arguments, names=job.names, warnings=attempt.warnings, fuel=attempt.fuel
    )
    if job.rule.mode == "shadow":
        return job.original("error")
    try:
        line = _reworded(job.rule, call, job.raw)
    except (Exception, SystemExit) as error:
        said = f"{job.rule.at(job.tool)}: errors: failed at {raised(error)}"
        return job.original("error", said)
    if line is None:
        return None
    original = job.original("error")
    return replace(original, raw=line, visible_after=len(line), missing=tuple(call.missing))


def _reworded(rule: Rule, call: Call, raw: bytes) -> bytes | None:
    """Return a JSON-RPC error whose message went through the rule's steps; None for no error.

    Its code and its data stay.
    """
    found = _error(raw)
    if found is None:
        return None
    error, said = found
    shaped = _said(rule, call, said)
    return message.replaced(raw, error={**error, "message": shaped})


def _error(raw: bytes) -> tuple[dict[str, Raw], str] | None:
    """Return the members of a JSON-RPC error, and its message."""
    try:
        error = members(message.outer_members(raw).get("error", Raw(b"null")))
    except DocumentError:
        return None
    said = text(error.get("message"))
    return None if said is None else (error, said)


# The bound


def bounded(job: ShapeJob, error: ShapeResult, attempt: ShapeContext) -> ShapeResult:
    """Return an error within its rule's bound: a long traceback would fill a model's context.

    A view shows the rest, as for other results.
    """
    rule = job.rule
    if rule.max_bytes is None or rule.mode == "shadow" or len(error.raw) <= rule.max_bytes:
        return error
    try:
        try:
            line = take_apart(error.raw, intact=True)
        except DocumentError:
            return _bounded_response(job, error, rule.max_bytes)
        return _bounded_result(job, error, line, attempt)
    except (Exception, SystemExit) as cause:
        said = f"{rule.at(job.tool)}: max_bytes: failed at {raised(cause)}"
        return replace(error, said=error.said or said)


def _bounded_result(
    job: ShapeJob, error: ShapeResult, line: ParsedResponse, attempt: ShapeContext
) -> ShapeResult:
    blocks, texts = content_of(line.members)
    shown = visible(line.members, blocks)
    if bound.excess(job, shown) <= 0:
        return error
    reading = read(line.members, "auto", (blocks, texts))
    if reading is None or bound.crowded(job, reading.frame):
        # Several texts are joined: the end of the last matters most.
        document = Document("\n".join(texts.values()))
        frame = Frame(line.members, blocks, (Copy("text", blocks=tuple(texts)),))
    else:
        # Some clients check the structuredContent of an error against the success schema.
        document, frame = reading.document, as_text(reading.frame)
    frame.error = True
    # No client requires structuredContent of a result that is marked as an error.
    frame.members["isError"] = _TRUE
    alone = replace(job, rule=job.rule.for_errors, view=None)
    snapshot = Snapshot(bound.beside(alone, frame).encode(), pages.taken(document)())
    answer = pages.answered(alone, snapshot, None, attempt)
    return replace(
        error,
        raw=encode({**line.envelope, "result": answer.written}),
        visible_before=shown.to(job.shows) if error.raw is job.raw else error.visible_before,
        visible_after=answer.shown.to(job.shows),
        snapshot=snapshot if job.keep and job.rule.snapshot_step.viewable else None,
    )


def _bounded_response(job: ShapeJob, error: ShapeResult, most: int) -> ShapeResult:
    """Bound a JSON-RPC error: its data to half of the room, its message to the rest.

    Some clients show the data. The notices about both stand at the end of the message, the only
    place that all clients show.
    """
    found = _error(error.raw)
    if found is None:
        return error
    held, said = found
    told: dict[str, Value] = {}
    data = held.get("data", Raw(b""))
    if len(memoryview(data)) > most // 2:
        cut = Document({"data": data})
        abridge(cut, most // 2, Call(job.tool))
        parts = cut.root.open()
        told = parts.pop(NAME, {})
        held["data"] = data = Raw(encode(parts["data"]))
    document = Document(said)
    viewable = job.viewable and job.rule.snapshot_step.viewable
    call = Call(job.tool, names=job.names, viewable=viewable, notices=[], error=True)
    abridge(document, most - len(memoryview(data)) - len(encode(told)), call)
    snapshot = None
    for notice in call.notices:
        told = notice.value | told
        if job.keep and viewable:
            snapshot = _snapshot(said, job.modern)
    if not told:
        return error
    shown = f"{text(document.cell[0])}\n{encode({NAME: told}).decode()}"
    raw = message.replaced(error.raw, error={**held, "message": shown})
    return replace(error, raw=raw, visible_after=len(raw), snapshot=snapshot)


def _snapshot(said: str, modern: bool) -> Snapshot:
    """Return the snapshot of a message as an error result, for views of it."""
    whole = {"content": Raw(b"[]"), "isError": _TRUE}
    if modern:
        whole["resultType"] = Raw(b'"complete"')
    block = Raw(encode({"type": "text", "text": ""}))
    frame = Frame(whole, [block], (Copy("text", blocks=(0,)),), error=True)
    return Snapshot(frame.encode(), encode(said))


def refusal(rule: Rule, call: Call, id: bytes, said: str, modern: bool) -> bytes:
    """Return an error result with the reason of a refusal, in the form of the rule's `errors`."""
    return message.refusal(id, _of_refusal(rule, call, said), modern)


def _of_refusal(rule: Rule, call: Call, said: str) -> str:
    try:
        # The proxy's own text needs no warning if no case matches it, and little fuel: it is
        # short, and other messages wait.
        return _said(rule, replace(call, warnings=[], fuel=Fuel(LITTLE)), said)
    except (Exception, SystemExit) as error:  # the reason of a refusal must never be lost
        call.warn("errors: a step failed", f"a refusal went out as it is: {error}")
        return said


def _said(rule: Rule, call: Call, said: str) -> str:
    document = Document(said)
    _run(rule, document, call)
    shaped = text(document.cell[0])
    if shaped is None:
        return document.encode().decode()
    return shaped


def _run(rule: Rule, document: Document, call: Call) -> None:
    for each in rule.errors:
        step = steps.of_text(each, rule.errors, call) if document.textual else each
        if step is not None:
            step(document.root, call)
    document.close()
