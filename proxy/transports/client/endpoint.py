"""The URL of a remote server: requests that never leave its origin, and the text of refusals."""

import asyncio
import os
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from proxy.errors import AbridgeError
from proxy.transports.http import body

LOST = (aiohttp.ClientError, OSError, asyncio.TimeoutError)
"""The exceptions raised if the server cannot be reached (any more)."""

_CONNECT = 30.0  # seconds
_IDLE = 4.0  # seconds; many servers close a connection that was idle for 5, and a POST that
# meets such an end could not be sent again, since it may have arrived
_REDIRECTS = 5
_OWN = {"User-Agent": "mcp-abridge", "Accept-Encoding": "gzip, deflate"}
_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_FOLLOWED = {"POST": (307, 308), "GET": (301, 302, 303, 307, 308), "DELETE": (307, 308)}
_BUFFER = 1 << 20  # bytes of a response body that are read ahead
_LONG_HEADER = 64 << 10
_LONG_REFUSAL = 1 << 20
_PATIENCE = 5.0  # seconds for the body of a refusal
SHOWN = 200
"""The number of characters that are shown of a body."""

_ADVICE = {
    401: "it wants credentials that it knows: give them as in `--header 'Authorization: Bearer "
    "${TOKEN}'`; where it wants OAuth, wrap `npx -y mcp-remote URL` after -- instead of the URL",
    403: "it refuses this caller: look at --header and at the URL; where it wants OAuth, wrap "
    "`npx -y mcp-remote URL` after -- instead of the URL",
}


class RedirectRefused(AbridgeError):
    """A redirect of the server that is not followed: its target, and the reason.

    `brief` is the message without a URL, for clients that must not know the server's address.
    """

    def __init__(self, said: str, brief: str) -> None:
        super().__init__(said)
        self.brief = brief


