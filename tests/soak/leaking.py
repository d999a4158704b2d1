"""The proxy with a leak put into it, for the proof that the soak sees one.

    python -m tests.soak.leaking memory|descriptors|threads|children ARGUMENT...

What leaks grows with every message of the client; the arguments are the proxy's own.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import count

from proxy.cli import main
from proxy.session.session import Session

LEAKED: list[object] = []
SILENT = subprocess.DEVNULL
EVERY = 4
"""Of so many messages one leaves something open; each of them some memory."""

LEAKS: dict[str, Callable[[], object]] = {
    "memory": lambda: os.urandom(200_000),
    "descriptors": lambda: os.open(os.devnull, os.O_RDONLY),
    "threads": lambda: threading.Thread(target=threading.Event().wait, daemon=True).start(),
    "children": lambda: subprocess.Popen(["sleep", "60"], stdout=SILENT, stderr=SILENT),
}


def leak(what: str) -> None:
    take, numbers = Session.from_client, count(1)

    def leaking(self: Session, raw: bytes, exchange: bytes = b"") -> object:
        if what == "memory" or next(numbers) % EVERY == 0:
            LEAKED.append(LEAKS[what]())
        return take(self, raw, exchange)

    Session.from_client = leaking  # type: ignore[assignment,method-assign]


if __name__ == "__main__":
    what = sys.argv.pop(1)
    leak(what)
    sys.exit(main())
