"""Runs a rule over one tool response: the straight line from raw result to raw result.

`shape` turns a ShapeJob into a ShapeResult, touches nothing else, and never raises. If anything
goes wrong on the way, the original is sent, once, and the ShapeResult names the failure.
"""

from msgspec import Raw
from msgspec.structs import replace

from proxy.document.fuel import Fuel
from proxy.document.measure import growth_limit
from proxy.document.patterns import Expression, Pattern, truthy
from proxy.document.tree import Document, Value, encode, have_room, plain, row_type, text
from proxy.errors import (
    AbridgeError,
    DocumentError,
    EmptyResult,
    OutOfFuel,
    Refusal,
    ShapeMismatch,
    TransformError,
    raised,
)
from proxy.ruleset.rule import Rule
from proxy.shaping import budget as bound
from proxy.shaping import error_results as error_result
from proxy.shaping import pages, steps
from proxy.shaping.job import ShapeContext, ShapeJob, ShapeResult
from proxy.shaping.pages import WrittenResult
from proxy.shaping.result.frame import without
from proxy.shaping.result.locate import LocatedDocument, read
from proxy.shaping.result.parse import ParsedResponse, complete, failed, take_apart
from proxy.shaping.result.structured import structured
from proxy.shaping.steps import Observer
from proxy.storage.snapshots import Snapshot
from proxy.transforms.base import Call, Notice, Warned
from proxy.transforms.notices import DROPPED


def shape(job: ShapeJob, observe: Observer | None = None) -> ShapeResult:
    """Return the result of `job`. Never raises: a failure is a ShapeResult with the original."""
    try:
        outcome = job.original("failed") if job.aside else _shaped(job, observe)
        return _structured(outcome, job)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a rule's own Python may raise anything
        return failure(job, error)


def _shaped(job: ShapeJob, observe: Observer | None) -> ShapeResult:
    attempt = ShapeContext(fuel=Fuel(job.fuel))
    outcome = _tried(job, observe, attempt)
    said, spent = tuple(dict.fromkeys(attempt.warnings)), attempt.fuel.remaining < 0
    return replace(outcome, warnings=said, spent=spent) if said or spent else outcome


def _tried(job: ShapeJob, observe: Observer | None, attempt: ShapeContext) -> ShapeResult:
    try:
        if job.snapshot is not None:
            return pages.from_snapshot(job, job.snapshot, observe, attempt)
        outcome = _from_response(job, observe, attempt)
        if outcome.word == "error":
            return error_result.bounded(job, outcome, attempt)
        most = job.rule.max_bytes
        if outcome.word != "untouched" or most is None or len(outcome.raw) <= most:
            return outcome
        return _mended(job, observe, attempt) or outcome
    except Refusal as refused:
        if job.rule.mode == "shadow":
            return job.original("shadow")
        return _refused(job, str(refused), attempt.warnings)
    except ShapeMismatch as other:
        if job.rule.failure_policy.withholds_misfits:
            return _unfit(job, other)
        said = f"{job.rule.at(job.tool)}: left as it came: {other}"
        bounding = job.rule.for_misfits
        if bounding.pipeline and bounding != job.rule:
            # A response of an unexpected shape is still bounded in size.
            bounded = replace(job, rule=bounding)
            return replace(_tried(bounded, observe, attempt), said=said)
        return job.original("untouched", said)
    except DocumentError as other:
        if job.rule.failure_policy.withholds:
            return _failure(job, other)
        said = f"{job.rule.at(job.tool)}: left as it came: {other}"
        return _mended(job, observe, attempt) or job.original("untouched", said)
    except (Exception, SystemExit) as error:
        # A rule must never cost an answer, whatever it raises (RecursionError, MemoryError, ...).
        return _mended(job, observe, attempt) or _failure(job, error)


def _mended(job: ShapeJob, observe: Observer | None, attempt: ShapeContext) -> ShapeResult | None:
    """Cut a response that is not UTF-8 to its budget, its invalid bytes replaced.

    None if it is UTF-8 or within its budget, or if the rule has no budget or withholds it.
    """
    rule = job.rule.for_misfits
    if job.raw is None or rule.failure_policy.withholds or not rule.pipeline:
        return None
    try:
        job.raw.decode()
    except UnicodeDecodeError as error:
        raw = job.raw.decode("utf-8", "replace").encode()
        outcome = _tried(replace(job, rule=rule, raw=raw), observe, attempt)
        if outcome.raw == raw:
            return None
        text = (
            f"{rule.at(job.tool)}: the bytes of the answer are not UTF-8 from byte {error.start} "
            "on, and it is over its budget: they were replaced by U+FFFD to cut it"
        )
        return replace(outcome, said=text)
    return None


