"""`mcp-abridge serve`: an HTTP sidecar for one server, or for several by a configuration."""

import argparse
import asyncio
import errno
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import ceil
from pathlib import Path
from shutil import which
from threading import Thread
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from yarl import URL

from proxy.cli import PROGRAM, options
from proxy.cli.options import Option
from proxy.document.sizes import size
from proxy.errors import AbridgeError, Problem, RuleErrors
from proxy.ruleset.loading import config
from proxy.ruleset.loading import config_model as configkeys
from proxy.ruleset.loading.config import Config
from proxy.ruleset.loading.config_model import Command, ListenAddress, RouteSpec
from proxy.ruleset.loading.yaml_nodes import MAX_BYTES
from proxy.ruleset.rule import Hidden, RuleFile, RuleSet
from proxy.ruleset.selection import Selection, content, read_library
from proxy.ruleset.watch import Watch
from proxy.storage.ledger import Ledger, default_path
from proxy.storage.meter import Meters
from proxy.storage.snapshots import Memory, Store
from proxy.transports.client.endpoint import os_error_text, redacted
from proxy.transports.log import Level, Log
from proxy.transports.sidecar import sidecar as trimming
from proxy.transports.sidecar.access import LOOPBACK, Access
from proxy.transports.sidecar.metrics import Metrics
from proxy.transports.sidecar.reload import Reloading
from proxy.transports.sidecar.route import Handler, Route, RouteLimits, Rules, Services
from proxy.transports.sidecar.router import Mount
from proxy.transports.sidecar.sidecar import Sidecar
from proxy.transports.workers.pool import Workers

_UNUSABLE = 2
_TOKEN = "MCP_ABRIDGE_TOKEN"
_SNAPSHOTS = 1000
_AGE = 1800.0
_MOST_SETS = 256
_DESCRIPTORS = 65_536
_AGAIN = 60.0  # seconds before the same warning is logged again
_SWITCH = 0.001  # seconds until a thread yields to the others, 0.005 by default
_NOT_ALLOWED = Hidden(code=-32601, message="{tool} is not allowed")


