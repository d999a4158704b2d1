"""Pages and views cut from a snapshot, which is a document halfway through its rule's steps."""

from collections.abc import Callable

from msgspec import Raw, Struct
from msgspec.structs import replace

from proxy.document import message
from proxy.document.tree import ABSENT, Document, encode, have_room, loads, text
from proxy.document.view import advice, look
from proxy.errors import TransformError
from proxy.ruleset.guard import FACTS
from proxy.shaping import budget as bound
from proxy.shaping import steps
from proxy.shaping.job import ShapeContext, ShapeJob, ShapeResult
from proxy.shaping.result import structured as promise
from proxy.shaping.result import write as writing
from proxy.shaping.result.frame import Frame
from proxy.shaping.result.visible import VisibleSize
from proxy.shaping.steps import Observer
from proxy.storage.snapshots import Snapshot
from proxy.transforms.abridge import Abridge, abridge
from proxy.transforms.base import Call, Notice


class WrittenResult(Struct, frozen=True):
    """A written result, its size as a model sees it, and the paths that matched nothing."""

    written: dict[str, Raw]
    shown: VisibleSize
    missing: tuple[str, ...]


def from_snapshot(
    job: ShapeJob, snapshot: Snapshot, observe: Observer | None, attempt: ShapeContext
) -> ShapeResult:
    """Return the result of a job for a later page or view. Raises the error of a step."""
    have_room(snapshot.size)
    frame = Frame.decode(snapshot.frame)
    if frame.error:
        job = replace(job, rule=job.rule.for_errors)
    elif frame.bare:
        job = replace(job, rule=job.rule.for_no_document)
    if job.rule.guard is not None:
        # The guard does not run for later pages: its decision on the call holds for all of them.
        found = {} if frame.facts is ABSENT else loads(bytes(frame.facts))
        job = replace(job, arguments={**job.arguments, FACTS: found})
    answer = answered(job, snapshot, observe, attempt)
    return ShapeResult(
        raw=message.result(job.id, answer.written),
        word="page" if job.view is None else "view",
        visible_after=answer.shown.to(job.shows),
        missing=answer.missing,
    )


def answered(
    job: ShapeJob,
    snapshot: Snapshot,
    observe: Observer | None,
    attempt: ShapeContext,
    excess: int = 0,
) -> WrittenResult:
    """Cut the page or view of `job`; again in less room as long as the result is too long."""
    rule = job.rule
    frame = Frame.decode(snapshot.frame)
    while True:
        document = _thawed(snapshot)
        call = steps.call(job, frame, attempt, excess)
        last = None if job.view is None else rule.snapshot_step.cut
        steps.run(rule, document, call, slice(rule.snapshot_step.restart, last), observe)
        if job.view is None:
            document.close()
        else:
            document = _viewed(job, document, frame, call)
        result, shown = written(job, frame, document, call.notices)
        more = bound.excess(job, shown, frame)
        if more <= 0 or excess > (rule.max_bytes or 0):
            return WrittenResult(result, shown, tuple(call.missing))
        excess += more


def _thawed(snapshot: Snapshot) -> Document:
    document = Document.read(snapshot.document)
    said = text(document.cell[0])
    return document if said is None else Document(said)


def _viewed(job: ShapeJob, whole: Document, frame: Frame, call: Call) -> Document:
    """Return the document of a view: a text as text, else `{view: value}`, abridged if need be."""
    assert job.view is not None
    member = next((copy.member for copy in frame.copies if copy.member), "text")
    remarks: list[str] = []
    value = look(whole, job.view, member, call.fuel, remarks)
    said = None if call.structured else text(value)
    document = Document({"view": value} if said is None else said)
    if value is None:
        remarks = ["null, or nothing there", *remarks, advice(whole)]
    if remarks and said is None:
        document.cell[0]["more"] = "; ".join(remarks)
    bounds = [step.max_bytes for step in job.rule.pipeline if isinstance(step, Abridge)]
    least = min((most for most in (*bounds, call.bound) if most is not None), default=None)
    if least is not None:
        viewable = job.viewable and job.rule.snapshot_step.viewable
        abridge(document, least, replace(call, viewable=viewable), job.view)
    return document


def written(
    job: ShapeJob, frame: Frame, document: Document, notices: list[Notice], indent: int = -1
) -> tuple[dict[str, Raw], VisibleSize]:
    """Write the result, with structuredContent if the rule's schema promises it."""
    held = frame.members.get("structuredContent")
    if job.rule.structures and (held is None or bytes(held) == b"null"):
        return promise.promised(frame, document, notices, indent)
    return writing.write(frame, document, notices, job.rule.copies, indent)


def taken(document: Document) -> Callable[[], bytes]:
    """Return a function that gives the bytes of the current document; free if it is unopened."""
    source = document.source
    unopened = type(source) is Raw or isinstance(source, str)
    if unopened and not (document.changed or document.closers):
        return lambda: bytes(source) if type(source) is Raw else encode(source)
    now = document.encode()
    return lambda: now


def kept(job: ShapeJob, frame: Frame, document: bytes) -> Snapshot:
    """Return the snapshot for later pages and views, with the guard's facts of the call.

    Raises TransformError if the facts cannot be stored.
    """
    facts = None if job.rule.guard is None else job.arguments.get(FACTS)
    try:
        return Snapshot(frame.encode(facts), document)
    except Exception as error:
        raise TransformError("keeping the guard's facts, no plain values", error) from error
