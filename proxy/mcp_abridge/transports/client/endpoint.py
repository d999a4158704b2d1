"""One HTTP server: requests that never leave its origin, and the reasons of failures.

The home of reading an answer, whole or event by event: who reads one gets NoAnswer if it fails.
"""

import asyncio
import os
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cached_property

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from mcp_abridge.document.masks import masked_url
from mcp_abridge.errors import AbridgeError
from mcp_abridge.system import platform
from mcp_abridge.transports.client import LOGIN
from mcp_abridge.transports.client.forward_proxy import (
    CREDENTIALS_WANTED,
    ForwardProxy,
    forward_proxy,
    way_past,
)
from mcp_abridge.transports.http import body, sse

_CONNECTION_ERRORS = (aiohttp.ClientError, OSError)  # TimeoutError is an OSError

_CONNECT = 30.0  # seconds
_IDLE = 4.0  # seconds; many servers close a connection that was idle for 5, and a POST that
# meets such an end could not be sent again, since it may have arrived
_REDIRECTS = 5
_OWN = {"User-Agent": "mcp-abridge", "Accept-Encoding": "gzip"}
_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_REDIRECT_STATUS = (301, 302, 303, 307, 308)
_LOSSLESS_STATUS = (307, 308)  # redirects of any method, with its body
_BUFFER = 1 << 20  # bytes of a response body that are read ahead
_LONG_HEADER = 64 << 10
_LONG_REFUSAL = 1 << 20
_REFUSAL_TIME = 5.0  # seconds for the body of a refusal
_EXCERPT = 200  # characters that are shown of a body or a URL
_URL = re.compile(r"[a-z]+://\S+")

_OAUTH = f"where it wants OAuth, wrap `{' '.join(LOGIN)} URL` after -- instead of the URL"
_ADVICE = {
    401: "it wants credentials that it knows: give them as in `--header 'Authorization: Bearer "
    f"${{TOKEN}}'`; {_OAUTH}",
    403: f"it refuses this caller: look at --header and at the URL; {_OAUTH}",
}


class NoAnswer(AbridgeError):
    """An answer of the server that does not come, or cannot be used; the text is the reason."""


class ConnectionLost(NoAnswer):
    """The server cannot be reached, or closed the connection without an answer."""


class BrokenOff(NoAnswer):
    """An answer that ended early: a stream may be resumed."""


class AnswerTooLong(NoAnswer):
    """An answer, or an event, over the limit; the rest was not read."""


class HttpResponse(aiohttp.ClientResponse):
    """A response of the server, with its body decompressed; `received` counts the bytes so far."""

    received = 0
    limit = 0
    """The most bytes that its body, or an event of it, may have."""
    proxy: ForwardProxy | None = None
    """The forward proxy that may have answered in the server's place: it can without TLS."""

    async def whole(self, limit: int = 0) -> bytes:
        """Return the body; raises NoAnswer."""
        encoding = self.headers.get("Content-Encoding")
        with _reading("answer"):
            raw = await body.whole(self.content, encoding, limit or self.limit)
        self.received += len(raw)
        return raw

    async def events(self) -> AsyncGenerator[sse.Event]:
        """Yield the events of a stream; raises NoAnswer."""
        events = sse.Events(self.limit)
        with _reading("stream"):
            async for chunk in body.chunks(self.content, self.headers.get("Content-Encoding")):
                self.received += len(chunk)
                for event in events.feed(chunk):
                    yield event
            if rest := events.end():
                raise ConnectionLost(f"it ended within an event, after {len(rest)} bytes of it")

    async def encoded_chunks(self) -> AsyncGenerator[bytes]:
        """Yield the body as it arrives, not decompressed; raises ConnectionLost."""
        with _translated():
            async for chunk in self.content.iter_any():
                self.received += len(chunk)
                yield chunk

    async def refusal(self) -> bytes:
        """Return the body of a refusal; empty if it is too long or cannot be read."""
        try:
            async with asyncio.timeout(_REFUSAL_TIME):
                return await self.whole(_LONG_REFUSAL)
        except (AbridgeError, TimeoutError):
            return b""

    def describe(self, raw: bytes) -> str:
        """Describe the status, with the start of the body `raw`, and advice for the user."""
        who = "the server" if self.proxy is None else f"the server, or {self.proxy},"
        text = f"{who} answered HTTP {self.status} {self.reason or ''}".rstrip()
        after = self.headers.get("Retry-After")
        if after is not None:
            text += f" (Retry-After: {after})"
        if start := excerpt(raw):
            text += f": {start}"
        advice = [_ADVICE[self.status]] if self.status in _ADVICE else []
        if self.proxy is not None:
            advice.append(way_past(str(self.url)))
        return "; ".join((text, *advice))


