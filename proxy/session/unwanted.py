"""Answers of the server that are no concern of the client's."""

from msgspec import Struct

from proxy.probe import Ids
from proxy.timing import Timing

_REMEMBERED = 1000  # the oldest is forgotten first


class Unwanted(Struct, eq=False):
    """Tells answers to questions of our own, by their `ids`, and those that come after ours.

    Invariant: what is remembered of the latter is bounded.
    """

    ids: Ids
    timing: Timing | None
    guessed: dict[bytes, None] = {}
    """The slots of requests that we have answered, though in doubt."""

    @property
    def possible(self) -> bool:
        """False where no answer can be one of these."""
        return self.ids.used or bool(self.guessed) or self.timing is not None

    def holds(self, exchange: bytes, key: bytes) -> bool:
        """Say whether an answer that nothing waits for is one of these."""
        slot = exchange + key
        late = self.timing is not None and self.timing.late(slot)
        return late or slot in self.guessed or self.ids.hold(key)

    def guess(self, slot: bytes) -> None:
        """Take note that a request is answered by us, most likely in place of the server."""
        self.guessed[slot] = None
        if len(self.guessed) > _REMEMBERED:
            del self.guessed[next(iter(self.guessed))]

    def forget(self, slot: bytes) -> None:
        """Take note that an answer in this slot is for another request from now on."""
        self.guessed.pop(slot, None)
