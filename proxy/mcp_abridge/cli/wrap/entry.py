"""One server in a client's configuration: without it, it could be neither wrapped nor restored."""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from mcp_abridge.cli import PROGRAM
from mcp_abridge.cli.wrap.places import Place, dialect
from mcp_abridge.cli.wrap.text import Path, Syntax, entry_at, put_first, replace
from mcp_abridge.errors import AbridgeError

HEADER = "MCP_ABRIDGE_HEADER"

_URLS = ("url", "httpUrl", "serverUrl")
_HEADERS = ("headers", "http_headers", "env_http_headers", "bearer_token_env_var")
_OWN_LOGIN = ("headersHelper", "authProviderType", "auth", "oauth_resource", "scopes")
_SECRET = re.compile(r"//[^/]*@|[?&][^=]*(key|token|secret|auth|passw|sig)[^=]*=", re.IGNORECASE)
_SECONDS = 5.0


class NotPossible(AbridgeError):
    """A server that is left as it is; the text is the reason, and what to do by hand."""


class Server(NamedTuple):
    """A server in a file: its place, the path of its entry in the document, and the entry."""

    place: Place
    file: str
    name: str
    path: Path
    entry: dict[str, Any]
    disabled: bool

    @property
    def words(self) -> list[str]:
        command, more = self.entry.get("command"), self.entry.get("args") or ()
        if isinstance(command, list):
            return list(map(str, command))
        return [command, *map(str, more)] if isinstance(command, str) else []

    @property
    def url_key(self) -> str | None:
        return next((key for key in _URLS if isinstance(self.entry.get(key), str)), None)

    @property
    def own_words(self) -> list[str] | None:
        """The words after `mcp-abridge` if the entry starts the wrapper; None if it does not."""
        for at, word in enumerate(self.words):
            if word == "--":
                break
            if re.split(r"[/\\]", word)[-1] in (PROGRAM, f"{PROGRAM}.exe"):
                return self.words[at + 1 :]
        return None

    @property
    def scope(self) -> str:
        return f"local {self.path[1]}" if self.place.scope == "local" else self.place.scope

    def summary(self) -> str:
        """Return its command or its URL, in one line; a query may have a secret."""
        if self.words:
            return shlex.join(self.words)
        return str(self.entry.get(self.url_key or "", "neither a command nor a URL")).split("?")[0]

    def secrets(self) -> Iterator[str]:
        """Yield the values that no difference may show: of variables and of headers."""
        for key in (dialect(self.place.client).env, *_HEADERS):
            members = self.entry.get(key)
            for value in members.values() if isinstance(members, dict) else ():
                for line in str(value).splitlines():
                    yield from (line, line.partition(": ")[2])


def servers(place: Place, file: str, document: Any) -> Iterator[Server]:
    """Yield the servers that a document has at a place."""
    for path in _paths(document, place.at):
        entries = entry_at(document, path)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            # opencode's version 2 has other members there; in version 1 each server has a type.
            if isinstance(entry, dict) and (path != ("mcp",) or "type" in entry):
                disabled = entry.get("disabled") is True or entry.get("enabled") is False
                # Cline writes {"transport": {"type": ..., "command": ...}}.
                inner = isinstance(entry.get("transport"), dict)
                members = entry["transport"] if inner else entry
                whole = (*path, name, "transport") if inner else (*path, name)
                yield Server(place, file, name, whole, members, disabled)


def _paths(document: Any, at: Path) -> Iterator[Path]:
    if "*" not in at:
        yield at
        return
    star = at.index("*")
    for name in entry_at(document, at[:star]) or ():
        yield (*at[:star], name, *at[star + 1 :])


def launcher(*, shared: bool) -> list[str]:
    """Return the command of this installation that a client can start. Raises NotPossible.

    The path is whole, but a file that people share (`shared`) names no folder of one of them.
    """
    import shutil
    import sysconfig

    if any(part.startswith(("archive-v", "environments-v")) for part in sys.prefix.split(os.sep)):
        # uvx: the cache may be emptied.
        return [shutil.which("uvx") or "uvx", *_origin(), PROGRAM]
    if shared and shutil.which(PROGRAM):
        return [PROGRAM]
    started = os.path.abspath(sys.argv[0])
    beside = os.path.join(sysconfig.get_path("scripts"), PROGRAM)
    for path in (started, beside):
        if os.path.basename(path) == PROGRAM and os.path.isfile(path):
            return [path]
    raise NotPossible(f"{PROGRAM} is not installed; `pip install mcp-abridge`, then try again")