class HttpClient:
    """An HTTP client of one URL; its `headers` are sent to no other origin. Close it after use.

    No answer, and no event of one, may have more than `limit` bytes. No request has a total
    timeout, none is sent twice. A `transparent` client adds no headers, keeps no cookies and names
    no address in an error, since it serves many clients. All requests go through the forward proxy
    of the environment, if it has one for this URL.
    """

    def __init__(
        self,
        url: str,
        limit: int,
        headers: Iterable[tuple[str, str]] = (),
        *,
        transparent: bool = False,
    ) -> None:
        self._limit = limit
        self._transparent = transparent
        full = URL(url)
        self.url = full.with_user(None)
        self._headers = dict(headers)
        if full.user is not None:
            pair = f"{full.user}:{full.password or ''}".encode()
            self._headers.setdefault("Authorization", f"Basic {b64encode(pair).decode()}")
        self._http: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def request(
        self,
        method: str,
        headers: Mapping[str, str],
        raw: bytes | None = None,
        upload: asyncio.Event | None = None,
        url: URL | None = None,
    ) -> AsyncIterator[HttpResponse]:
        """Send a request, and open its response; `upload` is set once the request was sent.

        Redirects within the origin are followed if they leave the request unchanged. Raises
        NoAnswer for other redirects, and ConnectionLost.
        """
        all_headers = CIMultiDict(headers)
        for name, value in self._headers.items():
            all_headers.setdefault(name, value)
        if raw is not None and upload is not None:
            all_headers["Content-Length"] = str(len(raw))
        url = url or self.url
        for _ in range(_REDIRECTS):
            data = raw if raw is None or upload is None else _body(raw, upload)
            try:
                response = await self._answer(method, url, data, all_headers)
            except ConnectionLost as lost:
                before = "the server cannot be reached: " if self._transparent else ""
                raise ConnectionLost(f"{before}{lost}") from None
            async with response:
                location = response.headers.get("Location")
                if location is None or response.status not in _REDIRECT_STATUS:
                    yield response
                    return
                url = self.within(location, response.url)
                if method != "GET" and response.status not in _LOSSLESS_STATUS:
                    brief = f"the server answers a {method} with {response.status}"
                    brief += ", which would lose what was sent"
                    target = masked_url(str(url))
                    raise self._refusal(brief, f"{brief}; if {target} is right, give that URL")
        brief = f"the server redirects more than {_REDIRECTS} times"
        raise self._refusal(brief, f"{brief}, at last to {masked_url(str(url))}")

    def _refusal(self, brief: str, reason: str) -> NoAnswer:
        return NoAnswer(brief if self._transparent else reason)

    @cached_property
    def _proxy(self) -> ForwardProxy | None:
        try:
            return forward_proxy(str(self.url), os.environ)
        except AbridgeError as error:
            raise ConnectionLost(str(error)) from None

    async def _answer(
        self,
        method: str,
        url: URL,
        data: bytes | AsyncIterator[bytes] | None,
        headers: CIMultiDict[str],
    ) -> HttpResponse:
        proxy = self._proxy
        try:
            with _translated():
                response = await self._client().request(
                    method,
                    url,
                    data=data,
                    headers=headers,
                    allow_redirects=False,
                    proxy=None if proxy is None else proxy.url,
                )
        except aiohttp.ClientHttpProxyError as error:
            assert proxy is not None
            raise ConnectionLost(proxy.refusal(error.status, error.message, str(url))) from None
        except ConnectionLost as lost:
            if proxy is None:
                raise
            raise ConnectionLost(f"{lost}, through {proxy}; {way_past(str(url))}") from None
        assert isinstance(response, HttpResponse)
        response.limit = self._limit
        if proxy is not None and url.scheme == "http":
            response.proxy = proxy
            if response.status == CREDENTIALS_WANTED:
                response.close()
                reason = proxy.refusal(response.status, response.reason or "", str(url))
                raise ConnectionLost(reason)
        return response

    def within(self, location: str, base: URL | None = None) -> URL:
        """Return the URL that the server names; raises NoAnswer if its origin differs."""
        origin, target = self.url.origin(), repr(masked_url(location[:_EXCERPT]))
        with suppress(ValueError):  # of what is no URL, or one without a host
            url = (self.url if base is None else base).join(URL(location))
            if url.origin() == origin:
                return url.with_user(None)
            target = masked_url(str(url))
        raise self._refusal(
            "the server redirects to another origin; that is refused",
            f"the server points to {target}, which is another origin than {origin}: nothing is "
            "sent there; if it is right, give that URL",
        )

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    def _client(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession(
                # A forward proxy may take the connection, and then not make the further one.
                timeout=aiohttp.ClientTimeout(total=None, connect=_CONNECT),
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE),
                headers=None if self._transparent else _OWN,
                cookie_jar=aiohttp.DummyCookieJar() if self._transparent else None,
                skip_auto_headers=_AUTOMATIC if self._transparent else None,
                auto_decompress=False,
                response_class=HttpResponse,
                read_bufsize=_BUFFER,
                max_line_size=_LONG_HEADER,
                max_field_size=_LONG_HEADER,
            )
        return self._http


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientHttpProxyError:
        raise  # an answer, of the forward proxy
    except _CONNECTION_ERRORS as error:
        raise ConnectionLost(reason(error)) from None
    except MemoryError:
        raise body.Unreadable("there is no memory for it") from None


