"""The access rules of a route: the Host, Origin and Authorization headers of a request.

Invariant: no secret is in a repr or an answer, or compared in a time that depends on it.
"""

import hmac
import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from mcp_abridge.transports.http.hop_headers import Headers

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The hosts that reach only this machine, with any port."""

_AUTHORITY = re.compile(r"([\w.~-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?", re.ASCII | re.IGNORECASE)
_ORIGIN = re.compile(r"(https?)://([^/?#@\s]+)", re.ASCII | re.IGNORECASE)
_PORTS = {"http": "80", "https": "443"}


class AccessRefused(Struct, frozen=True):
    """The reason why a request is refused: the status, the message and additional headers."""

    status: int
    message: str
    headers: tuple[tuple[str, str], ...] = ()


class Access(Struct, frozen=True):
    """The requirements that a request must meet.

    `hosts` are the names that a request may be sent to: `name` and `[::1]` with any port,
    `name:port`, and `*.example.org`; None allows any. `origins` are those of browser pages that may
    send requests, beside the pages of allowed hosts, or of the host that the request names.
    """

    hosts: tuple[str, ...] | None = None
    origins: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()

    def __repr__(self) -> str:
        secrets = f"{len(self.tokens)} secret" if self.tokens else "none"
        return f"Access(hosts={self.hosts!r}, origins={self.origins!r}, tokens={secrets})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("hosts", self.hosts), ("origins", self.origins), ("tokens", len(self.tokens))]

    def refusal(self, headers: Headers, path_token: str | None = None) -> AccessRefused | None:
        """Return why a request is refused, or None; the path's token counts as a bearer token."""
        hosts = headers.getall("Host", [])
        if len(hosts) > 1:
            return AccessRefused(400, "the request names several hosts")
        host = hosts[0] if hosts else ""
        if self.hosts is not None and not _allowed(host, ("80", "443"), self.hosts):
            return AccessRefused(403, "the Host of the request is not allowed (hosts in --config)")
        if not all(self._trusts(origin, host) for origin in headers.getall("Origin", [])):
            return AccessRefused(403, "the Origin of the request is not allowed")
        candidates = [] if path_token is None else [path_token]
        if len(headers.getall("Authorization", [])) == 1:
            candidates += _bearers(headers)
        if self.tokens and not self._matches(candidates):
            challenge = ("WWW-Authenticate", 'Bearer realm="mcp-abridge"')
            reason = (
                "the bearer token is not known" if any(candidates) else "a bearer token is needed"
            )
            return AccessRefused(401, reason, (challenge,))
        return None

    def _trusts(self, origin: str, host: str) -> bool:
        if origin.lower() in (allowed.lower() for allowed in self.origins):
            return True
        match = _ORIGIN.fullmatch(origin)
        if match is None:
            return False
        hosts = self.hosts
        if hosts is None:
            hosts = (host,) if _AUTHORITY.fullmatch(host) else ()
        return _allowed(match[2], (_PORTS[match[1].lower()],), hosts)

    def opened_by(self, headers: Headers) -> bool:
        """Return True if Authorization has a token of this route, which no upstream may see."""
        return self._matches(_bearers(headers))

    def _matches(self, candidates: Iterable[str]) -> bool:
        # A list, not a generator: the time must not reveal which token matched.
        pairs = [(one, token) for one in candidates if one for token in self.tokens]
        matches = [hmac.compare_digest(_bytes(one), _bytes(token)) for one, token in pairs]
        return any(matches)


def _bearers(headers: Headers) -> list[str]:
    values = [value.partition(" ") for value in headers.getall("Authorization", [])]
    return [token.strip(" ") for scheme, _, token in values if scheme.lower() == "bearer"]


def _allowed(authority: str, usual: tuple[str, ...], hosts: tuple[str, ...]) -> bool:
    """Return True if `hosts` allow `authority`; without a port it may have one of the `usual`."""
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return False
    name, ports = match[1].lower(), (match[2],) if match[2] else usual
    for host in hosts:
        pattern, _, port = host.lower().rpartition(":")
        if not port.isdecimal():
            pattern, port = host.lower(), ""
        fits = name.endswith(pattern[1:]) if pattern.startswith("*.") else name == pattern
        if fits and (not port or port in ports):
            return True
    return False


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
