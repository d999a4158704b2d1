"""Pages and views cut from a snapshot, which is a document halfway through its rule's steps."""

import re
from collections.abc import Callable
from functools import cache, partial

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_abridge.document import message
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.measure import Structure
from mcp_abridge.document.names import label
from mcp_abridge.document.paths import ROOT
from mcp_abridge.document.tree import (
    ABSENT,
    Document,
    Value,
    encode,
    have_room,
    level,
    loads,
    opened,
    raw,
    text,
)
from mcp_abridge.query.call import ALL, Call, Notice, asks_for
from mcp_abridge.ruleset.guard import FACTS
from mcp_abridge.shaping import budget, steps
from mcp_abridge.shaping.budget import ESCAPED, overrun
from mcp_abridge.shaping.job import ShapeContext, ShapeJob, ShapeResult
from mcp_abridge.shaping.result.frame import Frame, VisibleSize, as_structure, without_blocks
from mcp_abridge.shaping.result.write import write_for
from mcp_abridge.storage.snapshots import Snapshot, age_in_words, encode_text
from mcp_abridge.transforms.abridge import NAME, AbridgeStep, abridge

_OTHERS = ("image", "audio", "resource", "resource_link")  # blocks that the first answer had
_VIEW_MS = 1200  # milliseconds of a processor for one view, but for reading and writing


class Page(Struct, frozen=True):
    """A written result, its size as a model sees it, and the paths that matched nothing.

    `structure` is what a text was read as for it.
    """

    result: dict[str, Raw]
    size: VisibleSize
    missing: tuple[str, ...]
    structure: Structure | None = None


def from_snapshot(job: ShapeJob, snapshot: Snapshot, context: ShapeContext) -> ShapeResult:
    """Return the result of a job for a later page or view. Raises the error of a step."""
    have_room(snapshot.size)
    frame = Frame.decode(snapshot.frame)
    if frame.error:
        job = replace(job, rule=job.rule.for_errors)
    elif frame.bare:
        job = replace(job, rule=job.rule.for_no_document)
    if job.rule.guard is not None:
        # The guard does not run for later pages: its decision on the call holds for all of them.
        facts = {} if frame.facts is ABSENT else loads(bytes(frame.facts))
        job = replace(job, arguments={**job.arguments, FACTS: facts})
    page = cut_page(job, snapshot, context)
    return ShapeResult(
        # The result of a task, which the snapshot may be of, need not name its type.
        raw=message.completed(job.id, page.result, job.modern),
        outcome="page" if job.view is None else "view",
        visible_after=page.size.to(job.shows),
        missing=page.missing,
    )


