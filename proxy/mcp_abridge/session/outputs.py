"""The outputs of a session: actions for its driver; one message may cause several."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from mcp_abridge.shaping.job import ShapeJob

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


class Shape(Struct, frozen=True):
    """Run `pipeline.shape(job)`, which may take long, then call `Session.shaped`."""

    job: ShapeJob


class RunInBackground(Struct, frozen=True):
    """Call `do`, which does not use the session, then `then` with its result; neither raises.

    `long`: it may take a moment, in which other messages can be processed. `token`: a call waits
    for it; 0 if none does.
    """

    do: Callable[[], Any]
    then: Callable[[Any], "Outputs"]
    long: bool = False
    token: int = 0


Output = ToServer | ToClient | Probe | Noise | Shape | RunInBackground

Outputs = tuple[Output, ...]
"""The outputs that one message, or one event, causes, in order."""
