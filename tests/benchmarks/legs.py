"""The table of what is measured; over HTTP, direct is a server over HTTP, asked directly."""

from typing import get_args

from tests.benchmarks.kinds import (
    Leg,
    Way,
    calls,
    flights,
    resident,
    sdk_calls,
    starts,
    typescript_calls,
)

NOTHING = ""  # the wrapper without options: every tool is kept within the client's budget
PAGE = 12_000  # bytes of a page or a summary, at most
WITHIN = 30_000  # bytes of an answer within the budget, which counts what is visible
ROWS = 2_000_000  # bytes of 40,000 rows of two fields

LEGS: tuple[Leg, ...] = (
    Leg("start", starts),
    Leg("start, rules", starts, rules="project"),
    Leg("start, no options", starts, rules=NOTHING),
    Leg("small", calls),
    Leg("small, rules for others", calls, rules="other"),
    Leg("small, no options", calls, rules=NOTHING),
    Leg("32 in flight", flights, unit="calls/s"),
    Leg("large", calls, "large"),
    Leg("large_s", calls, "large_s"),
    Leg("huge", calls, "huge"),
    Leg("large, keep", calls, "large", "keep", PAGE),
    Leg("large, project", calls, "large", "project", PAGE),
    Leg("large, project, contract", calls, "large", "contract", PAGE),
    Leg("large_s, project", calls, "large_s", "project", PAGE),
    Leg("huge, paginate", calls, "huge", "paginate", PAGE),
    Leg("huge, next page", calls, "huge", "paginate", PAGE, arguments='{"offset":20}'),
    Leg("huge, elide", calls, "huge", "elide", PAGE),
    Leg("huge, project rows", calls, "huge", "rows", ROWS),
    Leg("large, no options", calls, "large", NOTHING, WITHIN),
    Leg("huge, no options", calls, "huge", NOTHING, WITHIN),
    Leg("Python: small", sdk_calls),
    Leg("Python: large, project", sdk_calls, "large", "project", PAGE),
    Leg("Python: huge, paginate", sdk_calls, "huge", "paginate", PAGE),
    Leg("TypeScript: huge, paginate", typescript_calls, "huge", "paginate", PAGE),
    Leg("memory", resident, unit="MB"),
    Leg("memory, rules", resident, rules="other", unit="MB"),
    *(
        Leg(f"{way}: {name}", calls, tool, rules, most, way=way)
        for way in get_args(Way)[1:]
        for name, tool, rules, most in (
            ("small", "small", "none", None),
            ("large", "large", "none", None),
            ("large, project", "large", "project", PAGE),
            ("huge, paginate", "huge", "paginate", PAGE),
        )
    ),
)
