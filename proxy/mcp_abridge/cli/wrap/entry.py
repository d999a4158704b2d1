"""One server in a client's configuration: without it, it could be neither wrapped nor restored."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from mcp_abridge.cli import PROGRAM, own_version
from mcp_abridge.cli.options import HEADER, URL
from mcp_abridge.cli.wrap.places import Place, dialect
from mcp_abridge.cli.wrap.text import EntryPath, NotPossible, Syntax, entry_at, put_first, replace
from mcp_abridge.document.masks import MASK, WORDS, masked_url, masked_words
from mcp_abridge.errors import AbridgeError
from mcp_abridge.storage.regular import open_regular
from mcp_abridge.transports.client import LOGIN

_COMMANDS = ("command", "cmd")
_URLS = ("url", "httpUrl", "serverUrl", "uri")
_TOKENS = ("bearer_token_env_var", "bearerTokenEnvVar")
HEADERS = ("headers", "http_headers", "env_http_headers", *_TOKENS)
_OWN_LOGIN = (
    *("headersHelper", "authProviderType", "auth", "oauth_resource", "scopes"),
    # In Goose, Vibe and Continue the client puts a secret of its own into the headers.
    *("env_keys", "api_key_env", "apiKey", "requestOptions"),
)
_SECRET = ("env", "envs", "environment", *HEADERS)
_SECONDS = 5.0
_LINE = 4096  # bytes of a script's first line


class Server(NamedTuple):
    """A server in a file: its place, the path of its entry in the document, and the entry."""

    place: Place
    file: str
    name: str
    path: EntryPath
    entry: dict[str, Any]
    disabled: bool

    @property
    def words(self) -> list[str]:
        return _words_of(self.entry)

    @property
    def url_key(self) -> str | None:
        return next((key for key in _URLS if isinstance(self.entry.get(key), str)), None)

    @property
    def own_words(self) -> list[str] | None:
        """The words after `mcp-abridge` if the entry starts the wrapper; None if it does not."""
        return own_words(self.entry)

    @property
    def fault(self) -> str | None:
        """Why a wrapped entry cannot start here, such as an environment that was removed."""
        import shutil

        if self.own_words is None:
            return None
        command = self.words[0]
        if _is_template(command) or (os.path.dirname(command) and not os.path.isabs(command)):
            return None  # where it lies depends on its client
        path = shutil.which(command)
        if path is None:
            where = "does not exist" if os.path.isabs(command) else "is not on the PATH"
            return f"its command {command} {where}"
        line = b""
        with suppress(OSError), open_regular(path) as file:
            line = file.readline(_LINE)
        interpreter = os.fsdecode(line[2:].strip()) if line.startswith(b"#!/") else ""
        if interpreter and not os.path.exists(interpreter.split(" ")[0]):
            return f"its command {command} starts {interpreter}, which does not exist"
        return None

    @property
    def scope(self) -> str:
        return f"local {self.path[1]}" if "*" in self.place.at else self.place.scope

    def summary(self) -> str:
        """Return its command and its URL, in one line, without what may be secret."""
        variables = self.entry.get(dialect(self.place.client).env)
        url = variables.get(URL) if isinstance(variables, dict) else None
        if self.words:
            url = url if self.own_words is not None else None
            return " ".join([*masked_words(self.words), *([masked_url(str(url))] if url else [])])
        key = self.url_key
        return masked_url(self.entry[key]) if key else "neither a command nor a URL"


def _words_of(entry: Any) -> list[str]:
    if not isinstance(entry, dict):
        return []
    command, more = entry.get(_command_key(entry)), entry.get("args")
    if isinstance(command, str):
        command = [command]
    if not isinstance(command, list):
        return []
    return list(map(str, [*command, *(more if isinstance(more, list) else ())]))


def _command_key(entry: dict[str, Any]) -> str:
    return next((key for key in _COMMANDS if key in entry), _COMMANDS[0])


def own_words(entry: Any) -> list[str] | None:
    """Return the words after `mcp-abridge` if an entry starts the wrapper; None if it does not."""
    words = _words_of(entry)
    for at, word in enumerate(words):
        if word == "--":
            break
        # Under uvx with its version: mcp-abridge@1.2.3.
        if re.fullmatch(rf"{PROGRAM}(\.exe|[@=\[].*)?", re.split(r"[/\\]", word)[-1]):
            return words[at + 1 :]
    return None


def masked_value(value: Any, *, secret: bool = False) -> Any:
    """Return a value of a configuration, such as an entry; what may be secret is masked in it."""
    if isinstance(value, dict):
        members = {
            key: masked_value(each, secret=(secret or key in _SECRET) and key != URL)
            for key, each in value.items()
        }
        if not secret and (words := masked_words(_words_of(value))):
            key, count = _command_key(value), 1
            if isinstance(value[key], list):
                count = len(value[key])
            members[key] = words[:count] if isinstance(value[key], list) else words[0]
            if isinstance(value.get("args"), list):
                members["args"] = words[count:]
        return members
    if isinstance(value, list):
        return [masked_value(each, secret=secret) for each in value]
    if value is None or isinstance(value, bool) or (value in WORDS and not secret):
        return value
    if not isinstance(value, str):
        return value if len(str(value)) <= 5 and not secret else MASK
    is_url = not secret and re.match(r"[a-z][a-z+.-]*://", value)
    return masked_url(value) if is_url else MASK


def servers(place: Place, file: str, document: Any) -> Iterator[Server]:
    """Yield the servers that a document has at a place."""
    for path in _paths(document, place.at):
        entries = entry_at(document, path)
        if isinstance(entries, list):
            names = [each.get("name") for each in entries if isinstance(each, dict)]
            entries = {each: entry_at(entries, (each,)) for each in names if isinstance(each, str)}
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            if isinstance(entry, dict) and _is_server(path, entry):
                disabled = entry.get("disabled") is True or entry.get("enabled") is False
                # Cline writes {"transport": {"type": ..., "command": ...}}.
                inner = isinstance(entry.get("transport"), dict)
                members = entry["transport"] if inner else entry
                whole = (*path, name, "transport") if inner else (*path, name)
                yield Server(place, file, name, whole, members, disabled)


def _is_server(path: EntryPath, entry: dict[str, Any]) -> bool:
    if path == ("extensions",):  # of Goose, whose own have neither
        return "cmd" in entry or "uri" in entry
    # opencode's version 2 has other members there; in version 1 each server has a type.
    return path != ("mcp",) or "type" in entry


def _paths(document: Any, at: EntryPath) -> Iterator[EntryPath]:
    if "*" not in at:
        yield at
        return
    star = at.index("*")
    parent = entry_at(document, at[:star])
    for name in parent if isinstance(parent, dict) else ():
        yield (*at[:star], name, *at[star + 1 :])


def launcher(*, shared: bool) -> list[str]:
    """Return the command of this installation that a client can start. Raises NotPossible.

    The path is whole, but a file that people share (`shared`) names no folder of one of them.
    """
    import shutil
    import sysconfig

    if any(part.startswith(("archive-v", "environments-v")) for part in sys.prefix.split(os.sep)):
        # uvx: the cache may be emptied, and a client would run whatever is newest then.
        path, origin = None if shared else shutil.which("uvx"), _origin()
        return [path or "uvx", *(origin or (f"{PROGRAM}@{own_version()}",))]
    if shared and shutil.which(PROGRAM):
        return [PROGRAM]
    started = os.path.abspath(sys.argv[0])
    beside = os.path.join(sysconfig.get_path("scripts"), PROGRAM)
    for path in (started.removesuffix(".exe"), beside):
        for file in (path, f"{path}.exe"):
            if os.path.basename(path) == PROGRAM and os.path.isfile(file):
                return [file]
    raise NotPossible(f"{PROGRAM} is not installed; `pip install mcp-abridge`, then try again")


def needs(launch: list[str]) -> str:
    """Return the programs that others need if the command `launch` stands in a file they share."""
    import shutil

    program = launch[0]
    if len(launch) > 1:
        return f"each of them needs uv, for {program}"
    text = f"each of them needs `pipx install {PROGRAM}`, or `uv tool install {PROGRAM}`"
    if os.path.isabs(program):
        return f"{text}; so do you, since it names {program}; then unwrap it, and wrap it again"
    folder = os.path.dirname(os.path.dirname(shutil.which(program) or ""))
    if os.path.exists(os.path.join(folder, "pyvenv.cfg")):
        text += f"; so do you, since clients find {program} only while {folder} is active"
    return text


def _origin() -> list[str]:
    from importlib.metadata import distribution

    import orjson

    text = distribution(PROGRAM).read_text("direct_url.json")
    url = orjson.loads(text)["url"] if text else ""
    return ["--from", url.removeprefix("file://"), PROGRAM] if url else []


def wrap(
    syntax: Syntax, text: str, server: Server, launch: list[str], *, login: bool, offline: bool
) -> str:
    """Return the text with the server behind `launch`. Raises NotPossible.

    A server at a URL is asked if it wants a `login`, unless that is known, or `offline`.
    """
    if not server.words:
        return _wrap_url(syntax, text, server, launch, login=login, offline=offline)
    key, path, spelling = _command_key(server.entry), server.path, dialect(server.place.client)
    command = server.entry[key]
    if isinstance(command, list):
        return put_first(syntax, text, (*path, key), [*launch, "--"])
    is_line = " " in command and not re.search(r"[/\\]", command)
    if is_line or (spelling.splits and re.search(r"[\s'\"]", command)):
        raise NotPossible("its command is a whole line; split it into command and args first")
    members: dict[str, Any] = {key: spelling.program(launch[0])}
    rest = [*launch[1:], "--", command]
    if "args" not in server.entry:
        return replace(syntax, text, (*path, key), {**members, "args": rest})
    text = put_first(syntax, text, (*path, "args"), rest)
    return replace(syntax, text, (*path, key), members)


def _wrap_url(
    syntax: Syntax, text: str, server: Server, launch: list[str], *, login: bool, offline: bool
) -> str:
    entry, path, key = server.entry, server.path, usable_url(server)
    url, spelling = entry[key].partition("#")[0], dialect(server.place.client)
    headers, variables = _headers(entry)
    own: dict[str, str] = {}
    command = launch
    if may_want_login(server) and (
        login or entry.get("oauth") or (not offline and _wants_login(url))
    ):
        if masked_url(url) != url and not login:
            raise NotPossible(
                "wants a login, for which mcp-remote takes its URL as a word, so that others see "
                "it in the list of processes; if it has no secret, wrap it with --login"
            )
        command = [*launch, "--", *LOGIN, url]
    else:
        own = {URL: url}
    if headers:
        own[HEADER] = "\n".join(headers)
    program = spelling.program(command[0])
    members: dict[str, Any] = {spelling.command: program, "args": command[1:]}
    if spelling.one_array:
        members = {spelling.command: command}
    if own and (env := entry.get(spelling.env)):
        name = next(iter(env))  # the others follow it; in TOML, they may be a table of their own
        text = replace(syntax, text, (*path, spelling.env, name), own, keep=True)
    elif own and spelling.env in entry:
        text = replace(syntax, text, (*path, spelling.env), {spelling.env: own})
    elif own:
        members[spelling.env] = own
    if variables:
        members["env_vars"] = variables
    for name in (*HEADERS, "oauth"):
        if name in entry:
            text = replace(syntax, text, (*path, name), {})
    for kind in {"type", "transport"} & entry.keys():
        text = replace(syntax, text, (*path, kind), {kind: spelling.local})
    return replace(syntax, text, (*path, key), members)


def usable_url(server: Server) -> str:
    """Return the name of the member with the URL. Raises NotPossible."""
    from mcp_abridge.ruleset.loading import config_model

    entry, key = server.entry, server.url_key
    if key is None:
        raise NotPossible("has neither a command nor a URL: its client starts it")
    if entry.get("type") in ("ws", "websocket") or entry[key].startswith("ws"):
        raise NotPossible("speaks WebSocket, which mcp-abridge does not")
    if not _is_template(entry[key]):
        try:
            config_model.url(entry[key].partition("#")[0])
        except config_model.TextError as error:
            raise NotPossible(f"its URL cannot be used: {error}") from None
    oauth = entry.get("oauth")
    login = next((name for name in _OWN_LOGIN if entry.get(name)), None)
    if login or (isinstance(oauth, dict) and set(oauth) - {"enabled"}):
        raise NotPossible(
            f"the client logs in for it ({login or 'oauth'}); by hand, wrap a program that does: "
            f"{PROGRAM} -- {' '.join(LOGIN)} URL"
        )
    return key


def may_want_login(server: Server) -> bool:
    """Return True for a server at a URL without headers."""
    return not server.words and not _headers(server.entry)[0]


def _is_template(url: str) -> bool:
    return "$" in url or "{" in url  # the client puts something there


def _headers(entry: dict[str, Any]) -> tuple[list[str], list[str]]:
    fixed = {**(entry.get("headers") or {}), **(entry.get("http_headers") or {})}
    lines = [f"{name}: {value}" for name, value in fixed.items()]
    variables = {f"{name}: ": each for name, each in (entry.get("env_http_headers") or {}).items()}
    if token := next(filter(None, map(entry.get, _TOKENS)), None):
        variables["Authorization: Bearer "] = token
    lines += [f"{start}${{{variable}}}" for start, variable in variables.items()]
    # Kimi Code, of which the second name is, passes all variables to its servers.
    return lines, [] if _TOKENS[1] in entry else list(variables.values())


def _wants_login(url: str) -> bool:
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import ProxyHandler, Request, build_opener

    from mcp_abridge.transports.client.forward_proxy import forward_proxy

    if _is_template(url):
        return False
    through = ""
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    accept = "application/json, text/event-stream"
    headers = {"Content-Type": "application/json", "Accept": accept}
    try:
        proxies = {}
        if (proxy := forward_proxy(url, os.environ)) is not None:
            proxies, through = {url.partition(":")[0]: proxy.url}, f", through {proxy}"
        opener = build_opener(ProxyHandler(proxies))
        opener.open(Request(url, body, headers), timeout=_SECONDS).close()
    except HTTPError as error:
        with error:
            return error.code == 401
    except (AbridgeError, HTTPException, OSError, ValueError):
        print(
            f"{masked_url(url)} cannot be reached now{through}; if it wants a login, unwrap it, "
            "and wrap it again with --login",
            file=sys.stderr,
        )
    return False
