"""Runs a rule over one tool response: the straight line from raw result to raw result.

`shape` turns a ShapeJob into a ShapeResult, touches nothing else, and never raises. If anything
goes wrong on the way, the original is sent, once, and the ShapeResult names the failure.
"""

from msgspec import Raw
from msgspec.structs import replace

from mcp_abridge.document import message
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.measure import growth_limit
from mcp_abridge.document.tree import Document, Value, encode, have_room, text
from mcp_abridge.errors import (
    AbridgeError,
    DocumentError,
    EmptyResult,
    OutOfFuel,
    Refusal,
    ShapeMismatch,
    raised,
)
from mcp_abridge.query.call import DROPPED, Call, Notice, Warned
from mcp_abridge.query.patterns import Expression, Pattern, truthy
from mcp_abridge.ruleset.guard import FACTS
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.shaping import budget, error_results, pages, steps
from mcp_abridge.shaping.job import Observer, ShapeContext, ShapeJob, ShapeResult
from mcp_abridge.shaping.pages import Page
from mcp_abridge.shaping.result.frame import (
    Frame,
    content_of,
    other_texts,
    with_marked_texts,
    without_blocks,
)
from mcp_abridge.shaping.result.read import (
    LocatedDocument,
    ParsedResponse,
    is_error,
    is_final,
    locate,
    locate_links,
    locate_texts,
    parse,
)
from mcp_abridge.shaping.result.write import add_structured, write_for
from mcp_abridge.storage.snapshots import Snapshot
from mcp_abridge.transforms.base import evaluator


def shape(job: ShapeJob, observe: Observer | None = None) -> ShapeResult:
    """Return the result of `job`. Never raises: a failure is a ShapeResult with the original."""
    try:
        return _shape_read(job, observe) if job.uri else _shape_call(job, observe)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a rule's own Python may raise anything
        return failure(job, error)


def _shape_call(job: ShapeJob, observe: Observer | None) -> ShapeResult:
    context = ShapeContext(fuel=Fuel(job.fuel), observe=observe)
    result = job.original("failed") if job.bypass else _shape(job, context)
    if not job.uri and message.may_hold_blobs(result.raw):
        from mcp_abridge.shaping.blobs import bounded  # few answers have any

        result = bounded(job, result)
    return _with_structured(job, result) if job.rule.structures else result


def _shape_read(job: ShapeJob, observe: Observer | None) -> ShapeResult:
    from mcp_abridge.shaping.resources import as_resource, as_tool_result  # for few sessions

    raw = None if job.raw is None else as_tool_result(job.raw)
    result = _shape_call(replace(job, raw=raw), observe)
    return as_resource(job, replace(result, raw=job.raw) if result.raw is raw else result)


def _shape(job: ShapeJob, context: ShapeContext) -> ShapeResult:
    result = _try(job, context)
    warnings, out_of_fuel = tuple(dict.fromkeys(context.warnings)), context.fuel.remaining < 0
    if not (warnings or out_of_fuel):
        return result
    return replace(result, warnings=warnings, out_of_fuel=out_of_fuel)


def _try(job: ShapeJob, context: ShapeContext) -> ShapeResult:
    try:
        if job.snapshot is not None and job.asks_for_blob:
            from mcp_abridge.shaping.blobs import answer

            frame = Frame.decode(job.snapshot.frame)
            return answer(job, frame.blocks, structured=frame.structured is not None)
        if job.snapshot is not None:
            return pages.from_snapshot(job, job.snapshot, context)
        result = _from_response(job, context)
        if result.outcome == "error":
            return error_results.bounded(job, result, context)
        return result
    except Refusal as error:
        if job.rule.mode == "shadow":
            return job.original("shadow")
        return _refusal(job, str(error), context.warnings)
    except ShapeMismatch as error:
        return _misfit(job, error, context)
    except DocumentError as error:
        withholds = job.rule.failure_policy.withholds
        return _failed(job, error) if withholds else _untouched(job, error)
    except (Exception, SystemExit) as error:
        # A rule must never cost an answer, whatever it raises (RecursionError, MemoryError, ...).
        return _failed(job, error)


def _unseen(job: ShapeJob, frame: Frame) -> bool:
    """Return True if the model reads texts alone, and these say something else than the document.

    Then they are what is cut, and what views are of.
    """
    if job.shows not in ("text", "blocks") or frame.document_blocks:
        return False
    return any(other_texts(frame).values())


def _untouched(job: ShapeJob, error: Exception) -> ShapeResult:
    return job.original("untouched", f"{job.rule.at(job.tool)}: left as it came: {error}")


