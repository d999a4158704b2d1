"""What a session asks of whoever drives it; several may come at once.

Where an output goes is said relative to the side whose message brought it about.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from proxy.shaping.job import ShapeJob
from proxy.storage.snapshots import Key, Snapshot

LARGE = 256 << 10
"""Bytes from which it takes some time to look into a message."""


class Forward(Struct, frozen=True):
    """`raw` goes on in the direction in which it came: one line, without its newline."""

    raw: bytes


class Reply(Struct, frozen=True):
    """`raw` goes back to the side that spoke."""

    raw: bytes


class Notify(Struct, frozen=True):
    """`raw` is for the client, of the proxy's own accord: a notification that answers nothing."""

    raw: bytes


class Probe(Struct, frozen=True):
    """`raw`, a request of the proxy's own, goes to the server, whoever spoke.

    Its answer comes as any other does, to `Session.from_server`. Where there is none after so many
    `seconds`, or none can come any more, call `Session.unanswered(token)`.
    """

    raw: bytes
    token: bytes
    seconds: float


class Noise(Struct, frozen=True):
    """Bytes of the server that are no message; for the log."""

    raw: bytes


class StoreSnapshot(Struct, frozen=True):
    """Put a snapshot into the store."""

    key: Key
    snapshot: Snapshot


class LoadSnapshot(Struct, frozen=True):
    """Get a snapshot from the store, then call `Session.loaded` with it, or with None."""

    token: int
    key: Key


class DropSnapshots(Struct, frozen=True):
    """Drop from the store what is kept under the key, which may stand for all of a rule's."""

    key: Key


class Shape(Struct, frozen=True):
    """Run `pipeline.shape(job)`, which may take long, then call `Session.shaped`."""

    job: ShapeJob


class RunInBackground(Struct, frozen=True):
    """Call `do`, which may take long, then `then` with what it returns; neither raises.

    `do` touches nothing of the session: others may enter it meanwhile.
    """

    do: Callable[[], Any]
    then: Callable[[Any], "tuple[Output, ...]"]


Output = (
    Forward
    | Reply
    | Notify
    | Noise
    | StoreSnapshot
    | LoadSnapshot
    | DropSnapshots
    | Shape
    | RunInBackground
    | Probe
)


def turned(output: Output) -> Output:
    """Return an output that is relative to one side as it is relative to the other.

    >>> turned(Forward(b"{}"))
    Reply(raw=b'{}')
    """
    if isinstance(output, Forward):
        return Reply(output.raw)
    return Forward(output.raw) if isinstance(output, Reply) else output
