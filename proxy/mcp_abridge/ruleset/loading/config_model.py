"""The keys of a configuration of `serve` as they are written, and the types of their values."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from mcp_abridge.document.masks import masked_url
from mcp_abridge.document.sizes import LEAST_BOUND, Size
from mcp_abridge.errors import AbridgeError, did_you_mean, did_you_mean_or_known
from mcp_abridge.ruleset.selection import NO_RULES, library

TOKEN = "{token}"  # the segment of a path that may hold the token of a client
MEMORY = "memory"  # the store of a single sidecar
STORES = ("redis", "rediss", "unix")  # the schemes of the URL of a shared store
RESERVED = ("/healthz", "/readyz", "/metrics")

# RFC 9110 section 5.6.2, and the characters of a value in section 5.5.
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\U0010ffff]*")
_BEARER = re.compile(r"[\x21-\x7e]+")
_HOST = re.compile(r"(\*\.)?([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")
_MAX_PORT = 65535
_VARIABLE = re.compile(r"\$\{([^}]*)(\}?)")


class TextError(AbridgeError, ValueError):
    """A text that its notation does not admit; readers of options expect a ValueError."""


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
        return self.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.rpartition(":")[2])

    @property
    def loopback(self) -> bool:
        from ipaddress import ip_address

        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


# Texts with a notation of their own; the title is the word in the reference.
Url = Annotated[str, Meta(title="a URL")]
RoutePath = Annotated[str, Meta(title="a path")]
Host = Annotated[str, Meta(title="a name")]
Origin = Annotated[str, Meta(title="an origin")]
HeaderName = Annotated[str, Meta(title="the name of a header")]
HeaderValue = Annotated[Secret, Meta(title="a text")]
RuleFileName = Annotated[str, Meta(title="a path or a name")]

StoreUrl = Annotated[Secret, Meta(title="`memory`, or a URL")]


class Token(NamedTuple):
    """A token that opens a route, and its name: whoever sends it is the caller of that name."""

    name: str
    secret: Secret


class TokenFromEnv(Token):
    """The token in a variable of the environment, named after the variable."""

    __slots__ = ()


class TokenFile(NamedTuple):
    """The tokens in a file, one in each line; its path is relative to the configuration."""

    path: str
    tokens: tuple[Token, ...]


class Command(Struct, frozen=True):
    """A stdio server, given by the command that starts it."""

    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The program and its arguments, each a separate text."""


