"""The proxy as ever, but that it fails at one place more with each request whose id says so.

    python injecting.py FILE ARGUMENTS...

The places are those of the session, of the shaping and of the store. FILE gets a line for each.
"""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from proxy.cli import main  # noqa: E402
from proxy.session import guards, tool_lists  # noqa: E402
from proxy.session.session import Session  # noqa: E402
from proxy.shaping import pipeline  # noqa: E402
from proxy.storage.snapshots import Memory  # noqa: E402
from tests.faults.injector import Injector  # noqa: E402
from tests.faults.scale import scaled  # noqa: E402

FAILS = b'"fail-'
"""How the ids begin of requests that something is to fail at."""

# What takes long goes on by itself: `edit` and `read_answer`, and the session after them.
ENTRIES = {
    Session: ("from_server", "shaped", "loaded", "unanswered"),
    guards: ("read_answer", "resume_later"),
    tool_lists: ("edit", "_send"),
    Memory: ("put", "get", "drop"),
    pipeline: ("shape",),
}


class Failing:
    """Has calls fail from when a request says so until one has failed, or the next one comes."""

    def __init__(self, file: Path) -> None:
        self._injector = Injector(scaled(1, 4))
        self._wanted = False
        self._file = file

    def beginning(self, do: Callable[..., Any]) -> Callable[..., Any]:
        """Return `from_client`, of which each message is a new chance to fail."""

        @wraps(do)
        def entered(session: Session, raw: bytes, *args: Any, **kwargs: Any) -> Any:
            self._wanted = FAILS in raw
            self._injector.begin()
            return self.going_on(do)(session, raw, *args, **kwargs)

        return entered

    def going_on(self, do: Callable[..., Any]) -> Callable[..., Any]:
        """Return what fails too, while that is wanted."""

        @wraps(do)
        def entered(*args: Any, **kwargs: Any) -> Any:
            begun = self._injector.raised is not None or sys.getprofile() is not None
            if begun or not self._wanted:
                return do(*args, **kwargs)
            try:
                with self._injector.going_on():
                    return do(*args, **kwargs)
            finally:
                if self._injector.raised is not None:
                    self._wanted = False
                    with self._file.open("a") as file:
                        print(*self._injector.raised, file=file)

        return entered


if __name__ == "__main__":
    failing = Failing(Path(sys.argv[1]))
    Session.from_client = failing.beginning(Session.from_client)  # type: ignore[method-assign]
    for holder, names in ENTRIES.items():
        for name in names:
            setattr(holder, name, failing.going_on(getattr(holder, name)))
    sys.argv[1:2] = []
    sys.exit(main())