def _origin() -> list[str]:
    from importlib.metadata import distribution

    import orjson

    text = distribution(PROGRAM).read_text("direct_url.json")
    url = orjson.loads(text)["url"] if text else ""
    return ["--from", url.removeprefix("file://")] if url else []


def wrap(syntax: Syntax, text: str, server: Server, launch: list[str], *, login: bool) -> str:
    """Return the text with the server behind `launch`. Raises NotPossible."""
    if not server.words:
        return _wrap_url(syntax, text, server, launch, login=login)
    command, path = server.entry["command"], server.path
    if isinstance(command, list):
        return put_first(syntax, text, (*path, "command"), [*launch, "--"])
    if " " in command and not re.search(r"[/\\]", command):
        raise NotPossible("its command is a whole line; split it into command and args first")
    rest = [*launch[1:], "--", command]
    if "args" not in server.entry:
        members = {"command": launch[0], "args": rest}
        return replace(syntax, text, (*path, "command"), members)
    text = put_first(syntax, text, (*path, "args"), rest)
    return replace(syntax, text, (*path, "command"), {"command": launch[0]})


def _wrap_url(syntax: Syntax, text: str, server: Server, launch: list[str], *, login: bool) -> str:
    entry, path, key = server.entry, server.path, usable_url(server)
    headers, variables = _headers(entry)
    command, spelling = [*launch, entry[key]], dialect(server.place.client)
    if not headers and (login or entry.get("oauth") or _wants_login(entry[key])):
        command[-1:] = ["--", "npx", "-y", "mcp-remote", entry[key]]
    members: dict[str, Any] = {"command": command[0], "args": command[1:]}
    if server.place.client == "opencode":
        members = {"command": command}
    if headers:
        members[spelling.env] = {**(entry.get(spelling.env) or {}), HEADER: "\n".join(headers)}
        if variables:
            members["env_vars"] = variables
        if spelling.env in entry:
            value = {spelling.env: members.pop(spelling.env)}
            text = replace(syntax, text, (*path, spelling.env), value)
    for name in (*_HEADERS, "oauth"):
        if name in entry:
            text = replace(syntax, text, (*path, name), {})
    if "type" in entry:
        text = replace(syntax, text, (*path, "type"), {"type": spelling.local})
    return replace(syntax, text, (*path, key), members)


def usable_url(server: Server) -> str:
    """Return the name of the member with the URL. Raises NotPossible."""
    entry, key = server.entry, server.url_key
    if key is None:
        raise NotPossible("has neither a command nor a URL: its client starts it")
    if entry.get("type") in ("ws", "websocket") or entry[key].startswith("ws"):
        raise NotPossible("speaks WebSocket, which mcp-abridge does not")
    if _SECRET.search(entry[key]):
        raise NotPossible(
            "its URL holds a secret, which others would see in the list of processes; if the "
            "server takes it as a header, write it there first"
        )
    oauth = entry.get("oauth")
    login = next((name for name in _OWN_LOGIN if entry.get(name)), None)
    if login or (isinstance(oauth, dict) and set(oauth) - {"enabled"}):
        raise NotPossible(
            f"the client logs in for it ({login or 'oauth'}); by hand, wrap a program that does: "
            f"{PROGRAM} -- npx -y mcp-remote URL"
        )
    return key


def _headers(entry: dict[str, Any]) -> tuple[list[str], list[str]]:
    fixed = {**(entry.get("headers") or {}), **(entry.get("http_headers") or {})}
    lines = [f"{name}: {value}" for name, value in fixed.items()]
    variables = {f"{name}: ": each for name, each in (entry.get("env_http_headers") or {}).items()}
    if token := entry.get("bearer_token_env_var"):
        variables["Authorization: Bearer "] = token
    lines += [f"{start}${{{variable}}}" for start, variable in variables.items()]
    return lines, list(variables.values())


def _wants_login(url: str) -> bool:
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    if "$" in url or "{" in url:  # the client puts something there
        return False
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    accept = "application/json, text/event-stream"
    headers = {"Content-Type": "application/json", "Accept": accept}
    try:
        urlopen(Request(url, body, headers), timeout=_SECONDS).close()
    except HTTPError as error:
        return error.code == 401
    except (OSError, ValueError):
        print(
            f"{url.split('?')[0]} cannot be reached now; if it wants a login, unwrap it, and wrap "
            "it again with --login",
            file=sys.stderr,
        )
    return False
