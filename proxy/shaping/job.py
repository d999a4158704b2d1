"""What goes into the shaping of one response, and what comes out of it."""

from typing import Any

from msgspec import Struct

from proxy.document import message
from proxy.document.fuel import MOST, Fuel
from proxy.ruleset.clients import Shows
from proxy.ruleset.rule import Rule
from proxy.storage.meter import OutcomeKind as Word
from proxy.storage.snapshots import Snapshot
from proxy.transforms.base import Warned


class ShapeJob(Struct, frozen=True, kw_only=True):
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

    def original(
        self, word: Word, said: str | None = None, before: int | None = None
    ) -> "ShapeResult":
        """Return what comes of it where the response goes out as it came.

        `before` are the bytes of it that the model sees, where they were counted. Where nothing
        came, since the job is for a later page or view, an error with the words of `said` goes out.
        """
        if self.raw is None:
            why = said or "nothing is kept of the earlier answer"
            line = message.refusal(self.id, why, self.modern)
            return ShapeResult(raw=line, word="refused", said=said, visible_after=len(line))
        size = len(self.raw) if before is None else before
        return ShapeResult(
            raw=self.raw, word=word, visible_before=size, visible_after=size, said=said
        )


class ShapeResult(Struct, frozen=True, kw_only=True):
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


class ShapeContext(Struct):
    """What comes up while a job is tried: the warnings, and the fuel that is left."""

    fuel: Fuel
    warnings: list[Warned] = []
