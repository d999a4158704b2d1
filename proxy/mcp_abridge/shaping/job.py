"""The input and the result of shaping one response."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from mcp_abridge.document import message
from mcp_abridge.document.fuel import MOST, Fuel
from mcp_abridge.document.tree import Document
from mcp_abridge.query.call import Call, Warned
from mcp_abridge.ruleset.clients import BlobType, Shows
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.storage.meter import OutcomeKind
from mcp_abridge.storage.snapshots import Snapshot

Box = tuple[int, int, int, int]
"""A part of an image: x, y, width and height in pixels, from its top left corner."""


class Drawing(Struct, frozen=True):
    """An image to make smaller, or the part of it in `box`: the block, and its name in views."""

    index: int
    name: str
    box: Box | None = None


class ShapeJob(Struct, frozen=True, kw_only=True):
    """One response to shape.

    Either `raw`, a response line as the server sent it, or `snapshot`, from which a later page or
    view is cut. `arguments` are complete (see transforms.base.Call). `keep` requests a snapshot of
    the document for later pages; `view` is an expression to answer in place of the document.
    `viewable` is false if no later call can look into the answer; a shell command, `reader`, may.
    `uri` is that of a resource that was read, "" if a tool was called.
    `dates`: a view of a snapshot says how old that is. `author_bytes`: see ruleset.rule.Whole.
    `base64` are the types of blocks whose base64 the model reads. `fuel` bounds the cost. `bypass`:
    the rule is out of service, and the response is sent unchanged.
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
    reader: str = ""
    uri: str = ""
    dates: bool = False
    author_bytes: int = 0
    shows: Shows = "either"
    base64: tuple[BlobType, ...] = ()
    modern: bool = False
    token: int = 0
    bypass: bool = False
    fuel: int = MOST

    @property
    def asks_for_blob(self) -> bool:
        """True if the view is for an image or a blob, see shaping.blobs."""
        return self.view is not None and self.view.lstrip().startswith(("image(", "blob("))

    def original(
        self, outcome: OutcomeKind, reason: str | None = None, before: int | None = None
    ) -> "ShapeResult":
        """Return the result that sends the response unchanged, and logs the reason, if any.

        `before` is the number of its bytes that the model sees, if they were counted. Without a
        response, as for a later page or view, an error with the reason is sent.
        """
        if self.raw is None:
            text = reason or "nothing is kept of the earlier answer"
            line = message.refusal(self.id, text, self.modern)
            size = len(line)
            return ShapeResult(raw=line, outcome="refused", log_line=reason, visible_after=size)
        size = len(self.raw) if before is None else before
        return ShapeResult(
            raw=self.raw, outcome=outcome, visible_before=size, visible_after=size, log_line=reason
        )


class ShapeResult(Struct, frozen=True, kw_only=True):
    """The result of a ShapeJob: the line to send and the numbers to count.

    `visible_*` are bytes that the model sees, but for those of images. `drawings` are those that a
    transport has yet to make. `out_of_fuel`: the fuel of the job ran out. `blameless`: the failure
    was not the rule's. `unfit`: the line has a document that breaks the rule's schema.
    """

    raw: bytes
    outcome: OutcomeKind
    visible_before: int = 0
    visible_after: int = 0
    snapshot: Snapshot | None = None
    drawings: tuple[Drawing, ...] = ()
    log_line: str | None = None
    missing: tuple[str, ...] = ()
    warnings: tuple[Warned, ...] = ()
    out_of_fuel: bool = False
    blameless: bool = False
    unfit: bool = False


Observer = Callable[[str, Document, Call], None]
"""A function called after each step with its name, the current document, and the call."""


class ShapeContext(Struct):
    """The state of a running job: its warnings, its observer, and the fuel that is left."""

    fuel: Fuel
    warnings: list[Warned] = []
    observe: Observer | None = None
