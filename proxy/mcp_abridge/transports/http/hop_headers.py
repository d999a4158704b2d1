"""The headers that pass from one side to the other: all but those of a single connection."""

import re
from collections.abc import Iterable, Mapping

from multidict import CIMultiDict, CIMultiDictProxy

Headers = CIMultiDict[str] | CIMultiDictProxy[str]

# RFC 9110 section 7.6.1; and the headers that describe a body, which the proxy may change.
_HOP = frozenset(
    (
        *("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection"),
    )
)
_BODY = frozenset(("content-length", "content-encoding"))
_CREDENTIALS = frozenset(("authorization", "cookie"))
# `expect` too: the body is here already, so the upstream need not permit sending it.
_OURS = frozenset(("host", "accept-encoding", "expect"))
# Headers that do not identify the client: about the request itself, or added on its way.
_OF_NOBODY = re.compile(
    r"authorization|host|user-agent|date|expect|origin|referer|via|pragma|priority|range|dnt"
    r"|cache-control|last-event-id|(accept|content|if|mcp|sec|upgrade)(-.*)?"
    r"|forwarded|x-forwarded-(for|host|port|prefix|proto|scheme|server|ssl)|x-scheme|cdn-loop"
    r"|x-real-ip|(x-|true-|x-cluster-)client-ip|cf-(connecting-ip|ipcountry|ray|visitor)"
    r"|b3|traceparent|tracestate|baggage|newrelic|(x-b3|x-datadog|x-envoy)-.*"
    r"|(.*-)?(request|correlation|trace|span|transaction|invocation|idempotency|retry)"
    r"(-?(id|key|start|time|context|attempt|count))?|sentry-trace"
)


def to_upstream(
    headers: Headers, *, credentials: bool, fixed: Iterable[tuple[str, str]] = ()
) -> CIMultiDict[str]:
    """Return a client's headers for the upstream; `fixed` headers replace those of the client.

    The client's credentials pass only if `credentials`. The identity encoding is requested.

    >>> sent = CIMultiDict({"Host": "a", "Cookie": "b", "X-Trace": "c", "Connection": "x-trace"})
    >>> dict(to_upstream(sent, credentials=False))
    {'Accept-Encoding': 'identity'}
    """
    dropped = _HOP | _BODY | _OURS | _connection_headers(headers)
    if not credentials:
        dropped |= _CREDENTIALS
    forwarded = _without(headers, dropped)
    forwarded["Accept-Encoding"] = "identity"
    for name, value in fixed:
        forwarded[name] = value
    return forwarded


def identity(headers: Headers, *, credentials: bool) -> list[str]:
    """Return the names and values of headers that pass, and by which a server may know callers.

    These are a key, a cookie, the name of a user: all but those known to be of nobody. Whose
    `Authorization` is depends, so it is not among them. `credentials` as in `to_upstream`.
    """
    forwarded = to_upstream(headers, credentials=credentials)
    names = {name.lower() for name in forwarded}
    of_callers = sorted(name for name in names if not _OF_NOBODY.fullmatch(name))
    return [part for name in of_callers for part in (name, *forwarded.getall(name))]


def to_client(headers: Headers, *, whole: bool = False) -> CIMultiDict[str]:
    """Return an upstream's headers for the client, those of the body if that passes `whole`."""
    return _without(headers, (_HOP if whole else _HOP | _BODY) | _connection_headers(headers))


def _connection_headers(headers: Headers) -> frozenset[str]:
    values = headers.getall("Connection", [])
    return frozenset(name.strip().lower() for value in values for name in value.split(","))


def _without(headers: Mapping[str, str], dropped: frozenset[str]) -> CIMultiDict[str]:
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in dropped
    )
