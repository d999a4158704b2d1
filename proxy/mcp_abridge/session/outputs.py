"""The outputs of a session: actions for its driver; one message may cause several."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from mcp_abridge.shaping.job import ShapeJob
from mcp_abridge.storage.snapshots import Key, Snapshot

LARGE = 256 << 10
"""Bytes from which parsing a message takes noticeable time."""


class ToServer(Struct, frozen=True):
    """Send `raw` to the server: one line, without its newline."""

    raw: bytes


class ToClient(Struct, frozen=True):
    """Send `raw` to the client: one line, without its newline."""

    raw: bytes


class Probe(Struct, frozen=True):
    """Send `raw`, a request of the proxy's own, to the server, whichever side caused it.

    If it can have no response, call `Session.unanswered(token)`; it is overdue after
    `Session.time_left()` seconds.
    """

    raw: bytes
    token: bytes


class Noise(Struct, frozen=True):
    """Bytes from the server that are no message; for the log."""

    raw: bytes


class StoreSnapshot(Struct, frozen=True):
    """Put a snapshot into the store."""

    key: Key
    snapshot: Snapshot


class LoadSnapshot(Struct, frozen=True):
    """Call `Session.loaded` with a snapshot of the key, or of its caller, or with None."""

    token: int
    key: Key


class ClaimCall(Struct, frozen=True):
    """Call `Session.claimed` with the result of `RecentCalls.claim`, which may take a moment."""

    token: int
    caller: str
    call: str


class DropSnapshots(Struct, frozen=True):
    """Drop the snapshots under the key from the store; a key may cover all those of a rule."""

    key: Key


class Shape(Struct, frozen=True):
    """Run `pipeline.shape(job)`, which may take long, then call `Session.shaped`."""

    job: ShapeJob


class RunInBackground(Struct, frozen=True):
    """Call `do`, which does not use the session, then `then` with its result; neither raises.

    It takes long if `size`, the bytes that it processes, is over LARGE.
    """

    do: Callable[[], Any]
    then: Callable[[Any], "Outputs"]
    size: int


Output = (
    ToServer
    | ToClient
    | Noise
    | StoreSnapshot
    | LoadSnapshot
    | ClaimCall
    | DropSnapshots
    | Shape
    | RunInBackground
    | Probe
)

Outputs = tuple[Output, ...]
"""The outputs that one message, or one event, causes, in order."""
