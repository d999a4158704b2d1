"""`mcp-abridge serve`: an HTTP sidecar for one server, or for several by a configuration."""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from math import ceil
from shutil import which
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcp_abridge.cli import PROGRAM, options, own_version
from mcp_abridge.cli.options import Option
from mcp_abridge.cli.run import recording, telemetry
from mcp_abridge.document.masks import masked_url, masked_words
from mcp_abridge.errors import AbridgeError, Problem, RuleErrors
from mcp_abridge.ruleset.loading import config, config_model
from mcp_abridge.ruleset.loading.config import Config
from mcp_abridge.ruleset.loading.config_model import Command, ListenAddress, RouteSpec
from mcp_abridge.ruleset.loading.convert import fields
from mcp_abridge.ruleset.loading.yaml_nodes import MAX_BYTES
from mcp_abridge.ruleset.rule import Hidden
from mcp_abridge.ruleset.rule_set import RuleFile
from mcp_abridge.ruleset.selection import NO_RULES, Selection, content
from mcp_abridge.ruleset.watch import Watch
from mcp_abridge.storage.calls import RecentCalls
from mcp_abridge.storage.ledger import Ledger, default_path
from mcp_abridge.storage.meter import Meters, Row
from mcp_abridge.storage.rule_history import RuleHistory
from mcp_abridge.storage.scope import place
from mcp_abridge.storage.snapshots import Memory, Store
from mcp_abridge.system import allocator, platform
from mcp_abridge.transports.aio import log_trouble
from mcp_abridge.transports.client.forward_proxy import ForwardProxy, forward_proxy
from mcp_abridge.transports.log import Level, Log
from mcp_abridge.transports.sidecar.access import LOOPBACK, Access, WatchedTokens
from mcp_abridge.transports.sidecar.metrics import Metrics
from mcp_abridge.transports.sidecar.reload import Configuration, Replacement, WatchedRules
from mcp_abridge.transports.sidecar.route import Handler, Mount, Route, Services
from mcp_abridge.transports.sidecar.sidecar import Sidecar
from mcp_abridge.transports.telemetry import Telemetry
from mcp_abridge.transports.workers.pool import Workers

if TYPE_CHECKING:
    from mcp_abridge.storage.recorder import Recorder

_UNUSABLE = 2
_LISTEN = ListenAddress("127.0.0.1:8808")
TOKEN_VARIABLE = "MCP_ABRIDGE_TOKEN"
"""The variable with the token that opens every route without one of its own."""

_NOT_ALLOWED = Hidden(code=-32601, message="{tool} is not allowed")


OPTIONS = (
    Option(
        "--listen",
        "address to listen on (default: 127.0.0.1:8808)",
        "HOST:PORT",
        config_model.listen_address,
    ),
    Option("--config", "YAML file of routes, limits and all else", "F", str),
    *options.by_name("rules", "allow_python", "budget", "scripts", "header", "deadline"),
    Option(
        "--store",
        "redis://HOST:PORT/N of all replicas (default: memory)",
        "URL",
        config_model.store_url,
    ),
    *options.by_name("ledger", "record", "record_size", "redact"),
    Option("--insecure", "let others than this machine connect without a token", default=False),
    *options.by_name("log_format", "verbose", "quiet"),
)