def _from_response(job: ShapeJob, observe: Observer | None, attempt: ShapeContext) -> ShapeResult:
    """Find the document of a response and shape it; everything else is sent unchanged."""
    assert job.raw is not None
    rule = job.rule
    have_room(len(job.raw))
    try:
        line = take_apart(job.raw)
    except DocumentError:
        if (error := error_result.of_response(job, attempt)) is not None:
            return error
        raise
    if not complete(line.members):
        return job.original("untouched")
    marked = failed(line.members)
    if marked and not (rule.errors or rule.structures):
        return job.original("error")
    reading = read(line.members, rule.document, line.content)
    if reading is not None and line.content is not None and not reading.frame.held:
        # The document is elsewhere: the decoded text must stay as the server sent it.
        line = take_apart(job.raw, intact=True)
        reading = read(line.members, rule.document, line.content)
    if marked:
        return error_result.of_result(job, line, reading, attempt)
    if reading is None:
        if rule.validate is not None:
            _without_document(rule, attempt)
        if rule.failure_policy.withholds_misfits:
            raise ShapeMismatch("it has no document that the steps could work on")
        if rule.max_bytes is None:
            return job.original("untouched")
        reading = read(line.members, "blocks", line.content)
        if reading is None:
            return job.original("untouched")
        reading.frame.bare, rule = True, rule.for_no_document
        job = replace(job, rule=rule)
    alone = "structuredContent" not in line.members
    if rule.size_budget.alone and alone and bound.crowded(job, reading.frame):
        # As one of the blocks, the text that crowds the document out can be viewed too.
        reading = read(line.members, "blocks", line.content) or reading
    if rule.error_if is not None and _is_error(rule.error_if, reading.document, attempt.fuel):
        return error_result.of_result(job, line, reading, attempt)
    if job.view is None and bound.fits(job, reading.shown):
        return job.original("untouched", None, reading.shown.to(job.shows))
    return _from_document(job, line, reading, observe, attempt)


def _from_document(
    job: ShapeJob,
    line: ParsedResponse,
    reading: LocatedDocument,
    observe: Observer | None,
    attempt: ShapeContext,
) -> ShapeResult:
    """Run the steps over the located document, and write the result in its place."""
    rule, document, before = job.rule, reading.document, reading.shown.to(job.shows)
    frame, dropped = without(reading.frame, rule.drop_blocks)
    frame = bound.beside(job, frame)
    layout = _indent(document) if rule.layout == "as_sent" else -1
    call = steps.call(job, frame, attempt)
    assert job.raw is not None
    steps.run(rule, document, call, slice(0, rule.snapshot_step.restart), observe)
    taken = None if rule.snapshot_step.restart is None else pages.taken(document)
    if job.view is not None and taken is not None:
        answer = pages.answered(job, Snapshot(frame.encode(), taken()), observe, attempt)
    else:
        if rule.snapshot_step.restart is not None:
            steps.run(rule, document, call, slice(rule.snapshot_step.restart, None), observe)
        document.close()
        # A result that is too long may fit once it is written compactly.
        too_long = bound.excess(job, reading.shown) > 0
        if not (document.changed or dropped or call.notices or too_long or rule.copies != "both"):
            missing = tuple(call.missing)
            return replace(job.original("untouched", None, before), missing=missing)
        notices = call.notices + ([Notice(DROPPED, dropped)] if dropped else [])
        written, shown = pages.written(job, frame, document, notices, layout)
        answer = WrittenResult(written, shown, tuple(call.missing))
        if taken is not None and (excess := bound.excess(job, shown, frame)) > 0:
            snapshot = Snapshot(frame.encode(), taken())
            answer = pages.answered(job, snapshot, None, attempt, excess)
    after = answer.shown.to(job.shows)
    if job.view is None and after > before and not rule.allow_growth:
        raise ShapeMismatch(f"the model would see {after} bytes in place of {before}")
    if rule.mode == "shadow":
        return replace(job.original("shadow", None, before), visible_after=after)
    sent = encode({**line.envelope, "result": answer.written})
    if len(sent) > (room := growth_limit(len(job.raw))):
        raise AbridgeError(f"the end: a result of {len(sent)} bytes, more than {room}")
    return ShapeResult(
        raw=sent,
        word="shaped" if job.view is None else "view",
        visible_before=before,
        visible_after=after,
        snapshot=pages.kept(job, frame, taken()) if job.keep and taken is not None else None,
        missing=answer.missing,
    )


