"""The table of what is measured, with the targets."""

from collections.abc import Iterator

from msgspec.structs import replace

from tests.benchmarks.kinds import (
    Leg,
    Target,
    Way,
    calls,
    flights,
    listings,
    remote_starts,
    resident,
    sdk_calls,
    sidecar_starts,
    starts,
    typescript_calls,
)
from tests.benchmarks.web_client import JSON, STREAM


def ratio(bound: float) -> Target:
    return Target("ratio", bound)


NOTHING = ""  # the wrapper without options: every tool is kept within the client's budget
PAGE = 12_000  # bytes of a page or a summary, at most
WITHIN = 30_000  # bytes of an answer within the budget, which counts what is visible
ROWS = 2_000_000  # bytes of 40,000 rows of two fields
START = Target("added", 0.040)
ADDED = Target("added", 0.1)  # seconds: what examples/codebase allows for a status
RATE = Target("wrapped", 40_000, least=True)
LAST = ("--tail",)

# Over HTTP, direct is the same server over HTTP, asked directly.
STREAMS = ("--stream",)
WEB_START = Target("added", 0.060)

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
        Leg("start", remote_starts, target=WEB_START),
        Leg("small, stream", calls, server=STREAMS),
        Leg("large, stream", calls, "large", server=STREAMS),
    ),
    *each(
        "stdio to HTTP",
        Leg("start", sidecar_starts),
        Leg("small, JSON", calls, accept=JSON),
    ),
    *each(
        "HTTP to HTTP",
        Leg("start", sidecar_starts),
        Leg("small, no options", calls, rules=""),
        Leg("small, stream", calls, server=STREAMS),
        Leg("large, stream", calls, "large", server=STREAMS),
        Leg("huge, stream", calls, "huge", server=STREAMS),
        Leg("large, project, stream", calls, "large", "project", PAGE, server=STREAMS),
        Leg("small, JSON of a stream", calls, accept=JSON, server=STREAMS),
        Leg("small, stream of JSON", calls, accept=STREAM),
    ),
)

LEGS: tuple[Leg, ...] = (
    Leg("start", starts, target=START),
    Leg("start, rules", starts, rules="project", target=START),
    Leg("start, no options", starts, rules=NOTHING, target=START),
    Leg("start to tools/list, rules", listings, rules="project"),
    Leg("small", calls, target=ratio(1.6)),
    Leg("small, id last", calls, target=ratio(1.6), server=LAST),
    Leg("small, rules for others", calls, rules="other", target=ratio(1.6)),
    Leg("small, no options", calls, rules=NOTHING),
    Leg("32 in flight", flights, target=RATE, unit="calls/s"),
    Leg("32 in flight, rules for others", flights, rules="other", target=RATE, unit="calls/s"),
    Leg("large", calls, "large", target=ratio(1)),
    Leg("large, id last", calls, "large", target=ratio(1), server=LAST),
    Leg("large, rules for others", calls, "large", "other", target=ratio(1)),
    Leg("large_s", calls, "large_s", target=ratio(1)),
    Leg("huge", calls, "huge", target=ratio(1)),
    Leg("huge, id last", calls, "huge", target=ratio(1), server=LAST),
    Leg("large, keep", calls, "large", "keep", PAGE, ratio(1.5)),
    Leg("large, project", calls, "large", "project", PAGE, ratio(1.5)),
    Leg("large, project, id last", calls, "large", "project", PAGE, ratio(1.5), server=LAST),
    Leg("large, project, contract", calls, "large", "contract", PAGE, ADDED),
    Leg("large_s, keep", calls, "large_s", "keep", PAGE, ratio(0.9)),
    Leg("large_s, project", calls, "large_s", "project", PAGE, ratio(0.9)),
    Leg("huge, paginate", calls, "huge", "paginate", PAGE, ratio(4)),
    Leg("huge, next page", calls, "huge", "paginate", PAGE, arguments='{"offset":20}'),
    Leg("huge, elide", calls, "huge", "elide", PAGE, ratio(4)),
    Leg("huge, project rows", calls, "huge", "rows", ROWS, ratio(4)),
    Leg("large, no options", calls, "large", NOTHING, WITHIN),
    Leg("large_s, no options", calls, "large_s", NOTHING, WITHIN),
    Leg("huge, no options", calls, "huge", NOTHING, WITHIN),
    Leg("Python: small", sdk_calls),
    Leg("Python: large, project", sdk_calls, "large", "project", PAGE, ratio(0.6)),
    Leg("Python: large_s, project", sdk_calls, "large_s", "project", PAGE, ratio(0.2)),
    Leg("Python: huge, paginate", sdk_calls, "huge", "paginate", PAGE, ratio(0.1)),
    Leg("Python: huge, elide", sdk_calls, "huge", "elide", PAGE, ratio(0.1)),
    Leg("Python: huge, project rows", sdk_calls, "huge", "rows", ROWS, ratio(0.1)),
    Leg("Python: huge, no options", sdk_calls, "huge", NOTHING, WITHIN),
    Leg("TypeScript: huge, paginate", typescript_calls, "huge", "paginate", PAGE),
    Leg("memory", resident, target=Target("wrapped", 16), unit="MB"),
    Leg("memory, rules", resident, rules="other", target=Target("wrapped", 20), unit="MB"),
    Leg(
        "memory, rules with a condition",
        resident,
        "other",
        "condition",
        target=Target("wrapped", 20),
        unit="MB",
    ),
    *WEB_LEGS,
)