# Flags that replace a key at the top of a configuration, and that key.
KEYS = {
    "listen": "listen",
    "rules": "rules",
    "budget": "budget",
    "scripts": "scripts",
    "deadline": "deadline_seconds",
    "header": "headers",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.usage = f"{PROGRAM} serve [OPTION]... (URL | [--] COMMAND [ARG]... | --config F)"
    parser.allow_abbrev = False
    parser.add_argument("url", nargs="?", metavar="URL", help=argparse.SUPPRESS)
    options.add(parser, OPTIONS)
    parser.epilog = f"{options.VARIABLES} Clients must send the token in {TOKEN_VARIABLE}, if set."


def config_key(flag: str) -> str | None:
    """Return the key of a configuration that does what `flag` would do, or None.

    >>> config_key("--sessions"), config_key("--hosts"), config_key("--colour")
    ('limits.sessions', 'hosts', None)
    """
    key = flag[2:].replace("-", "_")
    if key in fields(config_model.LimitsSpec):
        return f"limits.{key}"
    return key if key in fields(RouteSpec) else None


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal. Returns 0 then, 2 if a file or an address is unusable.

    Raises AbridgeError if an option is.
    """
    top = _top(arguments, _upstream(arguments))
    level: Level = "error" if arguments.quiet else "debug" if arguments.verbose else "info"
    log = Log(level, arguments.log_format, dated=True)
    secrets = {TOKEN_VARIABLE, "MCP_ABRIDGE_STORE", *options.SECRETS}
    read = partial(_configuration, arguments, top, secrets, log)
    try:
        settings = read(())
        store, calls = _store(settings.store, settings.limits)
    except AbridgeError as error:
        for problem in error.problems if isinstance(error, RuleErrors) else (error,):
            log.error(str(problem))
        log.flush()
        return _UNUSABLE
    _prepare()
    metrics = Metrics(own_version())
    traces = telemetry(log)
    observe = metrics.observe if traces is None else partial(_observe, metrics, traces)
    meters = Meters(observe, metrics.warned)
    records: list[Ledger | Recorder | Telemetry] = []
    if arguments.ledger != "off":
        path = arguments.ledger or default_path()
        records.append(Ledger(path, meters, warn=log.warning, lose=metrics.unrecorded))
    workers = Workers()
    recorder = recording(arguments, log)
    records += [each for each in (recorder, traces) if each is not None]
    services = Services(
        meters, store, calls, workers, log, settings.limits, recorder, secrets, traces
    )
    handler = partial(_handler, services)
    try:
        mounts = [Mount(route, handler(route)) for route in settings.routes]
        sidecar = Sidecar(mounts, settings.limits, log, metrics)
        replacement = Replacement(sidecar, settings, read, handler, log)
        return asyncio.run(_serve(sidecar, replacement, log))
    finally:
        workers.close()
        for record in records:
            record.close()
        log.flush()


def _observe(metrics: Metrics, traces: Telemetry, row: Row, route: str) -> None:
    metrics.observe(row, route)
    traces.observe(row, route)


def _upstream(arguments: argparse.Namespace) -> config_model.Url | Command | None:
    command = arguments.command
    if command and "--" not in arguments.words and which(command[0]) is None:
        raise AbridgeError(
            f"{masked_words(command[:1])[0]!r} is neither a URL, such as http://server:3000/mcp, "
            "nor a program on the PATH; a command after -- is run in any case"
        )
    if arguments.url is not None:
        if command:
            raise AbridgeError("a server is a URL, or a command, not both")
        return config_model.url(arguments.url)
    if command and arguments.header and options.HEADER not in os.environ:
        raise AbridgeError(options.HEADER_TO_COMMAND)
    if not command and not arguments.config:
        raise AbridgeError("no server: give its URL, or write its command after --, or --config")
    return Command(tuple(command)) if command else None


def _top(
    arguments: argparse.Namespace, upstream: config_model.Url | Command | None
) -> dict[str, Any]:
    top: dict[str, Any] = {key: getattr(arguments, name) for name, key in KEYS.items()}
    top["upstream"] = upstream
    if top["rules"] is not None:
        top["rules"] = tuple(top["rules"])
    if top["headers"] is not None:
        top["headers"] = dict(config_model.header(line, os.environ) for line in top["headers"])
    if os.environ.get(TOKEN_VARIABLE):
        top["token_env"] = config_model.token_from_env(TOKEN_VARIABLE, os.environ)
    return {key: value for key, value in top.items() if value is not None}


def _config(file: str | None, top: Mapping[str, Any]) -> Config:
    if file is None:
        return Config((RouteSpec(path="/mcp", **top),))
    try:
        raw = content(file, MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RuleErrors([Problem(file, 0, 0, reason)]) from None
    whole, problems = config.read(file, raw, os.environ, top)
    if whole is None:
        raise RuleErrors(list(problems))
    return whole


def _configuration(
    arguments: argparse.Namespace,
    top: Mapping[str, Any],
    secrets: set[str],
    log: Log,
    served: Sequence[Route],
) -> Configuration:
    """Read what to serve, as it is now; `served` are the routes that are served already.

    What would have to listen elsewhere stays at its address, or is left out if it is new.
    The variables of tokens are added to `secrets`. Raises AbridgeError.
    """
    settings = _config(arguments.config, top)
    specs: list[RouteSpec] = []
    unopened: dict[str, None] = {}
    for spec in settings.routes:
        listen = spec.listen or _LISTEN
        if served and listen not in {route.listen for route in served}:
            unopened[listen] = None
            there = [route.listen for route in served if route.path == spec.path]
            if not there or (there[0], spec.path) in {(each.listen, each.path) for each in specs}:
                continue
            listen = ListenAddress(there[0])
        specs.append(replace(spec, listen=listen))
    tokens = [spec.token_env.name for spec in specs if spec.token_env is not None]
    # As the environment has them: Windows writes all names in capitals.
    secrets |= {os.environ.decodekey(os.environ.encodekey(name)) for name in tokens}
    routes = [_route(spec, log) for spec in specs]
    _require_tokens(routes, insecure=arguments.insecure)
    for route in routes:
        _proxy(route)
    _add_rules(routes, log, allow_python=arguments.allow_python)
    store = arguments.store or settings.store
    return Configuration(tuple(routes), store, settings.limits, tuple(unopened))


def _route(spec: RouteSpec, log: Log) -> Route:
    listen = spec.listen or _LISTEN
    upstream = spec.upstream
    assert upstream is not None
    hosts = spec.hosts or (LOOPBACK if listen.loopback else None)
    file = spec.token_file
    tokens = partial(tuple, spec.tokens) if file is None else WatchedTokens(file, log.warning)
    return Route(
        path=spec.path,
        upstream=upstream.command if isinstance(upstream, Command) else upstream,
        deadline=spec.deadline_seconds,
        auth=spec.auth or "none",
        access=Access(hosts=hosts, origins=spec.origins or (), tokens=tokens),
        headers=tuple((spec.headers or {}).items()),
        listen=listen,
        malformed_status=spec.malformed_status or 400,
        passes=spec.passes,
        spec=spec,
    )


def _require_tokens(routes: Sequence[Route], *, insecure: bool) -> None:
    for route in routes:
        if not (insecure or route.access.tokens() or ListenAddress(route.listen).loopback):
            raise AbridgeError(
                f"{route.path} on {route.listen} would be open to whoever can connect: give it a "
                f"token ({TOKEN_VARIABLE}, or token_file in --config), listen on 127.0.0.1, or say "
                "--insecure"
            )


def _add_rules(routes: Sequence[Route], log: Log, *, allow_python: bool) -> None:
    problems: dict[Problem, None] = {}

    @cache
    def read(names: tuple[str, ...]) -> WatchedRules:
        return WatchedRules(Watch(names, log.info, log.warning, allow_python=allow_python))

    for route in routes:
        spec, limit = route.spec, None
        if spec.tools is not None:
            name = f"route {route.path}"
            limit = RuleFile(name=name, expose=spec.tools, unexposed=_NOT_ALLOWED)
        try:
            if spec.rules == (NO_RULES,):
                route.select = Selection((), "off", log.info, limit)
                continue
            files = history = None
            if spec.rules is not None:
                watched = read(spec.rules)
                files, route.refresh = watched.files, watched.refresh
                history = RuleHistory(place(route.upstream), log.warning)
            route.select = Selection(
                files, spec.budget, log.info, limit, history=history, scripts=spec.scripts
            )
        except RuleErrors as errors:
            problems |= dict.fromkeys(errors.problems)
    if problems:
        raise RuleErrors(list(problems))


def _store(url: str | None, limits: config_model.LimitsSpec) -> tuple[Store, RecentCalls]:
    """Return the store, and the record of calls: replicas with a common store share it."""
    seconds = limits.snapshot_seconds
    if url in (None, config_model.MEMORY):
        memory = Memory(number=1000, size=limits.snapshots, seconds=seconds, ages=True)
        return memory, RecentCalls()
    from mcp_abridge.storage.redis import Redis

    store = Redis(str(url), seconds=ceil(seconds))
    calls = RecentCalls(store.claim, Event())
    Thread(target=calls.share, args=(store.remember,), name="calls", daemon=True).start()
    return store, calls


def _handler(shared: Services, route: Route) -> Handler:
    if isinstance(route.upstream, str):
        from mcp_abridge.transports.sidecar.url.route_handler import UrlRoute

        return UrlRoute(route, shared)
    from mcp_abridge.transports.sidecar.command.route_handler import CommandRoute

    return CommandRoute(route, shared)


def _prepare() -> None:
    """Raise the limit of descriptors, silence the log of libraries, and set up threads.

    Threads that run Python must neither hold up the event loop nor have memory arenas of their own.
    """
    allocator.share_arena()
    sys.setswitchinterval(0.001)  # until a thread yields to the others, 0.005 by default
    logging.getLogger().addHandler(logging.NullHandler())
    platform.descriptors(65_536)


async def _serve(sidecar: Sidecar, replacement: Replacement, log: Log) -> int:
    log_trouble(log.warning)
    # Where no thread can be started, that is told now; with little memory, a start may never end.
    await asyncio.get_running_loop().run_in_executor(None, int)
    hangup = asyncio.Event()
    sidecar.heed_signals(hangup.set)
    try:
        await sidecar.start()
    except AbridgeError as error:
        log.error(str(error))
        await sidecar.close()
        return _UNUSABLE
    for mount in sidecar.mounts:
        log.event("serving", **dict(_described(sidecar, mount.route)))
    sidecar.unready()
    replacing = asyncio.create_task(_replace(sidecar, replacement, hangup))
    await sidecar.until_signal()
    replacing.cancel()
    await sidecar.close()
    return 0


async def _replace(sidecar: Sidecar, replacement: Replacement, hangup: asyncio.Event) -> None:
    while True:
        await hangup.wait()
        hangup.clear()
        await replacement.apply()
        sidecar.unready()


def _proxy(route: Route) -> ForwardProxy | None:
    """Return the forward proxy before a route's server; AbridgeError if it cannot be used."""
    return forward_proxy(route.upstream, os.environ) if isinstance(route.upstream, str) else None


def _described(sidecar: Sidecar, route: Route) -> Iterator[tuple[str, Any]]:
    """Yield the facts of a route to log; not a command's arguments, which may be secret."""
    yield "url", f"http://{sidecar.address(route.listen)}{route.path}"
    upstream = route.upstream
    yield "upstream", masked_url(upstream) if isinstance(upstream, str) else upstream[0]
    if (proxy := _proxy(route)) is not None:
        yield "proxy", masked_url(proxy.url)
    if not route.passes:
        yield "rules", "bundled" if (rules := route.spec.rules) is None else ", ".join(rules)
    if route.spec.tools is not None:
        yield "tools", ", ".join(route.spec.tools)
    yield "token", "yes" if route.access.tokens() else "no"
