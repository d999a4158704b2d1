"""The keys of a configuration of `serve` as they are written, and the types of their values."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from proxy.document.sizes import Size
from proxy.errors import AbridgeError, did_you_mean
from proxy.ruleset.selection import library

TOKEN = "{token}"
"""The segment of a path that may hold the token of a client."""

NO_RULES = "none"
"""The name in place of rule files if everything passes through."""

MEMORY = "memory"
"""The store of a single sidecar."""

STORES = ("redis", "rediss", "unix")
"""The schemes of the URL of a shared store."""

RESERVED = ("/healthz", "/readyz", "/metrics")
"""The sidecar's own paths."""

# RFC 9110 section 5.6.2, and the characters of a value in section 5.5.
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\U0010ffff]*")
_BEARER = re.compile(r"[\x21-\x7e]+")
_HOST = re.compile(r"(\*\.)?([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")
_VARIABLE = re.compile(r"\$\{([^}]*)(\}?)")


class Secret(str):
    """A text that no message, log or repr shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class ListenAddress(str):
    """A listen address: `127.0.0.1:8808`, `[::1]:8808`, `0.0.0.0:80`; port 0 is any free one."""

    __slots__ = ()

    @property
    def host(self) -> str:
        """The name or address before the port."""
        return self.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port number."""
        return int(self.rpartition(":")[2])

    @property
    def loopback(self) -> bool:
        """True if only this machine can connect."""
        from ipaddress import ip_address

        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


class Url(str):
    """The URL of an upstream: `http://server:3000/mcp`."""

    __slots__ = ()


class RoutePath(str):
    """The path of a route: `/mcp`, `/mcp/{token}`."""

    __slots__ = ()


class Host(str):
    """A value that a Host header may have: `mcp.example.org`, `localhost:8808`, `*.example.org`."""

    __slots__ = ()


class Origin(str):
    """A value that an Origin header may have: `https://app.example.org`."""

    __slots__ = ()


class HeaderName(str):
    """The name of a header."""

    __slots__ = ()


class HeaderValue(Secret):
    """The value of a header, in which `${NAME}` is replaced by an environment variable."""

    __slots__ = ()


class RuleFileName(str):
    """A rule file, a directory of them, the name of a bundled one, or `none`.

    Paths are relative to the configuration.
    """

    __slots__ = ()


class TokenFromEnv(Secret):
    """A token, given by the name of the environment variable that holds it."""

    __slots__ = ()


class TokenFile:
    """The tokens in a file, one in each line; its path is relative to the configuration."""

    def __init__(self, tokens: tuple[Secret, ...]) -> None:
        self.tokens = tokens


class StoreUrl(Secret):
    """The store of windows and views: `memory`, or the URL of a Redis, `redis://redis:6379/0`."""

    __slots__ = ()


class Command(Struct, frozen=True):
    """A stdio server, given by the command that starts it."""

    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The program and its arguments, each a separate text."""


Bytes = Annotated[Size, Meta(ge=1)]
Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class LimitsSpec(Struct, frozen=True, kw_only=True):
    """The limits of the sidecar."""

    body: Bytes | None = None
    """The most bytes of a request's body; 4MiB by default."""
    message: Bytes | None = None
    """The most bytes of one message of the server; a longer one is an error. 256MB by default."""
    concurrent: Count | None = None
    """The most open requests, and the most event streams, counted separately; 1000 by default."""
    connections: Count | None = None
    """The most connections of clients; beyond it, idle ones are closed for new ones. By default
    half of the descriptors that `ulimit -n` allows, at most 4000, or 4 times `concurrent`."""
    peer_connections: Count | None = None
    """The most connections from one address; a reverse proxy in front is one address. By default
    half of `connections`, and no limit for addresses of loopback."""
    sessions: Count | None = None
    """The most sessions of each route before a command; 1000 by default."""
    idle_seconds: Seconds | None = None
    """How long after its last use such a session ends; 1800 by default."""
    children: Count | None = None
    """The most processes for the stateless requests of such a route; 4 by default."""
    drain_seconds: Annotated[float, Meta(ge=0)] | None = None
    """How long open requests have to end at shutdown; 10 by default."""
    snapshots: Bytes | None = None
    """The most bytes of answers in memory for later pages and views; 256MB by default."""
    snapshot_seconds: Seconds | None = None
    """How long after its last use such an answer is kept; 1800 by default."""


