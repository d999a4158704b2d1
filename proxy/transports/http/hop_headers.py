"""Which headers pass from one side to the other: all but those that belong to one connection."""

from collections.abc import Iterable, Mapping

from multidict import CIMultiDict, CIMultiDictProxy

Headers = CIMultiDict[str] | CIMultiDictProxy[str]

# RFC 9110 section 7.6.1, and what describes a body that may become another one.
_HOP = frozenset(
    (
        *("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection"),
    )
)
_BODY = frozenset(("content-length", "content-encoding"))
_CREDENTIALS = frozenset(("authorization", "cookie"))
# `expect` too: the body is here already, and nobody else is to be asked for leave to send it.
_OURS = frozenset(("host", "accept-encoding", "expect"))


def to_upstream(
    headers: Headers, *, credentials: bool, fixed: Iterable[tuple[str, str]] = ()
) -> CIMultiDict[str]:
    """Return a client's headers for the upstream; `fixed` ones take the place of its own.

    Its credentials go along only where `credentials` says so. No encoding is asked for.

    >>> sent = CIMultiDict({"Host": "a", "Cookie": "b", "X-Trace": "c", "Connection": "x-trace"})
    >>> dict(to_upstream(sent, credentials=False))
    {'Accept-Encoding': 'identity'}
    """
    dropped = _HOP | _BODY | _OURS | _named(headers)
    if not credentials:
        dropped |= _CREDENTIALS
    passed = _without(headers, dropped)
    passed["Accept-Encoding"] = "identity"
    for name, value in fixed:
        passed[name] = value
    return passed


def to_client(headers: Headers, *, whole: bool = False) -> CIMultiDict[str]:
    """Return an upstream's headers for the client.

    Those of the body's length and coding go along where it goes on as it is, `whole`.
    """
    return _without(headers, (_HOP if whole else _HOP | _BODY) | _named(headers))


def _named(headers: Headers) -> frozenset[str]:
    values = headers.getall("Connection", [])
    return frozenset(name.strip().lower() for value in values for name in value.split(","))


def _without(headers: Mapping[str, str], dropped: frozenset[str]) -> CIMultiDict[str]:
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in dropped
    )