def _misfit(job: ShapeJob, error: ShapeMismatch, context: ShapeContext) -> ShapeResult:
    if job.rule.failure_policy.withholds_misfits:
        reason = f"the response was withheld: rule {job.rule.name!r} does not fit it"
        result = _refusal(job, str(error) if isinstance(error, EmptyResult) else reason, [])
        return replace(result, log_line=f"{job.rule.at(job.tool)}: withheld: {error}")
    untouched = _untouched(job, error)
    rule = job.rule.for_misfits
    if not rule.pipeline or rule == job.rule:
        return untouched
    # A response of an unexpected shape is still bounded in size.
    return replace(_try(replace(job, rule=rule), context), log_line=untouched.log_line)


def _from_response(job: ShapeJob, context: ShapeContext) -> ShapeResult:
    assert job.raw is not None
    rule = job.rule
    have_room(len(job.raw))
    try:
        response = parse(job.raw)
    except DocumentError:
        if (error := error_results.of_response(job, context)) is not None:
            return error
        raise
    if not is_final(response.members):
        return job.original("untouched")
    is_error_result = is_error(response.members)
    if is_error_result and not (rule.errors or rule.structures):
        return job.original("error")
    content = response.content or content_of(response.members)
    located = locate(response.members, rule.document, content)
    if located is not None and response.content is not None and not located.frame.document_blocks:
        # The document is elsewhere: the decoded text must stay as the server sent it.
        response = parse(job.raw, intact=True)
        content = content_of(response.members)
        located = locate(response.members, rule.document, content)
    if is_error_result:
        return error_results.of_result(job, response, located, context)
    if job.view is not None and job.asks_for_blob:
        from mcp_abridge.shaping.blobs import answer_first

        return answer_first(job, parse(job.raw, intact=True))
    links = response.content is None and b'"resource_link"' in job.raw
    if rule.only_abridges and rule.max_bytes is not None and links:
        located = locate_links(response.members, rule.max_bytes) or located
    if rule.only_abridges and located is not None and _unseen(job, located.frame):
        located = None
    if located is None:
        _check_no_document(rule, context)
        if rule.max_bytes is None:
            return job.original("untouched")
        located = locate_texts(response.members, content)
        if located is None:
            return job.original("untouched")
        located.frame.bare = True
        rule = rule.for_no_document
        job = replace(job, rule=rule)
    if (
        rule.only_abridges
        and "structuredContent" not in response.members
        and budget.leaves_no_room(job, located.frame)
    ):
        # As one of the blocks, the text that crowds the document out can be viewed too.
        located = locate(response.members, "blocks", content) or located
    if rule.error_if is not None and _matches(rule.error_if, located.document, context.fuel):
        return error_results.of_result(job, response, located, context)
    budgeted = rule.passes_small or rule.whole is not None
    if budgeted and job.view is None and budget.passes(job, located.size):
        if rule.passes_small:
            return job.original("untouched", None, located.size.to(job.shows))
        job = replace(job, rule=rule.unabridged)
    return _from_document(job, response, located, context)


def _check_no_document(rule: Rule, context: ShapeContext) -> None:
    """Raise the error for a result without a document, if its rule demands one."""
    if rule.validate == "refuse":
        raise Refusal("the response breaks its contract: it has no document")
    if rule.validate is not None:
        context.warnings.append(Warned("contract: no document", "the response has no document"))
    if rule.failure_policy.withholds_misfits:
        raise ShapeMismatch("it has no document that the steps could work on")


def _from_document(
    job: ShapeJob, response: ParsedResponse, located: LocatedDocument, context: ShapeContext
) -> ShapeResult:
    rule, document, frame = job.rule, located.document, located.frame
    restart, before = rule.snapshot_step.restart, located.size.to(job.shows)
    dropped: dict[str, int] = {}
    if rule.drop_blocks:
        frame, dropped = without_blocks(frame, rule.drop_blocks)
    frame = with_marked_texts(frame)
    if rule.max_bytes is not None:
        frame = budget.trim_other_blocks(job, frame)
    layout = _indent(document) if rule.layout == "as_sent" else -1
    call = steps.call(job, frame, context)
    steps.run(rule, document, call, slice(0, restart), context.observe)
    frozen = None if restart is None else pages.freeze(document)
    structure = None
    if job.view is not None and frozen is not None:
        content = pages.unchanged_text(document)
        # A text that is decoded need not be written until the page is cut, which takes memory.
        whole = Snapshot(frame.encode(), frozen() if content is None else b"")
        page = pages.cut_page(job, whole, context, content=content)
        structure = page.structure
    else:
        if restart is not None:
            structure = steps.read_structure(rule, document, call, sample=True)
            if structure is not None and structure.frame.sample:
                structure = None  # views read all of it
            steps.run(rule, document, call, slice(restart, None), context.observe)
        document.close()
        notices = call.notices + ([Notice(DROPPED, dropped)] if dropped else [])
        # A result that is too long may fit once it is written compactly.
        too_long = rule.max_bytes is not None and budget.overrun(job, located.size) > 0
        if not (document.changed or notices or too_long or rule.copies != "both"):
            missing = tuple(call.missing)
            original = job.original("untouched", None, before)
            return replace(original, missing=missing, unfit=call.unfit)
        unfit = call.unfit
        result, size = write_for(rule, frame, document, notices, layout, job.shows, unfit=unfit)
        page = Page(result, size, tuple(call.missing))
        if frozen is not None and (excess := budget.overrun(job, size, frame)) > 0:
            whole = Snapshot(frame.encode(), frozen(), structure)
            again = replace(context, observe=None)
            page = pages.cut_page(job, whole, again, excess, unfit=unfit)
    snapshot = None
    if job.keep and frozen is not None:
        # Later pages say what the guard found, as the first one does.
        facts = None if rule.guard is None else job.arguments.get(FACTS)
        snapshot = Snapshot(frame.encode(facts), frozen(), structure)
    return _send(job, response, page, before, snapshot)