class RouteSpec(Struct, frozen=True, kw_only=True):
    """A route as it is written."""

    path: RoutePath
    """The path of client requests. One segment may be `{token}`: it holds the client's token."""
    upstream: Url | Command | None = None
    """The server: a URL, or the command of a stdio server. Required, here or at the top."""
    rules: tuple[RuleFileName, ...] | None = None
    """Rule files, directories of them, names of bundled ones, or `none`. Paths are relative to the
    configuration."""
    budget: Annotated[Size, Meta(ge=300)] | Literal["auto", "off"] | None = None
    """The most bytes of a response that no rule covers; `auto` chooses by the client."""
    tools: tuple[str, ...] | None = None
    """Globs: only these tools are listed and may be called."""
    deadline_seconds: Seconds | None = None
    """How long a call may go without an answer or a progress notification."""
    token_env: TokenFromEnv | None = None
    """The environment variable with the token that clients must send; `MCP_ABRIDGE_TOKEN` by
    default, if it is set."""
    token_file: TokenFile | None = None
    """A file of such tokens, one in each line; clients must send one of them. Not beside
    `token_env`."""
    hosts: tuple[Host, ...] | None = None
    """The allowed values of a request's Host: `mcp.example.org` with any port, `localhost:8808`,
    `*.example.org`. By default the names of loopback if it listens there, else any."""
    origins: tuple[Origin, ...] | None = None
    """The allowed values of Origin, beside those of the hosts: `https://app.example.org`."""
    auth: Literal["none", "forward"] | None = None
    """With `forward`, the client's Authorization and Cookie go to the server."""
    headers: dict[HeaderName, HeaderValue] | None = None
    """Sent to the server with every request, in place of the client's own; `${NAME}` in a value is
    a variable of the environment."""
    listen: ListenAddress | None = None
    """The address to listen on; port 0 is any free one."""
    malformed_status: Literal[200, 400] | None = None
    """The status of the answer to a body that is not JSON."""
    passes: bool = False
    """`true`: this is not MCP; every request under `path` goes to the server unchanged."""

    @property
    def tokens(self) -> tuple[Secret, ...]:
        """The tokens that open the route; empty if the route needs none."""
        named = () if self.token_env is None else (self.token_env,)
        return named if self.token_file is None else (*named, *self.token_file.tokens)

    @property
    def torn(self) -> str | None:
        """The mistake if Authorization would have to hold two credentials, or None.

        The token that opens a route is never for the upstream.
        """
        if self.auth != "forward" or not self.tokens or TOKEN in self.path:
            return None
        return (
            "Authorization cannot hold the token that opens a route and credentials to forward; "
            f"let the path hold the token: {self.path.rstrip('/')}/{TOKEN}"
        )


class ConfigSpec(Struct, frozen=True, kw_only=True):
    """A configuration of `serve`, without the keys that are defaults of its routes.

    `store` is `memory`, or the URL of a Redis that replicas share. Without `routes` there is one
    route, `/mcp`.
    """

    version: Literal[1]
    """The version of the configuration: 1."""
    store: StoreUrl | None = None
    """The store of windows and views; replicas share a Redis, `redis://redis:6379/0`."""
    limits: LimitsSpec = LimitsSpec()
    """The limits of the sidecar."""
    routes: tuple[Any, ...] = ()
    """One for each path; without this key there is one, `/mcp`."""


# Keys that a configuration cannot set for all its routes at once.
NO_DEFAULTS = frozenset(("path", "passes"))


def address(text: str) -> ListenAddress:
    """Read the address to listen on; raises AbridgeError."""
    host, colon, port = text.rpartition(":")
    named = _HOST.fullmatch(host) is not None and not host.startswith("*")
    if not (colon and named and port.isascii() and port.isdigit() and int(port) < 65536):
        advice = f"; write 127.0.0.1:{text}" if text.isascii() and text.isdigit() else ""
        raise AbridgeError(f"expected HOST:PORT, found {text!r}{advice}")
    return ListenAddress(text)


def url(text: str) -> Url:
    """Read the URL of an upstream; raises AbridgeError."""
    wrong = f"expected a URL such as http://server:3000/mcp, found {_shown(text)}"
    try:
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise AbridgeError(wrong)
    except ValueError:
        raise AbridgeError(wrong) from None
    if parts.fragment or not text.isprintable() or " " in text:
        raise AbridgeError(wrong)
    return Url(text)


def _shown(text: str) -> str:
    # The part before an @ may be a password.
    return repr(re.sub(r"//[^/]*@", "//***@", text))