PositiveSize = Annotated[Size, Meta(ge=1)]
PositiveCount = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class LimitsSpec(Struct, frozen=True, kw_only=True):
    """The limits of the sidecar."""

    body: PositiveSize = 4 << 20
    """The most bytes of a request's body; 4MiB by default."""
    message: PositiveSize = 256_000_000
    """The most bytes of one message of the server; a longer one is an error. 256MB by default."""
    concurrent: PositiveCount = 1000
    """The most open requests, and the most event streams, counted separately; 1000 by default."""
    connections: PositiveCount | None = None
    """The most connections of clients; beyond it, idle ones are closed for new ones. By default
    half of the descriptors that `ulimit -n` allows, at most 4000, or 4 times `concurrent`."""
    peer_connections: PositiveCount | None = None
    """The most connections from one address; a reverse proxy in front is one address. By default
    half of `connections`, and no limit for addresses of loopback."""
    sessions: PositiveCount = 1000
    """The most sessions of each route before a command; 1000 by default. For one more, an unused
    session of the caller that has most ends."""
    idle_seconds: Seconds = 1800.0
    """How long after its last use such a session ends; 1800 by default."""
    children: PositiveCount = 4
    """The most processes for the stateless requests of such a route; 4 by default. Each serves one
    caller; if all are taken, those of the caller that has most give way once they have answered. A
    caller's only process does not while a subscription is open: allow one for each caller."""
    drain_seconds: Annotated[float, Meta(ge=0)] = 10.0
    """How long open requests have to end at shutdown; 10 by default."""
    snapshots: PositiveSize = 256_000_000
    """The most bytes of answers in memory for later pages and views; 256MB by default."""
    snapshot_seconds: Seconds = 1800.0
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
    budget: Annotated[Size, Meta(ge=LEAST_BOUND)] | Literal["auto", "client", "off"] | None = None
    """The most bytes of a response that no rule covers; `auto` chooses by the client, `client` does
    so for responses that the client itself would cut."""
    scripts: Literal["auto", "on", "off"] | None = None
    """`on`: the model's scripts read the responses, so that none is cut; `auto`, the default, asks
    the client's version and its marks, since a sidecar does not have the client's environment."""
    tools: tuple[str, ...] | None = None
    """Globs: only these tools are listed and may be called."""
    deadline_seconds: Seconds | None = None
    """How long a call may go without an answer or a progress notification."""
    token_env: TokenFromEnv | None = None
    """The environment variable with the token that clients must send; `MCP_ABRIDGE_TOKEN` by
    default, if it is set."""
    token_file: TokenFile | None = None
    """A file of such tokens, one in each line, alone or after a name for its caller: `ann TOKEN`.
    Clients must send one of them. A changed file is read again. Not beside `token_env`."""
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
    def tokens(self) -> tuple[Token, ...]:
        if self.token_file is not None:
            return self.token_file.tokens
        return () if self.token_env is None else (self.token_env,)

    @property
    def auth_conflict(self) -> str | None:
        """The mistake if Authorization would have to hold two credentials, or None."""
        if self.auth != "forward" or not self.tokens or TOKEN in self.path:
            return None
        return (
            "Authorization cannot hold the token that opens a route and credentials to forward; "
            f"let the path hold the token: {self.path.rstrip('/')}/{TOKEN}"
        )


class ConfigSpec(Struct, frozen=True, kw_only=True):
    """A configuration of `serve`, without the keys that are defaults of its routes."""

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


# Each function below reads one notation; all raise TextError.


def listen_address(text: str) -> ListenAddress:
    """Read the address to listen on."""
    host, _, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and int(port) <= _MAX_PORT
    if not (is_port and _is_host(host)):
        advice = f"; write 127.0.0.1:{port}" if is_port and text == port else ""
        raise TextError(f"expected HOST:PORT, PORT up to {_MAX_PORT}, found {text!r}{advice}")
    return ListenAddress(text)


def _is_host(text: str) -> bool:
    return _HOST.fullmatch(text) is not None and not text.startswith("*")


def url(text: str) -> Url:
    """Read the URL of an upstream."""
    with suppress(ValueError):
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        if usable and "#" not in text and " " not in text and text.isprintable():
            return text
    example = "expected a URL such as http://server:3000/mcp"
    raise TextError(f"{example}, found {masked_url(text)!r}")


def store_url(text: str) -> StoreUrl:
    """Read the store of windows and views."""
    if text != MEMORY and text.partition("://")[0] not in STORES:
        example = "expected memory or a URL such as redis://redis:6379/0"
        raise TextError(f"{example}, found {masked_url(text)!r}")
    return Secret(text)


def route_path(text: str) -> RoutePath:
    """Read the path of a route."""
    segments = text.split("/")
    braces = [segment for segment in segments if "{" in segment or "}" in segment]
    plain = text.startswith("/") and not re.search(r"[?#%\s\\]|//", text)
    if not plain or {".", ".."} & set(segments) or braces not in ([], [TOKEN]):
        raise TextError(f"expected a path such as /mcp or /mcp/{TOKEN}, found {text!r}")
    if text in RESERVED:
        raise TextError(f"{text} is the sidecar's own")
    return text


def host(text: str) -> Host:
    """Read an allowed value of a Host header."""
    if _HOST.fullmatch(text) is None:
        raise TextError(f"expected a name such as mcp.example.org, found {text!r}")
    return text