def _send(
    job: ShapeJob, response: ParsedResponse, page: Page, before: int, snapshot: Snapshot | None
) -> ShapeResult:
    """Return the result that sends a page, unless it grew more than its rule allows."""
    assert job.raw is not None
    after = page.size.to(job.shows)
    if job.view is None and after > before and not job.rule.allow_growth:
        raise ShapeMismatch(f"the model would see {after} bytes in place of {before}")
    if job.rule.mode == "shadow":
        return replace(job.original("shadow", None, before), visible_after=after)
    raw = encode({**response.envelope, "result": page.result})
    if len(raw) > len(job.raw) and len(raw) > (limit := growth_limit(len(job.raw))):
        raise AbridgeError(f"the result has {len(raw)} bytes, more than {limit}")
    return ShapeResult(
        raw=raw,
        outcome="shaped" if job.view is None else "view",
        visible_before=before,
        visible_after=after,
        snapshot=snapshot,
        missing=page.missing,
    )


def _with_structured(job: ShapeJob, result: ShapeResult) -> ShapeResult:
    try:
        validate = job.rule.validate
        textual = result.unfit or (validate == "text" and result.outcome == "failed")
        added = add_structured(result.raw, replaces=validate == "refuse", textual=textual)
    except Exception as error:  # too deep, too large: still an answer
        text = f"{job.rule.at(job.tool)}: no structuredContent: {type(error).__name__}: {error}"
        return replace(result, log_line=result.log_line or text)
    if added is None:
        return result
    raw, size = added
    return replace(result, raw=raw, visible_after=size.to(job.shows))


def failure(job: ShapeJob, error: BaseException | str) -> ShapeResult:
    """Return the response to send if a rule could not even be tried. Never raises."""
    try:
        result = _failed(job, error)
        if job.uri:
            from mcp_abridge.shaping.resources import as_resource

            return as_resource(job, result)
        return _with_structured(job, result) if job.rule.structures else result
    except Exception:
        if job.raw is not None and not job.rule.failure_policy.withholds:
            return ShapeResult(raw=job.raw, outcome="failed")
        return ShapeResult(raw=_WITHHELD % job.id, outcome="failed")


_WITHHELD = (
    b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text",'
    b'"text":"the answer was withheld: its rule failed on it"}],"isError":true}}'
)


def _failed(job: ShapeJob, error: BaseException | str) -> ShapeResult:
    if isinstance(error, BaseException) and not isinstance(error, AbridgeError):
        error = raised(error)
    log_line = f"{job.rule.at(job.tool)}: failed at {error}"
    if job.rule.failure_policy.withholds:
        reason = f"the response was withheld: rule {job.rule.name!r} failed on it"
        return replace(_refusal(job, reason, []), outcome="failed", log_line=log_line)
    return job.original("failed", log_line)


def _refusal(job: ShapeJob, reason: str, warnings: list[Warned]) -> ShapeResult:
    call = Call(job.tool, job.arguments, names=job.names, warnings=warnings)
    line = error_results.refusal(job.rule, call, job.id, reason, job.modern)
    return ShapeResult(raw=line, outcome="refused", visible_after=len(line))


def _matches(condition: Expression | Pattern, document: Document, fuel: Fuel) -> bool:
    if isinstance(condition, Expression):
        evaluate = evaluator("error_if", condition, Call("", fuel=fuel))
        try:
            return truthy(evaluate(document.cell[0]))
        except OutOfFuel as error:
            raise OutOfFuel(f"error_if: {error}") from error
    content = text(document.cell[0])
    return content is not None and condition.search(content, fuel=fuel) is not None


def _indent(document: Document) -> int:
    """Return the number of spaces that indent a JSON document, -1 if it is on one line."""
    value: Value = document.source
    if type(value) is not Raw:
        return -1
    _, newline, rest = bytes(memoryview(value)[:256]).partition(b"\n")
    return len(rest) - len(rest.lstrip(b" ")) if newline else -1