def store(text: str) -> StoreUrl:
    """Read the store of windows and views; raises AbridgeError."""
    if text != MEMORY and text.partition("://")[0] not in STORES:
        wanted = "expected memory or a URL such as redis://redis:6379/0"
        raise AbridgeError(f"{wanted}, found {_shown(text)}")
    return StoreUrl(text)


def place(text: str) -> RoutePath:
    """Read the path of a route; raises AbridgeError."""
    if not text.startswith("/") or re.search(r"[?#%\s\\]|//", text):
        raise AbridgeError(f"expected a path such as /mcp, found {text!r}")
    if text in RESERVED:
        raise AbridgeError(f"{text} is the sidecar's own")
    segments = text.split("/")
    if {".", ".."} & set(segments):
        raise AbridgeError(f"{text!r} has a segment that stands for another one")
    braces = [segment for segment in segments if "{" in segment or "}" in segment]
    if braces not in ([], [TOKEN]):
        raise AbridgeError(f"a path may have one segment {TOKEN} and no other in braces")
    return RoutePath(text)


def host(text: str) -> Host:
    """Read an allowed value of a Host header; raises AbridgeError."""
    if _HOST.fullmatch(text) is None:
        raise AbridgeError(f"expected a name such as mcp.example.org, found {text!r}")
    return Host(text)


def origin(text: str) -> Origin:
    """Read an origin; raises AbridgeError."""
    scheme, separator, rest = text.partition("://")
    named = _HOST.fullmatch(rest) is not None and not rest.startswith("*")
    if not (separator and scheme.isalnum() and named):
        raise AbridgeError(f"expected an origin such as https://app.example.org, found {text!r}")
    return Origin(text)


def name(text: str) -> HeaderName:
    """Read the name of a header; raises AbridgeError."""
    if _HEADER.fullmatch(text) is None:
        raise AbridgeError(f"{text!r} is no name of a header")
    if text.lower() in _OURS:
        raise AbridgeError(f"the header {text!r} is the proxy's own")
    return HeaderName(text)


# They frame a message, or are those of the proxy's own requests.
_OURS = frozenset(
    (
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "transfer-encoding",
        "upgrade",
    )
)


def value(text: str, environment: Mapping[str, str]) -> HeaderValue:
    """Replace the names of environment variables by their values.

    >>> str(value("Bearer ${TOKEN}", {"TOKEN": "abc"}))
    'Bearer abc'

    Raises AbridgeError if a variable is not set.
    """

    def named(found: re.Match[str]) -> str:
        if not found[2] or not found[1]:
            raise AbridgeError("'${' begins the name of a variable, which ends with '}'")
        return variable(found[1], environment)

    filled = _VARIABLE.sub(named, text)
    if _VALUE.fullmatch(filled) is None:
        raise AbridgeError("a header has no line breaks or other control characters")
    return HeaderValue(filled)


def variable(named: str, environment: Mapping[str, str]) -> str:
    """Return the value of an environment variable; raises AbridgeError if it is not set."""
    if named not in environment:
        advice = did_you_mean(named, environment)
        raise AbridgeError(f"the variable {named!r} is not set{advice}")
    return environment[named]


def token_in(named: str, environment: Mapping[str, str]) -> TokenFromEnv:
    """Return the token in a variable of the environment; raises AbridgeError."""
    found = variable(named, environment).strip()
    if _BEARER.fullmatch(found) is None:
        raise AbridgeError(f"the variable {named!r} holds no token, {_TOKEN_IS}")
    return TokenFromEnv(found)


def tokens_of(path: Path) -> TokenFile:
    """Return the tokens in a file, one in each line; raises AbridgeError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise AbridgeError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        lines = []
    found = [line.strip() for line in lines if line.strip()]
    if not found or not all(map(_BEARER.fullmatch, found)):
        raise AbridgeError(f"{path}: holds no token, {_TOKEN_IS}")
    return TokenFile(tuple(map(Secret, found)))


_TOKEN_IS = "which is a text of ASCII characters without spaces"


def rules(text: str, folder: Path) -> RuleFileName:
    """Read the name of rule files, a path relative to `folder`; raises AbridgeError."""
    if "/" in text or Path(text).suffix:
        path = folder / text
        if not path.exists():
            raise AbridgeError(f"no such file or directory: {str(path)!r}")
        # Still a path if the configuration is in the current directory.
        return RuleFileName(path if "/" in str(path) or path.suffix else f"./{path}")
    words = [*library(), NO_RULES]
    if text not in words:
        advice = did_you_mean(text, words) or f"; known: {', '.join(words)}"
        raise AbridgeError(f"no bundled rule file is named {text!r}{advice}")
    return RuleFileName(text)
