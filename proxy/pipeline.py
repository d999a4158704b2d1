"""Runs a rule over one tool response: the straight line from raw result to raw result.

A Job is everything that is needed, an Outcome everything that comes of it; `shape` turns the one
into the other, touches nothing else, and never raises. Whatever goes wrong on the way, the
original goes out, once, and the Outcome says what went wrong.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from proxy import error_result, message, result
from proxy.clients import Shows
from proxy.document import ABSENT, Document, Value, encode, loads, plain, row_type, text
from proxy.document import raw as raw_of
from proxy.errors import (
    AbridgeError,
    DocumentError,
    Emptied,
    Mismatch,
    Refusal,
    Spent,
    TransformError,
    raised,
)
from proxy.fuel import MOST, Fuel
from proxy.guard import FACTS
from proxy.meter import Outcome as Word
from proxy.notes import DROPPED
from proxy.patterns import Expression, Pattern, truthy
from proxy.remains import emptied, hollow
from proxy.result import Frame, Reading, Shown
from proxy.room import have_room
from proxy.rule import Rule
from proxy.snapshots import Snapshot
from proxy.surrogates import unmask
from proxy.transforms.abridge import Abridge, abridge
from proxy.transforms.base import Call, Notice, Warned
from proxy.view import advice, look
from proxy.written import most_of, outgrows

_LEAST = 300  # bytes: no document is made smaller than this for the sake of what stands beside it


class Job(Struct, frozen=True, kw_only=True):
    """One response to shape.

    Either `raw`, a response line as it came, or `snapshot`, from which a later page or view is
    cut. `arguments` are complete (see transforms.base.Call). `keep` asks for a snapshot of the
    document for later pages; `view` is an expression to answer in place of the document.
    `viewable` is false where no later call can look into the answer. `fuel` is what it may cost.
    `aside`: the rule is out of service, and the response is to go out as it came.
    """

    rule: Rule
    tool: str
    id: bytes
    raw: bytes | None = None
    snapshot: Snapshot | None = None
    arguments: dict[str, Any] = {}
    names: dict[str, str] = {}
    view: str | None = None
    keep: bool = False
    viewable: bool = True
    shows: Shows = "either"
    modern: bool = False
    token: int = 0
    aside: bool = False
    fuel: int = MOST


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of a Job: the line to send and what to count.

    `visible_*` are bytes that the model sees; `said` is a line for the log, where something is
    worth one. `spent` says that the job's fuel was not enough, `blameless` that it was not the rule
    that failed.
    """

    raw: bytes
    word: Word
    visible_before: int = 0
    visible_after: int = 0
    snapshot: Snapshot | None = None
    said: str | None = None
    missing: tuple[str, ...] = ()
    warnings: tuple[Warned, ...] = ()
    spent: bool = False
    blameless: bool = False


Observer = Callable[[str, Document, Call], None]


class Tally(Struct):
    """What comes up while a job is done: the warnings, and the fuel that is left."""

    fuel: Fuel
    warnings: list[Warned] = []


def shape(job: Job, observe: Observer | None = None) -> Outcome:
    """Do `job`. Never raises: a failure is an Outcome that carries the original."""
    try:
        outcome = _original(job, "failed", None) if job.aside else _shaped(job, observe)
        return _structured(outcome, job)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # Python of a rule's own may raise anything
        return failure(job, error)


def _shaped(job: Job, observe: Observer | None) -> Outcome:
    tally = Tally(fuel=Fuel(job.fuel))
    outcome = _tried(job, observe, tally)
    said, spent = tuple(dict.fromkeys(tally.warnings)), tally.fuel.left < 0
    return replace(outcome, warnings=said, spent=spent) if said or spent else outcome


def failure(job: Job, cause: BaseException | str) -> Outcome:
    """Return what goes out where a rule could not even be tried, which `cause` says.

    Never raises either: where that fails too, the answer says no more than it must.
    """
    try:
        return _structured(_failure(job, cause), job)
    except Exception:
        if job.raw is not None and not job.rule.withholds:
            return Outcome(raw=job.raw, word="failed")
        return Outcome(raw=_WITHHELD % job.id, word="failed")


_WITHHELD = (
    b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text",'
    b'"text":"the answer was withheld: its rule failed on it"}],"isError":true}}'
)


