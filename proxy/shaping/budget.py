"""The room that a rule's `max_bytes` leaves for a document, and for the content beside it."""

from msgspec import Raw
from msgspec.structs import replace

from proxy.document.tree import Document, Value, encode, text
from proxy.shaping.job import ShapeJob
from proxy.shaping.result import frame as frames
from proxy.shaping.result.frame import Frame
from proxy.shaping.result.visible import VisibleSize
from proxy.transforms.abridge import abridge
from proxy.transforms.base import Call

_LEAST = 300  # bytes; content beside the document never reduces its room below this


def of(job: ShapeJob, frame: Frame, excess: int = 0) -> int | None:
    """Return the most bytes that the document may take, None if its rule has no bound.

    `excess` is the number of bytes by which it was too long when it took that many.
    """
    if job.rule.max_bytes is None:
        return None
    shown_together = job.shows == "both" or any(copy.where == "text" for copy in frame.copies)
    others = _text_beside(frame) if shown_together and not _hides_text(job, frame) else 0
    apart = _apart(frame) if job.shows == "both" else None
    most = job.rule.max_bytes - others - (0 if apart is None else len(memoryview(apart)))
    return max(most // _copies_shown(job, frame) - excess, _LEAST)


def excess(job: ShapeJob, shown: VisibleSize, frame: Frame | None = None) -> int:
    """Return the bytes by which the result is too long, or each copy of the document in `frame`."""
    if job.rule.max_bytes is None:
        return 0
    # Only a text that is surely hidden is free: some clients read both copies by default.
    visible = shown.to(job.shows)
    over = (visible if job.shows == "structured" else max(shown.most, visible)) - job.rule.max_bytes
    return over if frame is None else -(-over // _copies_shown(job, frame))


def fits(job: ShapeJob, shown: VisibleSize) -> bool:
    """Return True if a rule that only bounds the size has nothing to do."""
    return job.rule.size_budget.passes_small and excess(job, shown) <= 0


def crowded(job: ShapeJob, frame: Frame) -> bool:
    """Return True if the texts beside the document leave it hardly any room."""
    if job.rule.max_bytes is None or _hides_text(job, frame):
        return False
    return _text_beside(frame) > job.rule.max_bytes * 3 // 4


def beside(job: ShapeJob, frame: Frame) -> Frame:
    """Return the frame with the content beside the document cut if that is too long."""
    if job.rule.max_bytes is None:
        return frame
    if crowded(job, frame):
        frame = _shortened(frame, job.rule.max_bytes // 2)
    held = _apart(frame)
    most = job.rule.max_bytes // (2 if job.shows == "both" else 1)
    if held is None or len(memoryview(held)) <= most:
        return frame
    document = Document(held)
    abridge(document, max(most, _LEAST), Call("", structured=True, notices=[]))
    members = {**frame.members, "structuredContent": Raw(encode(document.cell[0]))}
    return replace(frame, members=members)


def _shortened(frame: Frame, most: int) -> Frame:
    """Return the frame with the texts beside the document cut to `most` bytes, notices included."""
    others = frames.beside(frame)
    texts = list(others.values())
    whole: Value = texts[0] if len(texts) == 1 else [Raw(encode(said)) for said in texts]
    document = Document(whole)
    call = Call("", notices=[], blocks=len(texts) > 1)
    abridge(document, max(most, _LEAST), call)
    cut = document.root.open()
    left = zip(others, map(text, cut if isinstance(cut, list) else [cut]), strict=False)
    return frames.shortened(frame, {at: said or "" for at, said in left}, call.notices)


def _text_beside(frame: Frame) -> int:
    """Count the bytes of the texts beside the document."""
    return sum(len(text.encode()) for text in frames.beside(frame).values())


def _hides_text(job: ShapeJob, frame: Frame) -> bool:
    """Return True if the client shows structuredContent alone, and the result has one."""
    structured = frame.members.get("structuredContent")
    return job.shows == "structured" and structured is not None and bytes(structured) != b"null"


def _copies_shown(job: ShapeJob, frame: Frame) -> int:
    """Count the copies of the document that a model sees, if its client shows both."""
    if job.shows != "both":
        return 1
    if job.rule.structures and "structuredContent" not in frame.members:
        return 2  # one is added once the document is written
    return 1 if job.rule.copies != "both" else len({copy.where == "text" for copy in frame.copies})


def _apart(frame: Frame) -> Raw | None:
    """Return the structuredContent of a result whose document is elsewhere."""
    if any(copy.where != "text" for copy in frame.copies):
        return None
    return frame.members.get("structuredContent")
