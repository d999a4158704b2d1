"""Steps of a pipeline that do harm to a worker process, as no transform of the proxy does.

In a module of their own, which a worker can import.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from mcp_abridge.document.tree import Slot
from mcp_abridge.query.call import Call
from mcp_abridge.transforms.base import Parameter, Transform


class Step(Transform, frozen=True):
    """Calls the function of `_DEEDS` named `deed` with `place`."""

    name: ClassVar[str] = "step"

    deed: str
    place: str = ""

    def __call__(self, root: Slot, call: Call) -> None:
        """Call it, and put the process and thread in place of the document."""
        _DEEDS[self.deed](self.place)
        thread = threading.current_thread().name
        root.set({"process": os.getpid(), "thread": thread})


class FailingStep(Step, frozen=True):
    """A step that fails to say which arguments it adds."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Fail."""
        raise KeyError("no such thing")


class UnpicklableStep(Step, frozen=True):
    """A step that cannot be pickled."""

    member: object = lambda: None


def _fail(place: str) -> None:
    raise KeyError("no such thing")


def _print(place: str) -> None:
    print("not a message", flush=True)
    os.write(1, b"nor is this\n")


def _spin(place: str) -> None:
    while True:
        pass


def _hang(place: str) -> None:
    if place:
        Path(place).write_text(str(os.getpid()))
    while True:
        time.sleep(0.01)


_DEEDS: dict[str, Callable[[str], object]] = {
    "tell": lambda place: None,
    "fail": _fail,
    "leave": lambda place: os._exit(7),
    "die": lambda place: os.kill(os.getpid(), signal.SIGKILL),
    "print": _print,
    # Opened by whoever waits here, and only ended by whoever opens the other end.
    "read": lambda place: Path(place).read_bytes(),
    "hang": _hang,
    "mark": lambda place: Path(place).touch(),
    "spin": _spin,
}
