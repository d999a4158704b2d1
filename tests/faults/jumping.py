"""mcp-abridge with a clock of the day that jumps: at every look further, forward and back.

    python jumping.py ARGUMENT...

The arguments are those of the command. Clocks that only tell how much time has passed go on as
they are. The system's own clock cannot be set in a test, and what looks at it looks through these
two modules.
"""

import datetime
import itertools
import sys
import time
from pathlib import Path
from random import Random

_DAY = 86_400.0
_LOOKS = itertools.count(1)
_RANDOM = Random(1)
_now = time.time


def jumping() -> float:
    return _now() + next(_LOOKS) * _DAY * _RANDOM.choice((1, -1))


class Jumping(datetime.datetime):
    """A datetime whose now is anywhere."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "Jumping":
        return cls.fromtimestamp(jumping(), tz)


if __name__ == "__main__":
    time.time = jumping
    time.time_ns = lambda: int(jumping() * 1e9)
    datetime.datetime = Jumping  # type: ignore[misc]
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from mcp_abridge.cli import main

    sys.exit(main())
