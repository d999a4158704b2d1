"""The access rules of a route: the Host, Origin and Authorization headers of a request.

Invariant: no secret is in a repr or an answer, or compared in a time that depends on it.
"""

import hmac
import re
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.ruleset.loading.config_model import (
    ListenAddress,
    TextError,
    Token,
    TokenFile,
    token_file,
)
from mcp_abridge.ruleset.watch import Stamp, stamp
from mcp_abridge.transports.http.hop_headers import Headers
from mcp_abridge.transports.sidecar.refusal import INVALID, RequestRefused

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The hosts that reach only this machine, with any port."""

_AUTHORITY = re.compile(r"([\w.~-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?", re.ASCII | re.IGNORECASE)
_ORIGIN = re.compile(r"(https?)://([^/?#@\s]+)", re.ASCII | re.IGNORECASE)
_PORTS = {"http": "80", "https": "443"}


class Access(Struct, frozen=True):
    """The requirements that a request must meet.

    `hosts` are the names that a request may be sent to: `name` and `[::1]` with any port,
    `name:port`, and `*.example.org`; None allows any. `origins` are those of browser pages that may
    send requests, beside the pages of allowed hosts, or of the host that the request names.
    """

    hosts: tuple[str, ...] | None = None
    origins: tuple[str, ...] = ()
    tokens: Callable[[], tuple[Token, ...]] = tuple
    """Returns the tokens that open the route now; none if anybody may use it."""

    def admits(self, headers: Headers) -> bool:
        try:
            self.admission(headers)
        except RequestRefused:
            return False
        return True

    def admission(self, headers: Headers, path_token: str | None = None) -> str:
        """Return the name of the token that a request brings; raises RequestRefused.

        The path's token counts as a bearer token. Without tokens the name is empty.
        """
        hosts = headers.getall("Host", [])
        if len(hosts) > 1:
            raise RequestRefused(400, INVALID, "the request names several hosts")
        host = hosts[0] if hosts else ""
        if self.hosts is not None and not _allowed(host, ("80", "443"), self.hosts):
            reason = "the Host of the request is not allowed (hosts in --config)"
            raise RequestRefused(403, INVALID, reason)
        if not all(self._trusts(origin, host) for origin in headers.getall("Origin", [])):
            raise RequestRefused(403, INVALID, "the Origin of the request is not allowed")
        tokens = self.tokens()
        alone = len(headers.getall("Authorization", [])) == 1
        candidates = [] if path_token is None else [path_token]
        candidates += _bearers(headers) if alone else []
        name = _match(candidates, tokens) if tokens else ""
        if name is None:
            wrong = any(candidates)
            reason = "the bearer token is not known" if wrong else "a bearer token is needed"
            challenge = {"WWW-Authenticate": 'Bearer realm="mcp-abridge"'}
            raise RequestRefused(401, INVALID, reason, challenge)
        return name

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
        return _match(_bearers(headers), self.tokens()) is not None


def opens_metrics(headers: Headers, routes: Iterable[Access]) -> bool:
    """Return True if a request may read the metrics of some routes; it needs no token.

    They name tools and count calls. A page in a browser must still not read them, which it could
    only do by a DNS name of its own that points to this host.
    """
    if _numbered(headers.get("Host", "")):
        return True
    return any(replace(access, tokens=tuple).admits(headers) for access in routes)


class WatchedTokens(Struct, eq=False):
    """The tokens of a file as it is now, so that one can be revoked without a restart.

    If the file has a mistake, the earlier ones stay, and `_warn` gets one line.
    """

    _file: TokenFile
    _warn: Callable[[str], None]
    _stamp: Stamp = None  # of nothing read: the file may have changed since it was

    def __call__(self) -> tuple[Token, ...]:
        now = stamp(self._file.path)
        if now != self._stamp:
            self._stamp = now
            try:
                self._file = token_file(Path(self._file.path))
            except TextError as error:
                self._warn(f"{error}; the tokens that were read before stay valid")
        return self._file.tokens


def _match(candidates: Iterable[str], tokens: Iterable[Token]) -> str | None:
    """Return the name of the token that one of the candidates is, None if none is one."""
    # A list, not a generator: the time must not reveal which token matched.
    pairs = [(one, token) for one in candidates if one for token in tokens]
    names = [
        token.name for one, token in pairs if hmac.compare_digest(_bytes(one), _bytes(token.secret))
    ]
    return names[0] if names else None


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


def _numbered(host: str) -> bool:
    """Return True if a Host header gives an IP address: then no foreign DNS name led here."""
    try:
        ip_address(ListenAddress(host if host.rpartition(":")[2].isdigit() else f"{host}:0").host)
    except ValueError:
        return False
    return True


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
