"""The forward proxy of the environment: without it, no server beyond a company's proxy is reached.

The variables are those of curl: HTTPS_PROXY or HTTP_PROXY by the scheme of the server's URL, else
ALL_PROXY, and NO_PROXY; of each the lower-case spelling goes before. No system settings are read,
and no .netrc: nobody who sets a proxy means to send a server a password. As with curl, urllib and
undici, an address of loopback is no exception unless NO_PROXY names it.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from mcp_abridge.document.masks import masked_url
from mcp_abridge.errors import AbridgeError

CREDENTIALS_WANTED = 407
"""The status of a proxy that wants credentials: no server has it."""

_PORTS = {"http": 80, "https": 443}


class ForwardProxy(Struct, frozen=True):
    """A forward proxy: its URL, with the credentials for it, and the variable that names it.

    As a text it is masked, as in `the proxy http://***@proxy:3128 (HTTPS_PROXY)`.
    """

    url: str
    variable: str

    def __str__(self) -> str:
        return f"the proxy {masked_url(self.url)} ({self.variable})"

    __repr__ = __str__

    def refusal(self, status: int, reason: str, url: str) -> str:
        """Return why it lets no request to `url` through, by its status, and the next step."""
        text = f"{self} answered HTTP {status} {reason}".rstrip()
        if status != CREDENTIALS_WANTED:
            return f"{text}; have it allow {urlsplit(url).hostname}, or {way_past(url)}"
        host = masked_url(self.url).rpartition("@")[2].rpartition("/")[2]
        has_user = urlsplit(self.url).username is not None
        what = "other credentials than those" if has_user else "credentials"
        return f"{text}; it wants {what} in {self.variable}: http://USER:PASSWORD@{host}"


def way_past(url: str) -> str:
    """Return the advice for a server that needs no proxy."""
    return f"name {urlsplit(url).hostname} in NO_PROXY if it is reached without a proxy"


def forward_proxy(url: str, environment: Mapping[str, str]) -> ForwardProxy | None:
    """Return the forward proxy for requests to `url`, None if they go directly.

    Raises AbridgeError for a proxy that cannot be used, such as one of SOCKS.

    >>> forward_proxy("https://example.org/mcp", {"https_proxy": "u:word@proxy:3128"})
    the proxy http://***@proxy:3128 (https_proxy)
    >>> forward_proxy("https://example.org/mcp", {"ALL_PROXY": "proxy", "no_proxy": ".org"})
    """
    for name in (f"{urlsplit(url).scheme}_proxy", "all_proxy"):
        variable = name if name in environment else name.upper()
        if text := environment.get(variable, "").strip():
            exceptions = environment.get("no_proxy", environment.get("NO_PROXY", ""))
            return None if _excepted(url, exceptions) else _read(text, variable)
    return None


def _read(text: str, variable: str) -> ForwardProxy:
    whole = text if "://" in text else f"http://{text}"
    masked = masked_url(text)
    with suppress(ValueError):  # such as a character that HTTP's credentials cannot have
        parts = urlsplit(whole)
        user = unquote(parts.username or "")
        f"{user}{unquote(parts.password or '')}".encode("latin-1")
        if "@" in f"{parts.path}{parts.query}{parts.fragment}":
            masked = "***"  # a part of the password would stand for the host
        elif parts.scheme in _PORTS and parts.hostname and parts.port != 0 and ":" not in user:
            return ForwardProxy(whole, variable)
    raise AbridgeError(
        f"{variable}: expected an HTTP proxy such as http://proxy:3128, or "
        "http://USER:PASSWORD@proxy:3128 with no ':' in USER, only characters of Latin-1, and '/', "
        f"'#', '?' written as %2F, %23, %3F; found {masked!r}"
    )


def _excepted(url: str, exceptions: str) -> bool:
    """Return True if NO_PROXY has the server of `url`: its name, a domain, or its address."""
    parts = urlsplit(url)
    host, port = (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme)
    address = None
    with suppress(ValueError):
        address = ip_address(host)
    for entry in re.split(r"[\s,]+", exceptions.lower()):
        # An IPv6 address without brackets has colons of its own.
        match = re.fullmatch(r"(\[.*\]|[^:]*):(\d+)", entry)
        name = match[1] if match else entry
        if match and int(match[2]) != port:
            continue
        if name == "*":
            return True
        with suppress(ValueError):
            if address is not None and address in ip_network(name.strip("[]"), strict=False):
                return True
        domain = name.removeprefix("*").strip(".")
        if address is None and domain and f".{host}".endswith(f".{domain}"):
            return True
    return False
