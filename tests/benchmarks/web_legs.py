"""The rows about HTTP, with the targets; direct is the same server over HTTP, asked directly."""

from collections.abc import Iterator

from msgspec.structs import replace

from tests.benchmarks.kinds import Leg, Target, calls
from tests.benchmarks.ways import Way
from tests.benchmarks.web_client import JSON, STREAM
from tests.benchmarks.web_kinds import firsts, forms, remote_starts, sidecar_starts

PAGE = 12_000  # bytes of a page or a summary, at most
STREAMS = ("--stream",)
STATELESS = ("--modern",)
START = Target("added", 0.060)
FIRST = Target("wrapped", 0.050)
STREAMED = Target("added", 0.005)

# What is measured on each way.
EACH = (
    Leg("small", calls),
    Leg("large", calls, "large"),
    Leg("huge", calls, "huge"),
    Leg("large, project", calls, "large", "project", PAGE),
    Leg("large_s, project", calls, "large_s", "project", PAGE),
    Leg("huge, paginate", calls, "huge", "paginate", PAGE),
)
SMALL = {"HTTP to stdio": 2.5, "stdio to HTTP": 2.0}


def each(way: Way, *own: Leg) -> Iterator[Leg]:
    """Yield the rows of one way: those that each has, and its own."""
    for leg in (*EACH, *own):
        target = leg.target
        if leg.name == "small" and way in SMALL:
            target = Target("ratio", SMALL[way])
        yield replace(leg, name=f"{way}: {leg.name}", way=way, target=target)


WEB_LEGS: tuple[Leg, ...] = (
    *each(
        "HTTP to stdio",
        Leg("start", remote_starts, target=START),
        Leg("small, stream", calls, server=STREAMS),
        Leg("large, stream", calls, "large", server=STREAMS),
    ),
    *each(
        "stdio to HTTP",
        Leg("start", sidecar_starts),
        Leg("small, JSON", calls, accept=JSON),
        Leg("small, stateless", calls, server=STATELESS),
    ),
    *each(
        "HTTP to HTTP",
        Leg("start", sidecar_starts),
        Leg("small, stateless", calls, server=STATELESS),
        Leg("small, no options", calls, rules=""),
        Leg("small, stream", calls, server=STREAMS),
        Leg("large, stream", calls, "large", server=STREAMS),
        Leg("huge, stream", calls, "huge", server=STREAMS),
        Leg("large, project, stream", calls, "large", "project", PAGE, server=STREAMS),
        Leg("small, JSON of a stream", calls, accept=JSON, server=STREAMS),
        Leg("small, stream of JSON", calls, accept=STREAM),
        Leg("small, first byte of a stream", firsts, server=STREAMS, target=FIRST),
        Leg("large, first byte of a stream", firsts, "large", server=STREAMS, target=FIRST),
        Leg("small, stream against JSON", forms, target=STREAMED),
        Leg("large, stream against JSON", forms, "large", target=STREAMED),
    ),
)
