"""What a client's Accept header says of the two forms of an answer (RFC 9110, section 12.5.1)."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

Wanted = Literal["json", "stream", "rather json", "either", "nothing"]
"""The form that an answer takes.

json          one JSON document, whatever it costs
stream        an event stream
rather json   JSON where the answer is a single response, else an event stream
either        the form that upstream chose
nothing       neither can be sent: 406

Most clients name both and prefer none: `either`. A server behind a URL has then chosen: to turn its
JSON into a stream would bring nothing, to flatten its stream would lose progress and resumption. A
command has chosen nothing. It gets JSON too if its answer is a single response: that is one body
with a length, which anything on the way can read, and as a stream it would say no more. If anything
else of the call comes first (progress, a log line, a question to the client), the answer is a
stream from there on, so nothing is lost; and it is one once nothing has come for 15 seconds, since
a stream that has begun can be kept alive and resumed, JSON cannot.
"""

JSON = "application/json"
STREAM = "text/event-stream"
MEDIA_TYPES = f"{JSON}, {STREAM}"
"""What the proxy can send, and what it asks upstreams for."""

# What a parameter quotes may look like anything: it is taken out before the rest is read.
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*(?:"|\Z)', re.DOTALL)
_TYPE = re.compile(r"\s*([\w!#$%&'*+.^`|~-]+)/([\w!#$%&'*+.^`|~-]+)\s*(?=;|\Z)", re.ASCII)
_WEIGHT = re.compile(
    r";\s*q\s*=\s*(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})\s*(?=;|\Z)", re.ASCII | re.IGNORECASE
)
_ANY = re.compile(r"\s*\*\s*(?=;|\Z)")  # what some old libraries send for */*


@lru_cache(256)
def wanted(accept: str | None) -> Wanted:
    """Say which form an Accept header asks for; None is a request without the header.

    >>> wanted("application/json, text/event-stream")
    'either'
    >>> wanted("*/*;q=0.1, text/event-stream")
    'stream'

    Never raises: elements that cannot be read are left out, a header of nothing else counts as
    absent. A weight that cannot be read counts as 1.
    """
    weights: dict[str, float] = {}
    for name, weight in _ranges(accept or ""):
        weights[name] = max(weight, weights.get(name, 0.0))
    if not weights:
        return "rather json"
    json, stream = _weight(weights, JSON), _weight(weights, STREAM)
    if stream > json:
        return "stream"
    if not stream:
        return "json" if json else "nothing"
    return "either" if json == stream and STREAM in weights else "rather json"


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    for element in _QUOTED.sub('""', accept).split(","):
        found = _TYPE.match(element)
        if found or _ANY.match(element):
            weight = _WEIGHT.search(element)
            name = f"{found[1]}/{found[2]}".lower() if found else "*/*"
            yield name, min(float(weight[1]), 1.0) if weight else 1.0


def _weight(weights: dict[str, float], name: str) -> float:
    """Return the weight of the most specific range that a media type falls into."""
    for range in (name, name.partition("/")[0] + "/*", "*/*"):
        if range in weights:
            return weights[range]
    return 0.0