def _tried(job: Job, observe: Observer | None, tally: Tally) -> Outcome:
    try:
        if job.snapshot is not None:
            return _from_snapshot(job, job.snapshot, observe, tally)
        return _from_response(job, observe, tally)
    except Refusal as refused:
        if job.rule.mode == "shadow":
            return _original(job, "shadow", None)
        return _refused(job, str(refused), tally.warnings)
    except Mismatch as other:
        if job.rule.exclusive:
            return _unfit(job, other)
        said = f"{job.rule.at(job.tool)}: left as it came: {other}"
        bounding = job.rule.bounding
        if bounding.pipeline and bounding != job.rule:
            # Another shape than the rule expects is no reason to let it be of any size.
            bounded = replace(job, rule=bounding)
            return replace(_tried(bounded, observe, tally), said=said)
        return _original(job, "untouched", said)
    except DocumentError as other:
        if job.rule.withholds:
            return _failure(job, other)
        return _original(job, "untouched", f"{job.rule.at(job.tool)}: left as it came: {other}")
    except (Exception, SystemExit) as error:
        # A rule must never cost an answer, whatever it raises (RecursionError, MemoryError, ...).
        return _failure(job, error)


def _failure(job: Job, cause: BaseException | str) -> Outcome:
    """Return what goes out where a rule failed: the original, unless the rule withholds it."""
    if isinstance(cause, BaseException) and not isinstance(cause, AbridgeError):
        cause = raised(cause)
    said = f"{job.rule.at(job.tool)}: failed at {cause}"
    if job.rule.withholds:
        text = f"the response was withheld: rule {job.rule.name!r} failed on it"
        return replace(_refused(job, text, []), word="failed", said=said)
    return _original(job, "failed", said)


def _unfit(job: Job, other: Mismatch) -> Outcome:
    """Return what goes out in place of a response that the rule does not fit, and withholds."""
    does_not = f"the response was withheld: rule {job.rule.name!r} does not fit it"
    refused = _refused(job, str(other) if isinstance(other, Emptied) else does_not, [])
    return replace(refused, said=f"{job.rule.at(job.tool)}: withheld: {other}")


def refusal(rule: Rule, call: Call, id: bytes, said: str, modern: bool) -> bytes:
    """Return an error result that says why something is refused, as the rule's `errors` have it."""
    return message.refusal(id, error_result.of_refusal(rule, call, said), modern)


def _refused(job: Job, said: str, warnings: list[Warned]) -> Outcome:
    call = Call(job.tool, job.arguments, names=job.names, warnings=warnings)
    line = refusal(job.rule, call, job.id, said, job.modern)
    return Outcome(raw=line, word="refused", visible_after=len(line))


def run(
    rule: Rule,
    document: Document,
    call: Call,
    steps: slice,
    observe: Observer | None = None,
) -> None:
    """Run some steps of the rule's pipeline over `document`.

    Raises TransformError for whatever a step raises, except what the proxy itself means to say;
    Emptied where a step leaves nothing.
    """
    exclusive = rule.exclusive
    for step in rule.pipeline[steps]:
        if exclusive and step.name in _PICKING and text(document.cell[0]) is not None:
            raise Mismatch(f"{step.name}: the document is a text")
        removes = step.name in _REMOVING and not hollow(document.cell[0])
        fuel = call.fuel.left
        try:
            step(document.root, call)
        except Spent as spent:
            raise Spent(f"{step.name}: {spent}") from spent
        except AbridgeError:
            raise
        except (Exception, SystemExit) as error:
            raise TransformError(step.name, error) from error
        if observe is not None:
            observe(step.name, document, call)
        if removes and emptied(document):
            raise Emptied(f"everything was removed by rule {rule.name!r}")
        if getattr(step, "repeats", rule.foreign):
            # What `project` computes is paid for: a unit for at most so many bytes.
            most = (fuel - call.fuel.left) * _PAID if step.name == "project" else None
            _bounded(step.name, document, most)


_REMOVING = frozenset(("keep", "drop", "project"))
# Of a text they leave all, which a rule that withholds must not: it may be JSON that is too deep.
_PICKING = frozenset(("drop", "filter"))


_PAID = 128


