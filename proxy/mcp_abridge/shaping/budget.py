"""The room that a rule's `max_bytes` leaves for a document, and for the content beside it."""

from msgspec import Raw
from msgspec.structs import replace

from mcp_abridge.document.own_names import marked
from mcp_abridge.document.sizes import LEAST_BOUND
from mcp_abridge.document.tree import Document, Value, compact, encode, text
from mcp_abridge.query.call import Call, Room
from mcp_abridge.shaping.job import ShapeJob
from mcp_abridge.shaping.result.frame import Frame, VisibleSize, other_texts, with_other_texts
from mcp_abridge.transforms.abridge import abridge

_LEAST = 50  # bytes of a document that is shown twice, or with escapes
_ONCE = frozenset({"once", "once_in_javascript"})
_TOGETHER = frozenset({"both", "result"}) | _ONCE

ESCAPED = frozenset({"blocks", "result"})
"""The kinds of clients whose models read texts with JSON's escapes."""


def document_budget(job: ShapeJob, frame: Frame, excess: int = 0) -> int | None:
    """Return the most bytes that the document may take, None if its rule has no bound.

    `excess` is the number of bytes by which it was too long when it took that many.
    """
    most = job.rule.max_bytes
    if most is None:
        return None
    # Content beside the document never takes all of its room.
    return max(max(_room(job, frame, most), LEAST_BOUND) - excess, _LEAST)


def whole_room(job: ShapeJob, frame: Frame) -> Room | None:
    """Return the room for a document if the model asks for all of it; None if that is no more.

    A shell shows less than a call of a tool does.
    """
    whole = job.rule.whole
    if whole is None or job.reader:
        return None
    room = max(_room(job, frame, whole_bytes(job)), LEAST_BOUND)
    room = room * 2 // 3 if job.shows in ESCAPED else room  # escapes take up to a third
    return Room(room, None if job.author_bytes else whole.tokens)


def _room(job: ShapeJob, frame: Frame, most: int) -> int:
    together = job.shows in _TOGETHER or any(copy.where == "text" for copy in frame.copies)
    others = _size_of_texts(frame) if together and not _hides_text(job, frame) else 0
    separate = _separate(frame) if job.shows in _TOGETHER else None
    others += 0 if separate is None else len(memoryview(separate))
    return (most - others) // _copies_shown(job, frame)


def passes(job: ShapeJob, size: VisibleSize) -> bool:
    """Return True if a result of this size passes as it is under a rule that only abridges."""
    most, whole = job.rule.max_bytes or 0, job.rule.whole
    if whole is not None:
        by_author = min(job.author_bytes, whole.author)
        most = max(most, min(whole.size if whole.passes else by_author, whole.size))
    return overrun(job, size, most=most) <= 0


def whole_bytes(job: ShapeJob) -> int:
    """Return the most bytes of a result that is the answer to a request for all."""
    whole, most = job.rule.whole, job.rule.max_bytes or 0
    return most if whole is None else max(most, whole.size, min(job.author_bytes, whole.author))


def overrun(
    job: ShapeJob, size: VisibleSize, frame: Frame | None = None, *, most: int | None = None
) -> int:
    """Return the bytes by which the result is too long, or each copy of the document in `frame`.

    `most` are the bytes that it may have, by default those of its rule.
    """
    most = job.rule.max_bytes if most is None else most
    if most is None:
        return 0
    visible = size.to(job.shows)
    if job.shows != "structured":
        # Only a text that is surely hidden is free: some clients read both copies by default.
        visible = max(visible, size.most)
    excess = visible - most
    if frame is None or excess <= 0:
        return excess
    if job.shows in ESCAPED:
        # Each byte of the document is shown as more than one; small steps would take long.
        excess = max(excess * most // visible, most // 32)
    twice = job.shows in _ONCE and not size.equal(job.shows)
    return excess // (2 if twice else _copies_shown(job, frame)) + 1


def leaves_no_room(job: ShapeJob, frame: Frame) -> bool:
    """Return True if the texts beside the document leave it hardly any room."""
    if job.rule.max_bytes is None or _hides_text(job, frame):
        return False
    return _size_of_texts(frame) > job.rule.max_bytes * 3 // 4


def trim_other_blocks(job: ShapeJob, frame: Frame) -> Frame:
    """Return the frame with the content beside the document cut if that is too long."""
    if job.rule.max_bytes is None:
        return frame
    if leaves_no_room(job, frame):
        frame = _with_short_texts(frame, job.rule.max_bytes // 2)
    separate = _separate(frame)
    limit = job.rule.max_bytes // (2 if job.shows in _TOGETHER else 1)
    if separate is None:
        return frame
    marks = len(memoryview(marked(separate))) - len(memoryview(separate))
    room = max(limit - marks, LEAST_BOUND)
    if len(memoryview(separate)) > room:  # it may fit without white space
        separate = Raw(compact(separate))
    content = marked(separate)
    if len(memoryview(separate)) > room:
        document = Document(separate)
        abridge(document, room, Call("", structured=True, notices=[]))
        content = Raw(encode(document.cell[0]))
    return replace(frame, members={**frame.members, "structuredContent": content})


def _with_short_texts(frame: Frame, limit: int) -> Frame:
    others = other_texts(frame)
    texts = list(others.values())
    whole: Value = texts[0] if len(texts) == 1 else [Raw(encode(each)) for each in texts]
    document = Document(whole)
    call = Call("", notices=[], blocks=len(texts) > 1)
    abridge(document, max(limit, LEAST_BOUND), call)
    cut = document.root.open()
    parts = zip(others, map(text, cut if isinstance(cut, list) else [cut]), strict=False)
    return with_other_texts(frame, {index: each or "" for index, each in parts}, call.notices)


def _size_of_texts(frame: Frame) -> int:
    return sum(len(content.encode()) for content in other_texts(frame).values())


def _hides_text(job: ShapeJob, frame: Frame) -> bool:
    """Return True if the client shows structuredContent alone, and the result has one."""
    return job.shows == "structured" and frame.structured is not None


def _copies_shown(job: ShapeJob, frame: Frame) -> int:
    """Count the copies of the document that a model sees, if its client shows both."""
    if job.shows not in _TOGETHER:
        return 1
    if job.shows in _ONCE and not any(copy.member or copy.each for copy in frame.copies):
        return 1  # the copies will be equal
    if job.rule.structures and "structuredContent" not in frame.members:
        return 2  # one is added once the document is written
    return 1 if job.rule.copies != "both" else len({copy.where == "text" for copy in frame.copies})


def _separate(frame: Frame) -> Raw | None:
    """Return the structuredContent of a result whose document is elsewhere."""
    if any(copy.where != "text" for copy in frame.copies):
        return None
    return frame.members.get("structuredContent")
