"""Runs a rule's `errors` over an error: a result marked so, a JSON-RPC error, our own refusal.

Invariant: an error stays one, of its kind; and what goes wrong on the way never costs it.
"""

from msgspec import Raw
from msgspec.structs import replace

from proxy import message, steps
from proxy.document import Document, encode, text
from proxy.errors import DocumentError, raised
from proxy.fuel import LITTLE, Fuel
from proxy.job import Attempt, Job, Outcome
from proxy.message import members
from proxy.result.frame import as_text
from proxy.result.line import Line, failed, take_apart
from proxy.result.reading import Reading
from proxy.result.writing import write
from proxy.rule import Rule
from proxy.surrogates import mask, masks, unmask
from proxy.transforms.base import Call, Warned
from proxy.written import most_of

_TRUE = Raw(b"true")


def of_result(job: Job, line: Line, reading: Reading | None, attempt: Attempt) -> Outcome:
    """Return what becomes of a result that is an error, or that its rule says is one."""
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
    document.masked |= line.masked
    reading.frame.masked = line.masked
    call = replace(steps.call(job, reading.frame, attempt), bound=None, viewable=False)
    try:
        _run(rule, document, call)
        reading.frame.join(document, job.raw)
        # Some clients hold the structuredContent of an error to the schema of what it is not.
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
    if len(raw) > (room := most_of(len(job.raw))):
        said = f"{rule.at(job.tool)}: errors: a result of {len(raw)} bytes, more than {room}"
        return job.original("error", said, before)
    return Outcome(
        raw=unmask(raw) if frame.masked else raw,
        word="error",
        visible_before=before or 0,
        visible_after=shown.to(job.shows),
        missing=tuple(call.missing),
    )


def _marked(job: Job, before: int | None) -> Outcome:
    """Return an error that the rule's steps left alone: as it came, and marked as one."""
    original = job.original("error", None, before)
    line = take_apart(original.raw, intact=True)
    if failed(line.members):
        return original
    raw = encode({**line.envelope, "result": {**line.members, "isError": _TRUE}})
    return replace(original, raw=unmask(raw) if line.masked else raw)


def of_response(job: Job, attempt: Attempt) -> Outcome | None:
    """Return what becomes of a JSON-RPC error, None where the response is none."""
    assert job.raw is not None
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
    """Return a JSON-RPC error whose message went through the rule's steps; None for what is none.

    Its code and its data stay.
    """
    try:
        masked = message.masked(raw)
        error = members(members(mask(raw) if masked else raw).get("error", Raw(b"null")))
    except DocumentError:
        return None
    said = text(error.get("message"))
    if said is None:
        return None
    shaped = _said(rule, call, said, masked=masked)
    return message.replaced(raw, error={**error, "message": shaped})


def refusal(rule: Rule, call: Call, id: bytes, said: str, modern: bool) -> bytes:
    """Return an error result that says why something is refused, as the rule's `errors` have it."""
    return message.refusal(id, _of_refusal(rule, call, said), modern)


def _of_refusal(rule: Rule, call: Call, said: str) -> str:
    try:
        # That no case knows our own words is not worth a warning; they are short, and others wait.
        return _said(rule, replace(call, warnings=[], fuel=Fuel(LITTLE)), said)
    except (Exception, SystemExit) as error:  # the reason why it is refused must never be lost
        call.warn("errors: a step failed", f"a refusal went out as it is: {error}")
        return said


def _said(rule: Rule, call: Call, said: str, *, masked: bool = False) -> str:
    document = Document(said, masked=masked)
    _run(rule, document, call)
    shaped = text(document.cell[0])
    if shaped is None:
        return document.encode().decode()
    if document.masked and not masked and masks(shaped.encode()):
        raise DocumentError("lone surrogates of a text in a text cannot be carried out of it")
    return shaped


def _run(rule: Rule, document: Document, call: Call) -> None:
    for each in rule.errors:
        step = steps.of_text(each, rule.errors, call) if document.textual else each
        if step is not None:
            step(document.root, call)
    document.close()