class HttpClient:
    """An HTTP client of one URL; its `headers` are sent to no other origin. Close it after use.

    No request has a total timeout, none is sent twice, and no environment variable redirects it.
    A `transparent` client adds no headers and keeps no cookies, since it serves many clients.
    """

    def __init__(
        self, url: str, headers: Iterable[tuple[str, str]] = (), *, transparent: bool = False
    ) -> None:
        self._transparent = transparent
        given = URL(url)
        self.url = given.with_user(None)
        self._headers = dict(headers)
        if given.user is not None:
            pair = f"{given.user}:{given.password or ''}".encode()
            self._headers.setdefault("Authorization", f"Basic {b64encode(pair).decode()}")
        self._http: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        headers: Mapping[str, str],
        raw: bytes | None = None,
        sent: asyncio.Event | None = None,
        at: URL | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; `sent` is set once it was sent. The response body is not decoded.

        Redirects within the origin are followed if they leave the request unchanged. Raises
        RedirectRefused for other redirects, and the exceptions in LOST.
        """
        url = self.url if at is None else at
        for _ in range(_REDIRECTS):
            passed = CIMultiDict(headers)
            for name, value in self._headers.items():
                passed.setdefault(name, value)
            if raw is not None and sent is not None:
                passed["Content-Length"] = str(len(raw))
            async with self._client().request(
                method,
                url,
                data=raw if raw is None or sent is None else _body(raw, sent),
                headers=passed,
                allow_redirects=False,
            ) as response:
                location = self._redirect(method, response)
                if location is None:
                    yield response
                    return
            url = location
        brief = f"the server redirects more than {_REDIRECTS} times"
        raise RedirectRefused(f"{brief}, at last to {shown(url)}", brief)

    def within(self, location: str, base: URL | None = None) -> URL:
        """Return the URL that the server names; raises RedirectRefused if its origin differs."""
        try:
            url = (self.url if base is None else base).join(URL(location))
        except ValueError:
            brief = "the server names a URL that is none"
            raise RedirectRefused(f"{brief}: {location[:SHOWN]!r}", brief) from None
        if not url.host or url.origin() != self.url.origin():
            place = shown(url) if url.host else repr(location[:SHOWN])
            raise RedirectRefused(
                f"the server points to {place}, which is another origin than "
                f"{self.url.origin()}: nothing is sent there; if it is right, give that URL",
                "the server redirects to another origin; that is refused",
            )
        return url.with_user(None)

    async def close(self) -> None:
        """Close all connections."""
        if self._http is not None:
            await self._http.close()

    def _client(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT),
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE),
                headers=None if self._transparent else _OWN,
                cookie_jar=aiohttp.DummyCookieJar() if self._transparent else None,
                skip_auto_headers=_AUTOMATIC if self._transparent else None,
                auto_decompress=False,
                read_bufsize=_BUFFER,
                max_line_size=_LONG_HEADER,
                max_field_size=_LONG_HEADER,
            )
        return self._http

    def _redirect(self, method: str, response: aiohttp.ClientResponse) -> URL | None:
        location = response.headers.get("Location")
        if response.status not in (301, 302, 303, 307, 308) or location is None:
            return None
        url = self.within(location, response.url)
        if response.status not in _FOLLOWED.get(method, (307, 308)):
            brief = f"the server answers a {method} with {response.status}"
            brief += ", which would lose what was sent"
            raise RedirectRefused(f"{brief}; if {shown(url)} is right, give that URL", brief)
        return url


async def _body(raw: bytes, sent: asyncio.Event) -> AsyncIterator[bytes]:
    yield raw
    # aiohttp wants more, so the system has all of it, or a buffer that is nearly empty.
    sent.set()


def shown(url: URL) -> str:
    """Return a URL without its parts that may be secret.

    >>> shown(URL("https://user:word@example.org:8443/mcp?key=1#x"))
    'https://example.org:8443/mcp'
    """
    return str(url.with_user(None).with_query(None).with_fragment(None))


def reason(error: BaseException) -> str:
    """Return the reason, in plain words, why a request failed with one of LOST."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"no connection to {error.host}:{error.port}: {plainly(error.os_error)}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without an answer"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {_CONNECT:g} seconds"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection broke off in the middle of the answer"
    if isinstance(error, aiohttp.ClientResponseError):
        # The rest is text of the server, which may repeat the request.
        return f"the server does not speak HTTP as it should: {error.message.partition(':')[0]}"
    said = plainly(error) if isinstance(error, OSError) else str(error) or type(error).__name__
    # A library may name the URL, which may hold a secret.
    return f"the connection failed: {_URL.sub('the server', said.lower())}"


def plainly(error: OSError) -> str:
    """Return the system's text for an error: the error's own text may be a library's.

    >>> plainly(ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 3999)"))
    'connection refused'
    """
    # The excluded classes have error numbers of their own.
    if error.errno and not isinstance(error, socket.gaierror | ssl.SSLError):
        return os.strerror(error.errno).lower()
    return (error.strerror or str(error) or type(error).__name__).lower()


async def text(response: aiohttp.ClientResponse) -> bytes:
    """Return the body of a refusal; empty if it is too long or cannot be read."""
    encoding = response.headers.get("Content-Encoding")
    try:
        async with asyncio.timeout(_PATIENCE):
            return await body.whole(response.content, encoding, _LONG_REFUSAL)
    except (AbridgeError, *LOST):
        return b""


def described(response: aiohttp.ClientResponse, raw: bytes) -> str:
    """Return the meaning of a status, the start of the body `raw`, and advice for the user."""
    status = response.status
    phrase = response.reason or (HTTPStatus(status).phrase if status in _STATUSES else "")
    said = f"the server answered HTTP {status} {phrase}".rstrip()
    after = response.headers.get("Retry-After")
    if after is not None:
        said += f" (Retry-After: {after})"
    start = raw[: 4 * SHOWN].decode("utf-8", "replace").strip()[:SHOWN]
    if start:
        said += f": {start}"
    advice = _ADVICE.get(status)
    return f"{said}; {advice}" if advice else said


_STATUSES = frozenset(HTTPStatus)
_URL = re.compile(r"[a-z]+://\S+")