@contextmanager
def _reading(what: str) -> Iterator[None]:
    try:
        with _translated():
            yield
    except ConnectionLost as error:
        raise BrokenOff(f"the server's {what} broke off: {error}") from None
    except body.Unreadable as error:
        raise NoAnswer(f"the server's {what} cannot be read: {error}") from None
    except (body.TooLarge, sse.TooLong) as error:
        raise AnswerTooLong(f"the server's {what} is too long: {error}") from None


async def _body(raw: bytes, upload: asyncio.Event) -> AsyncIterator[bytes]:
    yield raw
    # aiohttp wants more, so the system has all of it, or a buffer that is nearly empty.
    upload.set()


def excerpt(raw: bytes) -> str:
    """Return the first characters of a body, for a message."""
    return raw[: 4 * _EXCERPT].decode("utf-8", "replace").strip()[:_EXCERPT]


def reason(error: BaseException) -> str:
    """Return the reason, in plain words, why a request failed with an error of the connection."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        why = str(getattr(error.os_error, "reason", "") or "failed").replace("_", " ").lower()
        place = f"{error.host}:{error.port} ({why})"
        return f"no TLS with {place}; the URL of a server without it begins with http://"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"no connection to {error.host}:{error.port}: {os_error_text(error.os_error)}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without an answer"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {_CONNECT:g} seconds"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection broke off in the middle of the answer"
    if isinstance(error, aiohttp.ClientResponseError):
        # The rest is text of the server, which may repeat the request.
        return f"the server does not speak HTTP as it should: {error.message.partition(':')[0]}"
    text = str(error) or type(error).__name__
    if isinstance(error, OSError):
        text = os_error_text(error)
    # A library may name the URL, which may hold a secret.
    return f"the connection failed: {_URL.sub('the server', text.lower())}"


def os_error_text(error: OSError) -> str:
    """Return the system's text for an error: the error's own text may be a library's.

    >>> os_error_text(ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 3999)"))
    'connection refused'
    """
    # The excluded classes have error numbers of their own.
    if error.errno and not isinstance(error, socket.gaierror | ssl.SSLError):
        return platform.error_text(error).lower()
    return (error.strerror or str(error) or type(error).__name__).lower()