def origin(text: str) -> Origin:
    """Read an allowed value of an Origin header."""
    scheme, separator, rest = text.partition("://")
    if not (separator and scheme.isalnum() and _is_host(rest)):
        raise TextError(f"expected an origin such as https://app.example.org, found {text!r}")
    return text


def header_name(text: str) -> HeaderName:
    """Read the name of a header."""
    if _HEADER.fullmatch(text) is None:
        raise TextError(f"{text!r} is no name of a header")
    if (name := text.lower()) in _OWN_HEADERS or name.startswith("mcp-param-"):
        raise TextError(f"the header {text!r} is the proxy's own")
    return text


# They frame a message, or are those of the proxy's own requests.
_OWN_HEADERS = frozenset(
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


def header_value(text: str, environment: Mapping[str, str]) -> HeaderValue:
    """Read the value of a header, in which `${NAME}` is a variable of the environment."""

    def variable(match: re.Match[str]) -> str:
        if not match[2] or not match[1]:
            raise TextError("'${' begins the name of a variable, which ends with '}'")
        return _variable(match[1], environment)

    value = _VARIABLE.sub(variable, text)
    if _VALUE.fullmatch(value) is None:
        raise TextError("a header has no line breaks or other control characters")
    return Secret(value)


def header(line: str, environment: Mapping[str, str]) -> tuple[HeaderName, HeaderValue]:
    """Return the name and the value of a header, with `${NAME}` taken from the environment.

    >>> name, value = header("Authorization: Bearer ${TOKEN}", {"TOKEN": "x"})
    >>> name, str(value), value
    ('Authorization', 'Bearer x', '***')

    Raises TextError, without the value, which may be secret.
    """
    name, colon, value = line.partition(":")
    if not colon:
        raise TextError("a header is written like 'Authorization: Bearer ${TOKEN}'")
    return header_name(name.strip()), header_value(value.strip(), environment)


def _variable(name: str, environment: Mapping[str, str]) -> str:
    if name not in environment:
        advice = did_you_mean(name, environment)
        raise TextError(f"the variable {name!r} is not set{advice}")
    return environment[name]


def token_from_env(name: str, environment: Mapping[str, str]) -> TokenFromEnv:
    """Read the token in a variable of the environment."""
    token = _variable(name, environment).strip()
    if _BEARER.fullmatch(token) is None:
        raise TextError(f"the variable {name!r} holds no token, {_TOKEN_IS}")
    return TokenFromEnv(name, Secret(token))


def token_file(path: Path) -> TokenFile:
    """Read the tokens in a file, one in each line, alone or after a name.

    A token without one is named by a short digest: who sees that can test guesses, no more.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise TextError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        lines = []
    entries = [line.split() for line in lines if line.strip()]
    valid = all(len(each) <= 2 and all(map(_BEARER.fullmatch, each)) for each in entries)
    if not (entries and valid):
        raise TextError(f"{path}: holds no token, {_TOKEN_IS}; a name may precede it in its line")
    tokens = (
        Token(each[0] if each[1:] else _digest(each[-1]), Secret(each[-1])) for each in entries
    )
    return TokenFile(str(path), tuple(tokens))


def _digest(token: str) -> str:
    from hashlib import sha256

    return sha256(token.encode()).hexdigest()[:8]


_TOKEN_IS = "which is a text of ASCII characters without spaces"


def rule_file_name(text: str, folder: Path) -> RuleFileName:
    """Read a rule file, a directory of them, a bundled name, or `none`; paths begin at `folder`."""
    if "/" in text or Path(text).suffix:
        path = folder / text
        if not path.exists():
            raise TextError(f"no such file or directory: {str(path)!r}")
        # Still a path if the configuration is in the current directory.
        return str(path) if "/" in str(path) or path.suffix else f"./{path}"
    names = [*library(), NO_RULES]
    if text not in names:
        advice = did_you_mean_or_known(text, names)
        raise TextError(f"no bundled rule file is named {text!r}{advice}")
    return text
