"""First answers in short, and what a model asks for next: in use, only this shows that one was bad.

A look is an answer that a rule or the budget shortened, and of which the rest is kept. It was too
little, and counts so once, if the model then asks for all of it, asks for MANY parts, or makes the
same call again. Just numbers are counted, and nothing for an answer that is not kept.
"""

from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from mcp_abridge.query.call import ALL, HELP, asks_for
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.storage.meter import LookSign
from mcp_abridge.storage.snapshots import Key

if TYPE_CHECKING:
    from mcp_abridge.session.inflight import PendingRequest
    from mcp_abridge.session.state import SessionState

MANY = 3
"""The views and pages of one answer that are a sign: its look was too little."""

_LIFE = 1800.0  # seconds after its last use that a store keeps an answer by default
_MOST_STORED = 1000  # keys of stored snapshots; the oldest is forgotten first


class Look(Struct):
    """A kept answer: the time of its last use, and the number of parts that were asked for.

    `judged`: it counts as too little already, or was never shown in short.
    """

    judged: bool = False
    parts: int = 0
    time: float = 0.0

    def sign_of(self, view: str | None) -> LookSign | None:
        """Return the sign that the next question is, None if it is none, or not the first one.

        `view` is None for the same call again, "" for a later page.
        """
        sign: LookSign | None = "called_again" if view is None else None
        if view is not None and not asks_for(HELP, view):
            self.parts += 1
            many: LookSign | None = "asked_parts" if self.parts >= MANY else None
            sign = "asked_all" if asks_for(ALL, view) else many
        if sign is None or self.judged:
            return None
        self.judged = True
        return sign


def follow(
    state: "SessionState", key: Key, pending: "PendingRequest", job: ShapeJob, result: ShapeResult
) -> None:
    """Count the result of a call whose answers are kept under `key`: a look, or a sign for one."""
    if pending.is_repeat:
        return
    now, look, sign = monotonic(), state.stored.get(key), None
    if look is not None and now - look.time > _LIFE:
        look = None
    if _is_part(pending, job):
        # A stored answer may have been shown in another session of the caller, or by a replica.
        look = look or Look(judged=job.raw is not None)
        if result.outcome in ("view", "page"):
            sign = look.sign_of(job.view or "")
    else:
        sign = None if look is None else look.sign_of(None)
        if result.snapshot is not None:
            look = Look(judged=not _is_short(result))
            if not look.judged:
                state.counts.look(job, "looks")
    if sign is not None:
        state.counts.look(job, sign)
    if look is not None and (job.raw is None or result.snapshot is not None):
        look.time = now
        state.stored[key] = look
        if len(state.stored) > _MOST_STORED:
            state.stored.popitem(last=False)


def _is_part(pending: "PendingRequest", job: ShapeJob) -> bool:
    """Return True for a view or a later page, False for a first page, even of a stored answer."""
    later_page = pending.max_age is None and (job.raw is None or pending.searched_key is not None)
    return job.view is not None or later_page


def _is_short(result: ShapeResult) -> bool:
    """Return True if the model sees less than the server sent, and less than is kept."""
    assert result.snapshot is not None
    most = min(result.visible_before, len(result.snapshot.document))
    return result.outcome == "shaped" and result.visible_after < most
