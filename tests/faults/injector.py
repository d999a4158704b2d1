"""Raises in the middle of the proxy's own work, at one call after the other.

A place is a line of the proxy and what is called there, from Python or from C. An injector raises
once, at the first place where it has not raised before (or not as often as it may), and lets
everything after that run; so whoever starts the same work again and again goes through all places.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

import mcp_abridge

from tests.platforms import with_slashes

INSIDE = str(Path(mcp_abridge.__file__).parent)
ERRORS = (MemoryError, RecursionError, RuntimeError, KeyError)
READING = (
    *(f"document/{name}.py" for name in ("message", "surrogates", "tree")),
    "shaping/result/",
)

Place = tuple[str, int, str, int]


class Injector:
    """Raises while it is `armed`, and records the place.

    A place that is come to several times counts anew each time, up to `deep` times.
    """

    def __init__(self, deep: int = 1) -> None:
        self._deep = deep
        self._counts: dict[tuple[str, int, str], int] = {}
        self.places: set[Place] = set()
        self.raised: Place | None = None

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Raise once, in this thread, if there is a place left; `raised` is that place."""
        self._counts.clear()
        self.raised = None
        # What is thrown away is nobody's call.
        gc.disable()
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            gc.enable()

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        caller: FrameType | None
        if event == "call" and not frame.f_code.co_flags & CO_GENERATOR:
            # A generator is gone on with, and closed, from many places; what it calls is enough.
            caller, name = frame.f_back, frame.f_code.co_qualname
        elif event == "c_call":
            caller, name = frame, getattr(argument, "__qualname__", repr(argument))
        else:
            return
        if name.endswith(("__exit__", "__del__")):  # letting go of something cannot fail
            return
        if caller is None or not caller.f_code.co_filename.startswith(INSIDE):
            return
        file = with_slashes(caller.f_code.co_filename[len(INSIDE) + 1 :])
        line = file, caller.f_lineno, name
        count = self._counts[line] = self._counts.get(line, 0) + 1
        place = (*line, count)
        if count > self._deep or place in self.places:
            return
        self.places.add(place)
        self.raised = place
        # Whoever raises here is asked no more.
        raise self._error(place, event)(f"injected: {place}")

    def _error(self, place: Place, event: str) -> type[Exception]:
        error = ERRORS[len(self.places) % len(ERRORS)]
        # While a document is read, too deep a recursion has an error of its own, and code in C has
        # no other.
        reads = event == "c_call" or place[0].startswith(READING)
        return MemoryError if error is RecursionError and reads else error