def _bounded(name: str, document: Document, most: int | None = None) -> None:
    """Raise AbridgeError where a document has grown out of all proportion.

    By no more than `most` bytes, where that is known; it takes a while to see by how much.
    """
    source = document.source
    room = most_of(len(source if isinstance(source, str) else memoryview(raw_of(source))))
    if (most is None or most > room) and outgrows(document.cell[0], room):
        raise AbridgeError(f"{name}: it gives more than {room} bytes")


def _from_response(job: Job, observe: Observer | None, tally: Tally) -> Outcome:
    assert job.raw is not None
    rule = job.rule
    have_room(len(job.raw))
    try:
        line = result.take_apart(job.raw)
    except DocumentError:
        if rule.errors and (error := _from_error(job, tally)) is not None:
            return error
        raise
    if not result.complete(line.members):
        return _original(job, "untouched", None)
    failed = result.failed(line.members)
    if failed and not (rule.errors or rule.structures):
        return _original(job, "error", None)
    reading = result.read(line.members, rule.document, line.content)
    if reading is not None and line.content is not None and not reading.frame.held:
        # The document is elsewhere: the text that was decoded on the way is to stay as it came.
        line = result.take_apart(job.raw, intact=True)
        reading = result.read(line.members, rule.document, line.content)
    envelope, raw, masked = line.envelope, line.members, line.masked
    if failed:
        return _failed(job, line, reading, tally)
    if reading is None and rule.max_bytes is not None:
        reading = result.read(raw, "blocks", line.content)
    if reading is None:
        if rule.validate is not None:
            _without_document(rule, tally)
        if rule.exclusive:
            raise Mismatch("it has no document that the steps could work on")
        return _original(job, "untouched", None)
    if rule.only_abridges and "structuredContent" not in raw and _crowded(job, reading.frame):
        # As one of the blocks, what crowds the document out can be looked at too.
        reading = result.read(raw, "blocks", line.content) or reading
    document, before = reading.document, reading.shown.to(job.shows)
    document.masked |= masked
    reading.frame.masked = masked
    if rule.error_if is not None and _is_error(rule.error_if, document, tally.fuel):
        return _failed(job, line, reading, tally)
    if job.view is None and _fits(job, reading.shown):
        return _original(job, "untouched", None, before)
    frame, dropped = result.without(reading.frame, rule.drop_blocks)
    if _crowded(job, frame):
        frame = _shortened(frame, (rule.max_bytes or 0) // 2)
    frame = _bounded_beside(job, frame)
    layout = _indent(document) if rule.layout == "as_sent" else -1
    call = _call(job, frame, tally)
    run(rule, document, call, slice(0, rule.restart), observe)
    taken = None if rule.restart is None else _taken(document)
    if job.view is not None and taken is not None:
        answer = _answered(job, Snapshot(frame.encode(), taken()), observe, tally)
    else:
        if rule.restart is not None:
            run(rule, document, call, slice(rule.restart, None), observe)
        document.close()
        too_long = _excess(job, reading.shown) > 0  # though it may fit once it is written compactly
        if not (document.changed or dropped or call.notices or too_long or rule.copies != "both"):
            missing = tuple(call.missing)
            return replace(_original(job, "untouched", None, before), missing=missing)
        notices = call.notices + ([Notice(DROPPED, dropped)] if dropped else [])
        written, shown = _written(job, frame, document, notices, layout)
        answer = Answer(written, shown, tuple(call.missing), frame.masked or document.masked)
        if taken is not None and (excess := _excess(job, shown, frame)) > 0:
            answer = _answered(job, Snapshot(frame.encode(), taken()), None, tally, excess)
    after = answer.shown.to(job.shows)
    if job.view is None and after > before and not rule.allow_growth:
        raise Mismatch(f"the model would see {after} bytes in place of {before}")
    if rule.mode == "shadow":
        return replace(_original(job, "shadow", None, before), visible_after=after)
    keeps = job.keep and taken is not None
    sent = answer.line(encode({**envelope, "result": answer.written}))
    if len(sent) > (room := most_of(len(job.raw))):
        raise AbridgeError(f"the end: a result of {len(sent)} bytes, more than {room}")
    return Outcome(
        raw=sent,
        word="shaped" if job.view is None else "view",
        visible_before=before,
        visible_after=after,
        snapshot=_kept(job, frame, taken()) if keeps and taken is not None else None,
        missing=answer.missing,
    )


def _from_error(job: Job, tally: Tally) -> Outcome | None:
    """Return what becomes of a JSON-RPC error, None where the response is none."""
    assert job.raw is not None
    call = Call(job.tool, job.arguments, names=job.names, warnings=tally.warnings, fuel=tally.fuel)
    if job.rule.mode == "shadow":
        return _original(job, "error", None)
    try:
        line = error_result.of_response(job.rule, call, job.raw)
    except (Exception, SystemExit) as error:  # it must never cost the error itself
        said = f"{job.rule.at(job.tool)}: errors: failed at {raised(error)}"
        return _original(job, "error", said)
    if line is None:
        return None
    original = _original(job, "error", None)
    return replace(original, raw=line, visible_after=len(line), missing=tuple(call.missing))


def _failed(job: Job, line: result.Line, reading: Reading | None, tally: Tally) -> Outcome:
    """Return what becomes of an error result."""
    rule = job.rule
    before = None if reading is None else reading.shown.to(job.shows)
    marks = rule.errors or rule.structures
    if not marks or rule.mode == "shadow":
        return _original(job, "error", None, before)
    if reading is None:
        tally.warnings.append(
            Warned("errors: no document", "an error of several texts went out as it is")
        )
        return _original(job, "error", None, before)
    reading.document.masked |= line.masked
    reading.frame.masked |= reading.document.masked
    call = replace(_call(job, reading.frame, tally), bound=None, viewable=False)
    try:
        shaped = error_result.of_result(rule, call, reading)
    except (Exception, SystemExit) as error:  # it must never cost the error itself
        said = f"{rule.at(job.tool)}: errors: failed at {raised(error)}"
        return _original(job, "error", said, before)
    promised = rule.structures and "structuredContent" in reading.frame.members
    if not (reading.document.changed or call.notices or promised):
        return replace(_marked(job, before), missing=tuple(call.missing))
    written = encode({**line.envelope, "result": shaped.written})
    if job.raw is not None and len(written) > (room := most_of(len(job.raw))):
        said = f"{rule.at(job.tool)}: errors: a result of {len(written)} bytes, more than {room}"
        return _original(job, "error", said, before)
    return Outcome(
        raw=unmask(written) if shaped.masked else written,
        word="error",
        visible_before=before or 0,
        visible_after=shaped.shown.to(job.shows),
        missing=tuple(call.missing),
    )


def _marked(job: Job, before: int | None) -> Outcome:
    """Return an error that the rule's steps left alone: as it came, and marked as one."""
    original = _original(job, "error", None, before)
    line = result.take_apart(original.raw, intact=True)
    if result.failed(line.members):
        return original
    raw = encode({**line.envelope, "result": {**line.members, "isError": Raw(b"true")}})
    return replace(original, raw=unmask(raw) if line.masked else raw)


def _without_document(rule: Rule, tally: Tally) -> None:
    if rule.validate == "refuse":
        raise Refusal("the response breaks its contract: it has no document")
    tally.warnings.append(Warned("contract: no document", "the response has no document"))


def _structured(outcome: Outcome, job: Job) -> Outcome:
    """Return the outcome with the structuredContent that clients of its tool were promised."""
    if not job.rule.structures:
        return outcome
    try:
        found = result.structured(outcome.raw, itself=job.rule.validate == "refuse")
    except Exception as error:  # too deep, too large: an answer all the same
        said = f"{job.rule.at(job.tool)}: no structuredContent: {type(error).__name__}: {error}"
        return replace(outcome, said=outcome.said or said)
    if found is None:
        return outcome
    line, shown = found
    return replace(outcome, raw=line, visible_after=shown.to(job.shows))


def _kept(job: Job, frame: Frame, document: bytes) -> Snapshot:
    facts = None if job.rule.guard is None else job.arguments.get(FACTS)
    try:
        return Snapshot(frame.encode(facts), document)
    except Exception as error:
        raise TransformError("keeping the guard's facts, no plain values", error) from error


def _from_snapshot(job: Job, snapshot: Snapshot, observe: Observer | None, tally: Tally) -> Outcome:
    have_room(snapshot.size)
    if job.rule.guard is not None:
        # It is not asked about later pages: what it said of the call holds for all of them.
        facts = Frame.decode(snapshot.frame).facts
        found = {} if facts is ABSENT else loads(bytes(facts))
        job = replace(job, arguments={**job.arguments, FACTS: found})
    answer = _answered(job, snapshot, observe, tally)
    return Outcome(
        raw=answer.line(message.result(job.id, answer.written)),
        word="page" if job.view is None else "view",
        visible_after=answer.shown.to(job.shows),
        missing=answer.missing,
    )


class Answer(Struct, frozen=True):
    """A result written, what a model sees of it, and the paths that matched nothing."""

    written: dict[str, Raw]
    shown: Shown
    missing: tuple[str, ...]
    masked: bool

    def line(self, raw: bytes) -> bytes:
        """Return the line to send, lone surrogates restored."""
        return unmask(raw) if self.masked else raw


def _answered(
    job: Job,
    snapshot: Snapshot,
    observe: Observer | None,
    tally: Tally,
    excess: int = 0,
) -> Answer:
    """Cut the page or view that `job` asks for; in less room while what stands beside it counts."""
    rule = job.rule
    while True:
        frame = Frame.decode(snapshot.frame)
        document = _thawed(snapshot)
        call = _call(job, frame, tally, excess)
        if job.view is None:
            run(rule, document, call, slice(rule.restart, None), observe)
            document.close()
        else:
            run(rule, document, call, slice(rule.restart, rule.cut), observe)
            document = _viewed(job, document, frame, call)
        written, shown = _written(job, frame, document, call.notices)
        more = _excess(job, shown, frame)
        if more <= 0 or excess > (rule.max_bytes or 0):
            masked = frame.masked or document.masked
            return Answer(written, shown, tuple(call.missing), masked)
        excess += more


def _written(
    job: Job, frame: Frame, document: Document, notices: list[Notice], indent: int = -1
) -> tuple[dict[str, Raw], Shown]:
    """Write the result, with the structuredContent that clients of its tool were promised."""
    held = frame.members.get("structuredContent")
    if job.rule.structures and (held is None or bytes(held) == b"null"):
        return result.promised(frame, document, notices, indent)
    return result.write(frame, document, notices, job.rule.copies, indent)


def _viewed(job: Job, whole: Document, frame: Frame, call: Call) -> Document:
    """Answer a view: a text as text, anything else as `{view: value}`, abridged if need be."""
    assert job.view is not None
    member = next((copy.member for copy in frame.copies if copy.member), "text")
    value = look(whole, job.view, member, call.fuel)
    said = None if call.structured else text(value)
    document = Document({"view": value} if said is None else said, masked=whole.masked)
    if value is None:
        document.cell[0]["more"] = f"null, or nothing there; {advice(whole)}"
    bounds = [step.max_bytes for step in job.rule.pipeline if isinstance(step, Abridge)]
    least = min((bound for bound in (*bounds, call.bound) if bound is not None), default=None)
    if least is not None:
        viewable = job.viewable and job.rule.viewable
        abridge(document, least, replace(call, viewable=viewable), job.view)
    return document


def _excess(job: Job, shown: Shown, frame: Frame | None = None) -> int:
    """Return by how many bytes the result is too long, or each copy of the document in `frame`."""
    if job.rule.max_bytes is None:
        return 0
    over = max(shown.most, shown.to(job.shows)) - job.rule.max_bytes
    return over if frame is None else -(-over // _copies_shown(job, frame))


def _copies_shown(job: Job, frame: Frame) -> int:
    """Count the copies of the document that a model is shown, where its client shows both."""
    if job.shows != "both":
        return 1
    if job.rule.structures and "structuredContent" not in frame.members:
        return 2  # one is added once the document is written
    return 1 if job.rule.copies != "both" else len({copy.where == "text" for copy in frame.copies})


def _taken(document: Document) -> Callable[[], bytes]:
    """Return what gives the document as it stands now, later: for nothing while it is unopened."""
    source = document.source
    unopened = type(source) is Raw or isinstance(source, str)
    if unopened and not (document.changed or document.closers or document.masked):
        return lambda: bytes(source) if type(source) is Raw else encode(source)
    now = document.encode()
    return lambda: now


def _thawed(snapshot: Snapshot) -> Document:
    document = Document.read(snapshot.document)
    said = text(document.cell[0])
    return document if said is None else Document(said, masked=document.masked)


def _call(job: Job, frame: Frame, tally: Tally, excess: int = 0) -> Call:
    rule, bound = job.rule, None
    viewable = job.viewable and rule.viewable
    if rule.max_bytes is not None:
        held = frame.held
        beside = result.visible({}, [b for at, b in enumerate(frame.blocks) if at not in held])
        apart = _apart(frame) if job.shows == "both" else None
        most = rule.max_bytes - beside.text - (0 if apart is None else len(memoryview(apart)))
        room = most // _copies_shown(job, frame)
        bound = max(room - excess, _LEAST)
    return Call(
        tool=job.tool,
        arguments=job.arguments,
        bound=bound,
        structured=rule.structures or any(copy.where == "structured" for copy in frame.copies),
        names=job.names,
        viewable=viewable and rule.pipeline[rule.cut or 0].name == "abridge",
        notices=[],
        missing=[],
        warnings=tally.warnings,
        fuel=tally.fuel,
    )


def _crowded(job: Job, frame: Frame) -> bool:
    """Say whether the texts beside the document leave it hardly any room."""
    if job.rule.max_bytes is None:
        return False
    return sum(len(said.encode()) for said in result.beside(frame).values()) > (
        job.rule.max_bytes * 3 // 4
    )


def _shortened(frame: Frame, most: int) -> Frame:
    """Return the frame with the texts beside the document cut to `most` bytes, notes included."""
    beside = result.beside(frame)
    texts = list(beside.values())
    whole: Value = texts[0] if len(texts) == 1 else [Raw(encode(said)) for said in texts]
    document = Document(whole, masked=frame.masked)
    call = Call("", notices=[])
    abridge(document, max(most, _LEAST), call)
    cut = document.root.open()
    left = zip(beside, map(text, cut if isinstance(cut, list) else [cut]), strict=False)
    return result.shortened(frame, {at: said or "" for at, said in left}, call.notices)


def _bounded_beside(job: Job, frame: Frame) -> Frame:
    """Return the frame with a structuredContent that is not the document cut to the bound, too."""
    held = _apart(frame)
    if held is None or job.rule.max_bytes is None:
        return frame
    most = job.rule.max_bytes // (2 if job.shows == "both" else 1)
    if len(memoryview(held)) <= most:
        return frame
    document = Document(held, masked=frame.masked)
    abridge(document, max(most, _LEAST), Call("", structured=True, notices=[]))
    members = {**frame.members, "structuredContent": Raw(encode(document.cell[0]))}
    return Frame(members, frame.blocks, frame.copies, frame.masked)


def _apart(frame: Frame) -> Raw | None:
    """Return the structuredContent of a result whose document is elsewhere."""
    if any(copy.where != "text" for copy in frame.copies):
        return None
    return frame.members.get("structuredContent")


def _fits(job: Job, shown: Shown) -> bool:
    """Say whether a rule that only bounds the size has nothing to do."""
    return job.rule.only_bounds and _excess(job, shown) <= 0


def _is_error(condition: Expression | Pattern, document: Document, fuel: Fuel) -> bool:
    if isinstance(condition, Expression):
        try:
            row = None if condition.names is None else row_type(condition.names)
            return truthy(condition.search(plain(document.cell[0], row, fuel), fuel))
        except Spent as spent:
            raise Spent(f"error_if: {spent}") from spent
        except Refusal as cause:
            raise TransformError("error_if", cause) from cause
    said = text(document.cell[0])
    return said is not None and condition.search(said, fuel=fuel) is not None


def _indent(document: Document) -> int:
    """Return by how many spaces a JSON document is indented, -1 where it stands on one line."""
    value: Value = document.source
    if type(value) is not Raw:
        return -1
    start = bytes(memoryview(value)[:256])
    line = start.find(b"\n")
    if line < 0:
        return -1
    rest = start[line + 1 :]
    return len(rest) - len(rest.lstrip(b" "))


def _original(job: Job, word: Word, said: str | None, before: int | None = None) -> Outcome:
    if job.raw is None:
        line = message.refusal(job.id, said or "nothing is kept of the earlier answer", job.modern)
        return Outcome(raw=line, word="refused", said=said, visible_after=len(line))
    size = len(job.raw) if before is None else before
    return Outcome(raw=job.raw, word=word, visible_before=size, visible_after=size, said=said)
