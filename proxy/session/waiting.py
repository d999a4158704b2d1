"""The calls of a session that wait for a snapshot, or to be shaped."""

from proxy.inflight import Pending


class Waiting(dict[int, Pending]):
    """Calls by the tokens of the Load or Shape that they wait for.

    A dict, since nothing may fail between the end of the wait and what answers the call.
    """

    __slots__ = ("last",)

    def __init__(self) -> None:
        super().__init__()
        self.last = 0
        """The token that was given last; they are numbers in a row."""

    def hold(self, pending: Pending) -> int:
        """Remember a call, and return its token."""
        self.last += 1
        self[self.last] = pending
        return self.last

    def forget_since(self, last: int) -> None:
        """Forget the calls whose tokens were given after this one."""
        for token in range(last + 1, self.last + 1):
            self.pop(token, None)