def cut_page(
    job: ShapeJob,
    snapshot: Snapshot,
    context: ShapeContext,
    excess: int = 0,
    content: str | None = None,
    *,
    unfit: bool = False,
) -> Page:
    """Cut the page or view of `job`; again in less room as long as the result is too long.

    `content` is the document of the snapshot if that is a text, and already decoded. `unfit`: it
    breaks the schema of the rule.
    """
    rule = job.rule
    frame = Frame.decode(snapshot.frame)
    if job.view is not None and job.raw is None and not job.uri:
        frame, _ = without_blocks(frame, _OTHERS)
    answer: _Answer | None = None  # of a view: it is written again, and asked once
    structure = snapshot.structure
    stored, first = snapshot.document if content is None else content, None
    if isinstance(stored, bytes):
        first = Document.read(stored)
        if (content := text(first.cell[0])) is not None:
            stored, first = content, None
    while True:
        if first is None:
            first = Document(stored) if isinstance(stored, str) else Document.read(stored)
        document, first = first, None
        call = steps.call(job, frame, context, excess)
        end = None if job.view is None else rule.snapshot_step.cut
        structure = steps.read_structure(rule, document, call, structure)
        steps.run(rule, document, call, slice(rule.snapshot_step.restart, end), context.observe)
        if job.view is not None and (view := _view_of_all(document, job.view)):
            job = replace(job, view=view)
            if call.whole is not None:
                from mcp_abridge.summary.abridgement import given_whole

                raw = given_whole(document, call)
                most = call.whole.bytes_for(raw)
                call = replace(call, bound=None if len(raw) <= most else most)
                rule = rule.for_all(budget.whole_bytes(job))
                job = replace(job, rule=rule)
        if job.view is None:
            document.close()
        else:
            bound = _bound(job, call)
            answer = answer or _answer(job, document, frame, call, bound)
            document = _view(job, document, call, answer, bound)
            frame = frame if document.textual else as_structure(frame)
            if job.dates and snapshot.age:
                call.notices.append(_age(snapshot.age, call))
        unfit = job.view is None and (unfit or call.unfit)
        result, size = write_for(rule, frame, document, call.notices, shows=job.shows, unfit=unfit)
        more = overrun(job, size, frame)
        if more <= 0 or excess > (rule.max_bytes or 0):
            return Page(result, size, tuple(call.missing), structure)
        excess += max(more, excess // 2) if job.shows in ESCAPED else more


def _view_of_all(document: Document, view: str) -> str | None:
    """Return an expression for the whole of a document if that is what `view` asks for."""
    if not asks_for(ALL, view):
        return None
    from mcp_abridge.document.measure import writeback_at

    value = opened(document.cell[0])
    if isinstance(value, dict) and ALL in value:
        return None
    if document.textual or writeback_at(document, ROOT) is not None:
        return "text"
    if all(each.read_without_rule for each in document.closers):
        document.close()
    return "@"


_OF_ALL = re.compile(
    r"\[\?|\b(?:grep|len|length|count|sum|avg|max|min|(?:count|sum|max|min|sort)_by)\s*\(|"
    r"[|.]\s*length\b"
)
"""Filters, and functions, whose answer is taken for one of all that there is."""

_OF_SOME = re.compile(r"[\w.@(]*\[(?:-?\d+(?::-?\d*)?|:-?\d+)\]")
"""What begins with elements that the view names itself."""


class _Answer(Struct, frozen=True):
    """The result of a view, remarks on it, what follows it, and the words around the document.

    `content` is the result if it is a text, and shown as one; `members` are `{view: value}` as they
    are written, so that its values need no memory any more.
    """

    content: str | None
    members: Raw
    remarks: list[str]
    rest: str | None
    words: str


def _answer(job: ShapeJob, whole: Document, frame: Frame, call: Call, bound: int | None) -> _Answer:
    # Imported for the first view: most sessions have none.
    from mcp_abridge.document.fences import words_around
    from mcp_abridge.query.view import advice, look
    from mcp_abridge.query.windows import following
    from mcp_abridge.summary.abridgement import examples_of
    from mcp_abridge.summary.cuts import WINDOW

    assert job.view is not None
    member = next((copy.member for copy in frame.copies if copy.member), "text")
    words = words_around(whole, bound)
    room, remarks, wholes = max((bound or 0) - WINDOW, 0), list[str](), list[Value]()
    fuel = Fuel(call.fuel.remaining, _VIEW_MS)
    try:
        examples = partial(examples_of, whole, call)
        value = look(whole, job.view, member, fuel, remarks, examples, wholes, room)
        cut_from = wholes[0] if wholes else None
        rest = following(whole, job.view, value, member, call.question, room, fuel, cut_from)
        if value is None:
            remarks = ["null, or nothing there", *remarks, advice(whole)]
    finally:
        call.fuel.remaining = fuel.remaining
    remarks += _of_a_part(whole, job.view)
    # A number or a flag says nothing to follow.
    words = words if isinstance(opened(value), str | list | dict) else ""
    content = None if call.structured else text(value) or None
    members = Raw() if content is not None else whole.json_of({"view": value})
    return _Answer(content, members, remarks, rest, words)


def _of_a_part(whole: Document, view: str) -> list[str]:
    """Return the remark that a search, a count or a sum is of what a server calls a part."""
    if not _OF_ALL.search(view) or _OF_SOME.match(view):
        return []
    from mcp_abridge.summary.paging import says_more

    value = opened(whole.cell[0])
    if isinstance(value, dict):
        sign = _sign_of_more(value, view)
        says = f"{'.'.join(map(label, sign))} says" if sign else ""
    else:
        says = "the end of the text says" if isinstance(value, str) and says_more(value) else ""
    return [f"this is of what came; {says} that the server has more"] if says else []


def _sign_of_more(
    members: dict[str, Value], view: str, path: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the path of such a sign in an object, or in an object in it that the view names."""
    from mcp_abridge.summary.paging import sign_of_more

    sign = sign_of_more({name: raw(each) for name, each in members.items()})
    if sign:
        return (*path, *sign)
    for name, each in members.items():
        place = (*path, name)
        inner = opened(each) if ".".join((*place, "")) in view else None
        if isinstance(inner, dict) and (sign := _sign_of_more(inner, view, place)):
            return sign
    return ()


def _bound(job: ShapeJob, call: Call) -> int | None:
    bounds = [step.max_bytes for step in job.rule.pipeline if isinstance(step, AbridgeStep)]
    return min((limit for limit in (*bounds, call.bound) if limit is not None), default=None)


def _view(
    job: ShapeJob, whole: Document, call: Call, answer: _Answer, bound: int | None
) -> Document:
    """Return the document of a view: a text as text, else `{view: value}`, abridged if need be."""
    from mcp_abridge.summary.abridgement import of_server

    assert job.view is not None
    content, rest = answer.content, answer.rest
    beside = {"around": answer.words} if answer.words else {}
    remarks = _within(answer.remarks, bound)
    sentences = [*remarks, rest] if rest else remarks
    remark = {"more": "; ".join(sentences)} if sentences else {}
    remark |= of_server(content or "")
    notices = [Notice(NAME, remark)] if remark and content is not None else []
    if bound is not None:
        viewable = job.viewable and job.rule.snapshot_step.viewable
        # Of hits, fewer are shown, each with its text.
        breadth = call.breadth and "grep(" not in job.view
        call = replace(call, viewable=viewable, breadth=breadth)
        bound -= sum(len(encode({NAME: notice.value})) for notice in notices)
        bound -= len(encode(beside)) if beside else 0
    if content is None:
        document = _with_remarks(answer.members, remarks, rest, bound, call, job.view)
        document.root.set(beside | document.root.open())
        return document
    document = Document(content)
    if bound is not None:
        abridge(document, bound, call, job.view)
    if not document.changed:
        call.notices.extend(notices)
    elif remarks:
        note = call.notices[-1].value
        note["more"] = "; ".join([*remarks, *filter(None, [note.get("more")])])
    if beside:
        call.notices.append(Notice("around", answer.words))
    return document


def _within(remarks: list[str], bound: int | None) -> list[str]:
    """Return the first remarks, as many as take half of the bound."""
    while remarks and bound is not None and len(encode(remarks)) > bound // 2:
        remarks = remarks[:-1]
    return remarks


def _with_remarks(
    members: Raw, remarks: list[str], rest: str | None, bound: int | None, call: Call, view: str
) -> Document:
    """Return `{view: value, more: remarks}`, abridged; what is next only if a notice does not say.

    A remark is no part of the value: it takes its room, and no note counts it. If no part of the
    value fits, as of a single number, the beginning of its JSON is shown as a text.
    """
    sentences = [*remarks, rest] if rest else remarks
    more = {"more": "; ".join(sentences)} if sentences else {}
    document = Document(members, compact=True)
    if bound is not None:
        abridge(document, max(bound - len(encode(more)), bound // 2), call, view)
    if rest and document.changed and not _shows_each(document, members):
        return _with_remarks(members, remarks, None, bound, call, view)
    parts = document.root.open()
    if "view" not in parts:
        remarks, call = ["as a text of JSON"], replace(call, viewable=False)
        value = level(members)["view"]
        if (content := text(value)) is not None and bound is not None:
            beginning, bound = f"{content[: bound // 8]}…", None  # in so little room
        else:
            beginning = bytes(value).decode()
        return _with_remarks(raw({"view": beginning}), remarks, None, bound, call, view)
    document.root.set({"view": parts.pop("view"), **more, **parts})
    return document


def _shows_each(document: Document, members: Raw) -> bool:
    """Return True if each element of an array is shown, though in part."""
    value, part = opened(level(members)["view"]), opened(document.root.open().get("view"))
    part = opened(part["rows"]) if isinstance(part, dict) and "rows" in part else part
    return isinstance(value, list) and isinstance(part, list) and len(part) == len(value)


def _age(seconds: int, call: Call) -> Notice:
    """Return the notice on the age of the answer that a view is cut from.

    >>> _age(42, Call("get_status")).value
    '42 s; call without view to run it again'
    >>> _age(720, Call("get_status", names={"view": "abridged_view"})).value
    '12 min; call without abridged_view to run it again'
    """
    again = f"call without {call.advertised_name('view')} to run it again"
    again = "read it without a view to have it as it is now" if call.uri else again
    return Notice("age", f"{age_in_words(seconds)}; {again}")


def unchanged_text(document: Document) -> str | None:
    """Return the text that a document is, None if it is none or a step has changed it."""
    source: Value = document.source
    unchanged = not (document.changed or document.closers)
    return source if unchanged and isinstance(source, str) else None


def freeze(document: Document) -> Callable[[], bytes | str]:
    """Return a function that gives the current document for a snapshot; free if it is unopened."""
    source = document.source
    unopened = type(source) is Raw or isinstance(source, str)
    if unopened and not (document.changed or document.closers):
        if isinstance(source, str):
            return lambda: source if source.isascii() else encode_text(source)
        return cache(lambda: encode(source))
    now = document.encode()
    return lambda: now
