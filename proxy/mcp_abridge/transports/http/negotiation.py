"""The form of a response that a client's Accept header requests (RFC 9110, section 12.5.1)."""

import re
from functools import lru_cache
from typing import Literal

Wanted = Literal["json", "stream", "prefer json", "either", "nothing"]
"""The form of an HTTP response.

json          one JSON document, even if other messages are lost
stream        an event stream
prefer json   JSON if it holds nothing but responses, else an event stream
either        the form that the upstream chose
nothing       neither can be sent: 406

Most clients name both and prefer none: `either`. An upstream behind a URL has then chosen. For a
child process, the proxy sends JSON if there are responses only. If another message of the call
comes first (progress, a log line, a request to the client), or none for 15 seconds, the response is
a stream from there on: nothing is lost, and a stream can be kept alive and resumed.
"""

JSON = "application/json"
STREAM = "text/event-stream"
MEDIA_TYPES = f"{JSON}, {STREAM}"
"""The media types that the proxy can send, and requests from upstreams."""

# Some old libraries send `*` for */*.
_TYPE = re.compile(r"\s*([\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+|\*)\s*(?=;|\Z)", re.ASCII)
_WEIGHT = re.compile(
    r";\s*q\s*=\s*(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})\s*(?=;|\Z)", re.ASCII | re.IGNORECASE
)


@lru_cache(256)
def negotiate(accept: str | None) -> Wanted:
    """Return the form that an Accept header requests; None is a request without the header.

    >>> negotiate("application/json, text/event-stream")
    'either'
    >>> negotiate("*/*;q=0.1, text/event-stream")
    'stream'

    Never raises: invalid elements are ignored, and a header with no valid element counts as
    absent. An invalid weight counts as 1.
    """
    weights: dict[str, float] = {}
    for element in (accept or "").split(","):
        if media_type := _TYPE.match(element):
            name, match = media_type[1].lower(), _WEIGHT.search(element)
            weight = min(float(match[1]), 1.0) if match else 1.0
            weights[name] = max(weight, weights.get(name, 0.0))
    if not weights:
        return "prefer json"
    json, stream = _weight(weights, JSON), _weight(weights, STREAM)
    if stream > json:
        return "stream"
    if not stream:
        return "json" if json else "nothing"
    return "either" if json == stream and STREAM in weights else "prefer json"


def _weight(weights: dict[str, float], name: str) -> float:
    ranges = (name, name.partition("/")[0] + "/*", "*/*", "*")
    return next((weights[each] for each in ranges if each in weights), 0.0)
