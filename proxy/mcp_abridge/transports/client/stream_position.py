"""The place in an event stream: without it, a stream that broke off begins anew or is lost."""

from msgspec import Struct

from mcp_abridge.transports.http.sse import Event

_SHORTEST_PAUSE = 0.1  # seconds: zero, which a server may name, stays zero however often doubled
_LONGEST_PAUSE = 60.0


class StreamPosition(Struct):
    """The event id to resume a stream from, the seconds until then, and why it ended."""

    last: str | None = None
    retry: float = 1.0
    count: int = 0
    end_reason: str = ""

    def record(self, event: Event) -> None:
        self.count += 1
        if event.id is not None:
            self.last = event.id if event.id and event.id.isprintable() else None
        if event.retry is not None:
            self.retry = max(event.retry / 1000, _SHORTEST_PAUSE)

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after so many tries without an event.

        >>> [StreamPosition().pause(failures) for failures in (0, 1, 2, 10)]
        [1.0, 2.0, 4.0, 60.0]
        """
        return max(self.retry, min(self.retry * 2.0**failures, _LONGEST_PAUSE))