def _structured(outcome: ShapeResult, job: ShapeJob) -> ShapeResult:
    """Return the outcome with the structuredContent that the rule's schema promises."""
    if not job.rule.structures:
        return outcome
    try:
        found = structured(outcome.raw, itself=job.rule.validate == "refuse")
    except Exception as error:  # too deep, too large: still an answer
        said = f"{job.rule.at(job.tool)}: no structuredContent: {type(error).__name__}: {error}"
        return replace(outcome, said=outcome.said or said)
    if found is None:
        return outcome
    line, shown = found
    return replace(outcome, raw=line, visible_after=shown.to(job.shows))


def failure(job: ShapeJob, cause: BaseException | str) -> ShapeResult:
    """Return the response to send if a rule could not even be tried, for `cause`.

    Never raises: if this fails too, the original or a fixed text is sent.
    """
    try:
        return _structured(_failure(job, cause), job)
    except Exception:
        if job.raw is not None and not job.rule.failure_policy.withholds:
            return ShapeResult(raw=job.raw, word="failed")
        return ShapeResult(raw=_WITHHELD % job.id, word="failed")


_WITHHELD = (
    b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text",'
    b'"text":"the answer was withheld: its rule failed on it"}],"isError":true}}'
)


def _failure(job: ShapeJob, cause: BaseException | str) -> ShapeResult:
    """Return the response to send if a rule failed: the original, unless the rule withholds it."""
    if isinstance(cause, BaseException) and not isinstance(cause, AbridgeError):
        cause = raised(cause)
    said = f"{job.rule.at(job.tool)}: failed at {cause}"
    if job.rule.failure_policy.withholds:
        text = f"the response was withheld: rule {job.rule.name!r} failed on it"
        return replace(_refused(job, text, []), word="failed", said=said)
    return job.original("failed", said)


def _unfit(job: ShapeJob, other: ShapeMismatch) -> ShapeResult:
    """Return the refusal in place of a response that does not fit its rule and is withheld."""
    does_not = f"the response was withheld: rule {job.rule.name!r} does not fit it"
    refused = _refused(job, str(other) if isinstance(other, EmptyResult) else does_not, [])
    return replace(refused, said=f"{job.rule.at(job.tool)}: withheld: {other}")


def _refused(job: ShapeJob, said: str, warnings: list[Warned]) -> ShapeResult:
    call = Call(job.tool, job.arguments, names=job.names, warnings=warnings)
    line = error_result.refusal(job.rule, call, job.id, said, job.modern)
    return ShapeResult(raw=line, word="refused", visible_after=len(line))


def _without_document(rule: Rule, attempt: ShapeContext) -> None:
    if rule.validate == "refuse":
        raise Refusal("the response breaks its contract: it has no document")
    attempt.warnings.append(Warned("contract: no document", "the response has no document"))


def _is_error(condition: Expression | Pattern, document: Document, fuel: Fuel) -> bool:
    if isinstance(condition, Expression):
        try:
            row = None if condition.names is None else row_type(condition.names)
            return truthy(condition.search(plain(document.cell[0], row, fuel), fuel))
        except OutOfFuel as spent:
            raise OutOfFuel(f"error_if: {spent}") from spent
        except Refusal as cause:
            raise TransformError("error_if", cause) from cause
    said = text(document.cell[0])
    return said is not None and condition.search(said, fuel=fuel) is not None


def _indent(document: Document) -> int:
    """Return the number of spaces that indent a JSON document, -1 if it is on one line."""
    value: Value = document.source
    if type(value) is not Raw:
        return -1
    start = bytes(memoryview(value)[:256])
    line = start.find(b"\n")
    if line < 0:
        return -1
    rest = start[line + 1 :]
    return len(rest) - len(rest.lstrip(b" "))
