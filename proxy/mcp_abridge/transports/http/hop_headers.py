"""The headers that pass from one side to the other: all but those of a single connection."""

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
