"""The keys of a configuration of `serve` as they are written, and what their values look like."""

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
"""The segment of a path in which a client may put its token."""

NO_RULES = "none"
"""In place of rule files: everything passes through."""

MEMORY = "memory"
"""The store of a single sidecar."""

STORES = ("redis", "rediss", "unix")
"""How the URL of a shared store may begin."""

RESERVED = ("/healthz", "/readyz", "/metrics")
"""The sidecar's own paths."""

# RFC 9110 section 5.6.2, and what section 5.5 lets stand in a value.
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
    """Where to listen: `127.0.0.1:8808`, `[::1]:8808`, `0.0.0.0:80`; port 0 is any free one."""

    __slots__ = ()

    @property
    def host(self) -> str:
        """The name or number before the port."""
        return self.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The number after it."""
        return int(self.rpartition(":")[2])

    @property
    def loopback(self) -> bool:
        """True where only this machine can connect."""
        from ipaddress import ip_address

        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


class Url(str):
    """Where an upstream is: `http://server:3000/mcp`."""

    __slots__ = ()


class RoutePath(str):
    """The path of a route: `/mcp`, `/mcp/{token}`."""

    __slots__ = ()


class Host(str):
    """What a Host header may say: `mcp.example.org`, `localhost:8808`, `*.example.org`."""

    __slots__ = ()


class Origin(str):
    """What an Origin header may say: `https://app.example.org`."""

    __slots__ = ()


class HeaderName(str):
    """The name of a header."""

    __slots__ = ()


class HeaderValue(Secret):
    """The value of a header, in which `${NAME}` stands for a variable of the environment."""

    __slots__ = ()


class RuleFileName(str):
    """A rule file, a directory of them, the name of a bundled one, or `none`.

    Paths are relative to the configuration.
    """

    __slots__ = ()


class TokenFromEnv(Secret):
    """The token that a variable of the environment holds."""

    __slots__ = ()


class TokenFile:
    """The tokens in a file, one in each line; its path is relative to the configuration."""

    def __init__(self, tokens: tuple[Secret, ...]) -> None:
        self.tokens = tokens


class StoreUrl(Secret):
    """Where windows and views are kept: `memory`, or the URL of a Redis, `redis://redis:6379/0`."""

    __slots__ = ()


class Command(Struct, frozen=True):
    """A stdio server: what starts it."""

    command: Annotated[tuple[str, ...], Meta(min_length=1)]


Bytes = Annotated[Size, Meta(ge=1)]
Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class LimitsSpec(Struct, frozen=True, kw_only=True):
    """What the sidecar takes on at most; what is not given has the default of its flag.

    `body` and `message` are sizes: of a request's body, of a message from an upstream. `concurrent`
    requests are open at once, and `connections`, of one address at most `peer_connections`;
    `sessions` are known, `children` serve stateless requests for each
    command. A session ends `idle_seconds` after its last use, and open requests have
    `drain_seconds` when the sidecar is asked to end. `snapshots` is a size, that of all answers
    kept in memory for later pages and views, each for `snapshot_seconds` after its last use.
    """

    body: Bytes | None = None
    message: Bytes | None = None
    concurrent: Count | None = None
    connections: Count | None = None
    peer_connections: Count | None = None
    sessions: Count | None = None
    idle_seconds: Seconds | None = None
    children: Count | None = None
    drain_seconds: Annotated[float, Meta(ge=0)] | None = None
    snapshots: Bytes | None = None
    snapshot_seconds: Seconds | None = None


class RouteSpec(Struct, frozen=True, kw_only=True):
    """A route as it is written.

    `path` is what its clients ask for, `upstream` a URL or `{command: [...]}`. `rules` and `budget`
    are as the flags of the same names, and `deadline_seconds` is as `--deadline`. `tools` are
    globs: the only tools that are shown and may be called. Clients give a token, `token_env` or
    `token_file`, where there is one; `hosts` and `origins` are what their Host and Origin may say.
    With `auth: forward` the upstream gets the client's own credentials, and it gets `headers` with
    every request. `malformed_status` answers a body that is no JSON. With `passes`, this is no MCP:
    every request under `path` goes to the upstream as it is.
    """

    path: RoutePath
    upstream: Url | Command | None = None
    rules: tuple[RuleFileName, ...] | None = None
    budget: Annotated[Size, Meta(ge=300)] | Literal["auto", "off"] | None = None
    tools: tuple[str, ...] | None = None
    deadline_seconds: Seconds | None = None
    token_env: TokenFromEnv | None = None
    token_file: TokenFile | None = None
    hosts: tuple[Host, ...] | None = None
    origins: tuple[Origin, ...] | None = None
    auth: Literal["none", "forward"] | None = None
    headers: dict[HeaderName, HeaderValue] | None = None
    listen: ListenAddress | None = None
    malformed_status: Literal[200, 400] | None = None
    passes: bool = False

    @property
    def tokens(self) -> tuple[Secret, ...]:
        """Those that open the route; none where it is open."""
        named = () if self.token_env is None else (self.token_env,)
        return named if self.token_file is None else (*named, *self.token_file.tokens)

    @property
    def torn(self) -> str | None:
        """What is wrong where Authorization would have to hold two things; None where nothing is.

        The token that opens a route is never for the upstream.
        """
        if self.auth != "forward" or not self.tokens or TOKEN in self.path:
            return None
        return (
            "Authorization cannot hold the token that opens a route and credentials to forward; "
            f"let the path hold the token: {self.path.rstrip('/')}/{TOKEN}"
        )


class ConfigSpec(Struct, frozen=True, kw_only=True):
    """A configuration of `serve`, beside the keys that its routes start from.

    `store` is `memory`, or the URL of a Redis that replicas share. Without `routes` there is one,
    `/mcp`.
    """

    version: Literal[1]
    store: StoreUrl | None = None
    limits: LimitsSpec = LimitsSpec()
    routes: tuple[Any, ...] = ()


# What a configuration cannot say for all its routes at once.
NO_DEFAULTS = frozenset(("path", "passes"))


def address(text: str) -> ListenAddress:
    """Read where to listen; raises AbridgeError."""
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
    # Whatever stands before an @ may be a password.
    return repr(re.sub(r"//[^/]*@", "//***@", text))


def store(text: str) -> StoreUrl:
    """Read where windows and views are kept; raises AbridgeError."""
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
    """Read a name that a Host header may give; raises AbridgeError."""
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
        raise AbridgeError(f"{text!r} is not for a configuration to set")
    return HeaderName(text)


# They say how a message is framed, or belong to the request that is passed on.
_OURS = frozenset(
    ("connection", "content-length", "content-type", "host", "transfer-encoding", "upgrade")
)


def value(text: str, environment: Mapping[str, str]) -> HeaderValue:
    """Put the values of variables in the place of their names.

    >>> str(value("Bearer ${TOKEN}", {"TOKEN": "abc"}))
    'Bearer abc'

    Raises AbridgeError for one that is not set.
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
    """Return what a variable of the environment holds; raises AbridgeError."""
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
    """Read what names rule files, a path from `folder` on; raises AbridgeError."""
    if "/" in text or Path(text).suffix:
        path = folder / text
        if not path.exists():
            raise AbridgeError(f"no such file or directory: {str(path)!r}")
        # A path even where the configuration lies in the current directory.
        return RuleFileName(path if "/" in str(path) or path.suffix else f"./{path}")
    words = [*library(), NO_RULES]
    if text not in words:
        advice = did_you_mean(text, words) or f"; known: {', '.join(words)}"
        raise AbridgeError(f"no bundled rule file is named {text!r}{advice}")
    return RuleFileName(text)