def _read(make: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return make(text)
        except AbridgeError as error:
            raise ValueError(str(error)) from None

    return read


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        # The text may be a secret: do not repeat it.
        raise AbridgeError("a header is written like 'Authorization: Bearer ${TOKEN}'")
    return configkeys.name(name.strip()), configkeys.value(value.strip(), os.environ)


def _number(kind: type[int] | type[float], least: int) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            found = kind(text)
        except ValueError:
            found = -1
        if not least <= found < 1e9:  # false for NaN, too
            raise ValueError(f"expected a number of at least {least}, found {text!r}")
        return found

    return read


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is neither {' nor '.join(words)}")
        return text

    return read


_SAME = {option.name: option for option in options.OPTIONS}

OPTIONS = (
    Option(
        "--listen",
        "where to listen; port 0 is any that is free (default: 127.0.0.1:8808)",
        "HOST:PORT",
        _read(configkeys.address),
    ),
    _SAME["rules"],
    _SAME["allow_python"],
    _SAME["budget"],
    Option(
        "--config", "several routes, or one, as a YAML file; flags stand in for its top", "F", str
    ),
    Option(
        "--store",
        "where windows and views are kept: memory, or redis://HOST:PORT/N, which replicas share "
        "(default: memory)",
        "URL",
        _read(configkeys.store),
    ),
    _SAME["ledger"],
    Option(
        "--header",
        "a header for the server, in which ${NAME} is a variable of the environment; may be given "
        "several times",
        "N:V",
        _read(_header),
        many=True,
        separator="\n",
    ),
    Option("--token-file", "a file with the tokens that open it, one in each line", "F", str),
    Option(
        "--token-env",
        f"the variable that holds the token that opens it (default: {_TOKEN}, where it is set)",
        "NAME",
        str,
    ),
    Option(
        "--insecure",
        "listen where others can connect though there is no token",
        default=False,
    ),
    Option(
        "--allow-host",
        "a name by which clients may call it; may be given several times (default: the names of "
        "this machine's loopback, or any elsewhere)",
        "HOST",
        _read(configkeys.host),
        many=True,
        separator=",",
    ),
    Option(
        "--allow-origin",
        "an origin whose pages may call it; may be given several times",
        "ORIGIN",
        _read(configkeys.origin),
        many=True,
        separator=",",
    ),
    Option(
        "--auth",
        "none, or forward: the server gets the client's own credentials (default: none)",
        "HOW",
        _one_of("none", "forward"),
    ),
    _SAME["max_message"],
    _SAME["deadline"],
    _SAME["snapshots"],
    _SAME["snapshot_age"],
    Option("--max-body", "the most bytes of a request's body (default: 4MiB)", "SIZE", size),
    Option(
        "--concurrent",
        "the most open requests, and the most open event streams, which are counted apart "
        "(default: 1000)",
        "N",
        _number(int, 1),
    ),
    Option(
        "--connections",
        "the most connections of clients; beyond it, idle ones are closed for new ones (default: "
        "half of the descriptors that `ulimit -n` allows, at most 4000, or 4 times --concurrent)",
        "N",
        _number(int, 1),
    ),
    Option(
        "--peer-connections",
        "the most of them from one address (default: half of --connections, and no bound for "
        "addresses of loopback)",
        "N",
        _number(int, 1),
    ),
    Option(
        "--sessions", "the most sessions before a command (default: 1000)", "N", _number(int, 1)
    ),
    Option(
        "--children",
        "the most processes for the stateless requests before a command (default: 4)",
        "N",
        _number(int, 1),
    ),
    Option(
        "--idle",
        "how long after its last use such a session ends (default: 1800)",
        "SECONDS",
        _number(float, 1),
    ),
    Option(
        "--drain",
        "how long open requests have at the end (default: 10)",
        "SECONDS",
        _number(float, 0),
    ),
    _SAME["log_format"],
    _SAME["verbose"],
    _SAME["quiet"],
)

# Options that set keys at the top of a configuration, and those keys.
KEYS = {
    "listen": "listen",
    "rules": "rules",
    "budget": "budget",
    "deadline": "deadline_seconds",
    "auth": "auth",
    "header": "headers",
    "allow_host": "hosts",
    "allow_origin": "origins",
}
# Options that set limits: the key of the configuration, and the field of RouteLimits.
LIMITS = {
    "max_body": ("body", "body"),
    "max_message": ("message", "message"),
    "concurrent": ("concurrent", "concurrent"),
    "sessions": ("sessions", "sessions"),
    "idle": ("idle_seconds", "idle"),
    "children": ("children", "children"),
    "drain": ("drain_seconds", "drain"),
}
# The same for the limits whose defaults depend on the system.
CONNECTIONS = {
    "connections": ("connections", "connections"),
    "peer_connections": ("peer_connections", "peer_connections"),
}
# Options for the snapshot store: the key of the configuration, and the argument of Memory.
SNAPSHOTS = {
    "snapshots": ("snapshots", "size"),
    "snapshot_age": ("snapshot_seconds", "seconds"),
}


class Settings(Struct, frozen=True):
    """The settings of `serve`: `given` holds the parsed values of the set options, by name."""

    given: Mapping[str, Any]
    config: Config


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.usage = f"{PROGRAM} serve [OPTION]... (URL | [--] COMMAND [ARG]... | --config F)"
    parser.allow_abbrev = False
    parser.add_argument("url", nargs="?", metavar="URL", help="the server's URL")
    options.add(parser, OPTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal. Returns 0 then, 2 if an option, a file or an address is unusable."""
    try:
        given = _given(arguments, os.environ)
    except AbridgeError as error:
        print(f"{PROGRAM} serve: {error}", file=sys.stderr)
        return _UNUSABLE
    log = Log(_level(given), given.get("log_format", "text"), dated=True)
    try:
        settings = Settings(given, _config(given, os.environ))
        routes = [_route(written) for written in settings.config.routes]
        _guarded(routes, insecure=given.get("insecure", False))
        routes, rules = _ruled(routes, log, allow_python=given.get("allow_python", False))
        store = _store(settings)
    except RuleErrors as errors:
        for problem in errors.problems:
            log.error(str(problem))
        return _UNUSABLE
    except AbridgeError as error:
        log.error(str(error))
        return _UNUSABLE
    _prepare()
    metrics = Metrics()
    meters = Meters(metrics.observe, metrics.warned)
    ledger = None
    if given.get("ledger") != "off":
        path = given.get("ledger") or default_path()
        ledger = Ledger(path, meters, warn=log.warning, lose=metrics.unrecorded)
    workers = Workers()
    shared = Services(meters, store, workers, log, _limits(settings))
    try:
        pairs = zip(routes, rules, strict=True)
        mounts = [Mount(route, _handler(route, ruled, shared)) for route, ruled in pairs]
        return asyncio.run(_serve(Sidecar(mounts, shared.limits, log, metrics), log))
    finally:
        workers.close()
        log.sum_up()
        if ledger is not None:
            ledger.close()
            if ledger.unrecorded:
                log.warning(f"calls that the ledger did not record: {ledger.unrecorded}")
        log.flush()


def _given(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the options set by a flag or else by a variable. Raises AbridgeError."""
    given: dict[str, Any] = {}
    for option in OPTIONS:
        value = getattr(arguments, option.name)
        if value not in (None, False):
            given[option.name] = value
        elif text := environment.get(option.variable):
            given[option.name] = _from_variable(option, text)
    both = "--token-env and --token-file cannot stand together"
    flags = [getattr(arguments, name) for name in ("token_env", "token_file")]
    if all(flags):
        raise AbridgeError(both)
    if any(flags) or "token_file" in given:  # a flag beats a variable; of variables, the file wins
        given.pop("token_file" if flags[0] else "token_env", None)
    elif environment.get(_TOKEN):
        given.setdefault("token_env", _TOKEN)
    command = arguments.command
    if command and "--" not in arguments.words and which(command[0]) is None:
        raise AbridgeError(
            f"{command[0]!r} is neither a URL, such as http://server:3000/mcp, nor a program on "
            "the PATH; what stands after -- is run in any case"
        )
    if arguments.url is not None and command:
        raise AbridgeError("a server is a URL, or a command, not both")
    if arguments.url is not None:
        given["upstream"] = configkeys.url(arguments.url)
    elif command:
        given["upstream"] = Command(tuple(command))
    elif "config" not in given:
        said = "no server: give its URL, or write its command after --, or give --config"
        raise AbridgeError(said)
    return given


def _from_variable(option: Option, text: str) -> Any:
    if option.read is None:
        return text.lower() not in options.FALSE
    try:
        if not option.many:
            return option.read(text)
        parts = text.split(option.separator)
        return [option.read(part.strip()) for part in parts if part.strip()]
    except ValueError as error:
        raise AbridgeError(f"{option.variable}: {error}") from None


def _config(given: Mapping[str, Any], environment: Mapping[str, str]) -> Config:
    """Return the routes. Raises AbridgeError, or RuleErrors for problems in a file."""
    top: dict[str, Any] = {key: given[name] for name, key in KEYS.items() if name in given}
    for key, kind in (("rules", tuple), ("hosts", tuple), ("origins", tuple), ("headers", dict)):
        if key in top:
            top[key] = kind(top[key])
    if "upstream" in given:
        top["upstream"] = given["upstream"]
    if "token_env" in given:
        top["token_env"] = configkeys.token_in(given["token_env"], environment)
    if "token_file" in given:
        top["token_file"] = configkeys.tokens_of(Path(given["token_file"]))
    file = given.get("config")
    if file is None:
        route = RouteSpec(path=configkeys.RoutePath("/mcp"), **top)
        if route.torn is not None:
            raise AbridgeError(f"--auth: {route.torn}")
        return Config((route,))
    try:
        raw = content(file, MAX_BYTES + 1)
    except (OSError, AbridgeError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise RuleErrors([Problem(file, 0, 0, reason)]) from None
    reading = config.read(file, raw, environment, top)
    if reading.config is None:
        raise RuleErrors(list(reading.problems))
    return reading.config


def _limits(settings: Settings) -> RouteLimits:
    return RouteLimits(**_bounds(settings, LIMITS | CONNECTIONS))


def _bounds(settings: Settings, table: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Return the limits that are set, by their internal names in `table`."""
    found: dict[str, Any] = {}
    for name, (key, own) in table.items():
        value = settings.given.get(name, getattr(settings.config.limits, key))
        if value is not None:
            found[own] = value
    return found


def _route(written: RouteSpec) -> Route:
    listen = written.listen or ListenAddress("127.0.0.1:8808")
    upstream = written.upstream
    assert upstream is not None
    hosts = written.hosts or (LOOPBACK if listen.loopback else None)
    return Route(
        path=written.path,
        upstream=upstream.command if isinstance(upstream, Command) else upstream,
        rules=written.rules,
        budget=written.budget,
        tools=written.tools,
        deadline=written.deadline_seconds,
        auth=written.auth or "none",
        access=Access(hosts=hosts, origins=written.origins or (), tokens=written.tokens),
        headers=tuple((written.headers or {}).items()),
        listen=listen,
        malformed_status=written.malformed_status or 400,
        passes=written.passes,
    )


def _guarded(routes: Sequence[Route], *, insecure: bool) -> None:
    """Raise AbridgeError if a route without a token would be open to the network."""
    for route in routes:
        if not (insecure or route.access.tokens or ListenAddress(route.listen).loopback):
            raise AbridgeError(
                f"{route.path} on {route.listen} would be open to whoever can connect: give it a "
                f"token (--token-file, --token-env or {_TOKEN}), listen on 127.0.0.1, or say "
                "--insecure"
            )


def _ruled(
    routes: Sequence[Route], log: Log, *, allow_python: bool
) -> tuple[list[Route], list[Rules]]:
    """Load the rules of each route. Raises RuleErrors with every problem of all routes."""
    problems: dict[Problem, None] = {}
    settling: list[Route] = []
    loaded: list[Rules] = []
    bundled = False

    @cache
    def read(names: tuple[str, ...]) -> Reloading:
        return Reloading(Watch(names, log.info, log.warning, allow_python=allow_python))

    for route in routes:
        try:
            if route.rules == (configkeys.NO_RULES,):
                selection = Selection((), "off", log.info)
            elif route.rules is None:
                selection = Selection(None, route.budget, log.info)
                bundled = True
            else:
                files = read(route.rules)
                selection = Selection(files, route.budget, log.info)
                route = replace(route, refresh=files.refresh)
            loaded.append(_exposing(route, selection))
            settling.append(route)
        except RuleErrors as errors:
            problems |= dict.fromkeys(errors.problems)
    if problems:
        raise RuleErrors(list(problems))
    if bundled:
        # No daemon: its compilation of regular expressions must not be cut off by process exit.
        Thread(target=read_library, name="library").start()
    return settling, loaded


def _exposing(route: Route, selection: Selection) -> Rules:
    """Return the rules of a route, limited to its `tools`."""
    if route.tools is None:
        return selection
    own = RuleFile(name=f"route {route.path}", expose=route.tools, unexposed=_NOT_ALLOWED)

    made: dict[int, tuple[RuleSet, RuleSet]] = {}

    def rules(server: str | None, client: str | None) -> RuleSet:
        chosen = selection(server, client)
        found = made.get(id(chosen))
        if found is None or found[0] is not chosen:
            if len(made) >= _MOST_SETS:
                made.clear()
            # The same `chosen` must give the same RuleSet: changes are detected by identity.
            found = made[id(chosen)] = chosen, RuleSet((own, *chosen.files), chosen.otherwise)
        return found[1]

    return rules


def _store(settings: Settings) -> Store:
    """Return the store of snapshots. Raises StoreError."""
    named = settings.given.get("store") or settings.config.store
    bounds = _bounds(settings, SNAPSHOTS)
    if named in (None, configkeys.MEMORY):
        return Memory(number=_SNAPSHOTS, ages=True, **bounds)
    from proxy.storage.redis import Redis

    return Redis(str(named), seconds=ceil(bounds.get("seconds", _AGE)))


def _handler(route: Route, rules: Rules, shared: Services) -> Handler:
    if isinstance(route.upstream, str):
        from proxy.transports.sidecar.url.route_handler import UrlRoute

        return UrlRoute(route, rules, shared)
    from proxy.transports.sidecar.command.route_handler import CommandRoute

    return CommandRoute(route, rules, shared)


def _prepare() -> None:
    """Raise the limit of descriptors, silence the log of libraries, and set up threads.

    Threads that run Python (for long tool lists and rules' own code) must neither hold up the event
    loop nor allocate in memory arenas of their own.
    """
    trimming.share()
    sys.setswitchinterval(_SWITCH)
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(sidecar: Sidecar, log: Log) -> int:
    said: dict[str, float] = {}

    def failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        trouble, now = _trouble(context), loop.time()
        if now - said.get(trouble, -_AGAIN) >= _AGAIN:
            said.clear()
            said[trouble] = now
            log.warning(trouble)

    asyncio.get_running_loop().set_exception_handler(failed)
    sidecar.heed_signals()
    try:
        await sidecar.start()
    except AbridgeError as error:
        log.error(str(error))
        await sidecar.close()
        return _UNUSABLE
    for mount in sidecar.mounts:
        log.event("serving", **dict(_described(sidecar, mount.route)))
    sidecar.unready()
    await sidecar.until_signal()
    await sidecar.close()
    return 0


def _trouble(context: dict[str, Any]) -> str:
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        many = os_error_text(error)
        return f"no connection can be taken: {many}; `ulimit -n` says how many there may be"
    return f"{context['message']}: {type(error).__name__}: {error}"


def _described(sidecar: Sidecar, route: Route) -> Iterator[tuple[str, Any]]:
    """Yield the facts of a route to log; not a command's arguments, which may be secret."""
    yield "url", f"http://{sidecar.address(route.listen)}{route.path}"
    upstream = route.upstream
    yield "upstream", redacted(URL(upstream)) if isinstance(upstream, str) else upstream[0]
    if not route.passes:
        yield "rules", "bundled" if route.rules is None else ", ".join(route.rules)
    if route.tools is not None:
        yield "tools", ", ".join(route.tools)
    yield "token", "yes" if route.access.tokens else "no"


def _level(given: Mapping[str, Any]) -> Level:
    if given.get("quiet"):
        return "error"
    return "debug" if given.get("verbose") else "info"
