"""The relay around `cat`, with a session whose outputs are written on the lines themselves.

A line is `SIDE WORD REST`. On the side that is named, `client` or `server`, the session does what
the word says with the rest; on the other one the line goes on. So a client sends what shall happen
when `cat` sends it back.
"""

import os
import sys
from threading import Event
from typing import Any

from proxy.ruleset.rule import EMPTY
from proxy.session.outputs import (
    DropSnapshots,
    LoadSnapshot,
    Noise,
    Output,
    Shape,
    StoreSnapshot,
    ToClient,
    ToServer,
)
from proxy.session.session import Session
from proxy.shaping import pipeline
from proxy.storage.meter import Meters
from proxy.storage.snapshots import Key, Memory, Snapshot
from proxy.transports.log import Log
from proxy.transports.stdio import child
from proxy.transports.stdio.relay import Relay

GO = Event()


def wait(job: Any) -> Any:
    """Shape only once a line `go` has passed: the session must be free meanwhile."""
    assert GO.wait(20), "the session was not entered while a job was being shaped"
    return job


class Scripted(Session):
    """Does what the lines say."""

    def from_client(self, raw: bytes, exchange: bytes = b"") -> tuple[Output, ...]:
        return self.act(raw, b"client")

    def from_server(self, raw: bytes, exchange: bytes = b"") -> tuple[Output, ...]:
        return self.act(raw, b"server")

    def act(self, raw: bytes, here: bytes) -> tuple[Output, ...]:
        onward, back = (ToServer, ToClient) if here == b"client" else (ToClient, ToServer)
        side, _, told = raw.partition(b" ")
        word, _, rest = told.partition(b" ")
        if side != here:
            return (onward(raw),)
        key = Key("", "scripted", rest.decode())
        match word:
            case b"reply":
                return (back(rest), onward(raw), back(rest))
            case b"keep":
                return (StoreSnapshot(key, Snapshot(b"", rest)), onward(b"kept"))
            case b"load":
                return (LoadSnapshot(7, key),)
            case b"forget":
                return (DropSnapshots(key), onward(b"forgotten"))
            case b"noise":
                return (Noise(rest), onward(b"after noise"))
            case b"shape":
                return (onward(b"before shaping"), Shape(rest))  # type: ignore[arg-type]
            case b"go":
                GO.set()
        return (onward(raw),)

    def loaded(
        self, token: int, snapshot: Snapshot | None, failure: str | None = None
    ) -> tuple[Output, ...]:
        found = b"nothing" if snapshot is None else snapshot.document
        return (ToClient(b"loaded %d %s" % (token, found)),)

    def shaped(self, job: Any, outcome: Any) -> tuple[Output, ...]:
        return (ToClient(b"shaped " + outcome),)

    def may_stream(self, start: bytes, exchange: bytes = b"") -> bool:
        return start.startswith(b"server pass")

    def streamed(self, start: bytes, end: bytes, size: int, exchange: bytes = b"") -> None:
        os.write(2, b"streamed %d %s %s\n" % (size, start[:11], end[-3:]))


def main() -> None:
    pipeline.shape = wait  # type: ignore[assignment]
    mask = child.hold_signals()
    server = child.spawn(["cat"], mask)
    session = Scripted(lambda *_: EMPTY, Meters().of, print)
    relay = Relay(server, session, Memory(), Log("debug"), 1_000_000)
    if "refuse" in sys.argv:
        relay.refuse(2, "on purpose")
    os._exit(relay.run())


if __name__ == "__main__":
    main()
