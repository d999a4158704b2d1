"""`run`: start the server, load everything else while it boots, then join client and server.

A server behind a URL is not started; the rules load during its first request.
"""

import os
import sys

from mcp_abridge.system import platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import NoReturn

    from mcp_abridge.cli.options import Options
    from mcp_abridge.ruleset.rule_set import RuleSet
    from mcp_abridge.ruleset.selection import Selection
    from mcp_abridge.session.session import Session
    from mcp_abridge.storage.ledger import Ledger
    from mcp_abridge.storage.recorder import Recorder
    from mcp_abridge.storage.snapshots import Store
    from mcp_abridge.transports.log import Level, Log
    from mcp_abridge.transports.telemetry import Telemetry

    Record = Ledger | Recorder | Telemetry

_BAD_RULES = 2
_TERMINAL = (
    "an MCP client is expected on stdin, which is a terminal; this command belongs into a client's "
    "configuration. `mcp-abridge demo` shows it at work; Ctrl-C ends it"
)


def run(options: "Options", first_word: str = "") -> "NoReturn":
    """Wrap the server until either side ends, then exit with the server's code.

    That is 128 + n for a signal, 127 if the server could not be started, 2 if the rules cannot be
    used. `first_word` of the command line may be a mistyped verb.
    """
    _open_standard()
    mask = platform.hold_signals()
    if options.url is not None:
        _bridge(options, options.url)
    from mcp_abridge.cli.options import SECRETS

    for name in SECRETS:
        os.environ.pop(name, None)
    cause = None
    try:
        server = platform.spawn(options.command, mask)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        from mcp_abridge.document.masks import masked_words

        cause = f"{masked_words(options.command[:1])[0]!r} cannot be started: {reason}"
        if "://" in options.command[0]:
            cause += "; a URL stands without --"
        elif options.command[0] == first_word:
            from mcp_abridge.cli import VERBS
            from mcp_abridge.errors import did_you_mean

            advice = did_you_mean(first_word, VERBS) or (
                ", which --help lists, or a URL, which begins with http:// or https://"
            )
            cause += f"; nor is it a verb of mcp-abridge{advice}"
        server = platform.absent()
    log, rules, records, session = _session(options)
    from mcp_abridge.transports.stdio.relay import Relay

    if cause is not None:
        log.error(cause)
    else:
        log.debug(f"started {options.command[0]!r} as process {server.pid}")
        if not server.guarded:
            log.warning(platform.UNGUARDED)
    relay = Relay(server, session, log, options.max_message, cause)
    rules.refuse = relay.refuse
    _end(rules, records, log, relay.run)


def _bridge(options: "Options", url: str) -> "NoReturn":
    """Join the client and a server behind a URL until either ends, then exit.

    The exit code is as above, or 1 if the server cannot be reached or has ended the session.
    """
    log, rules, records, session = _session(options)
    from mcp_abridge.transports.client.bridge import Bridge
    from mcp_abridge.transports.client.endpoint import HttpClient
    from mcp_abridge.transports.driver import Driver
    from mcp_abridge.transports.workers.pool import Workers

    # No other session has to wait for a large document. Further messages of this client are
    # handled while a thread shapes a document that takes very long.
    workers = Workers(processes=0, max_here=sys.maxsize)
    driver = Driver(session, workers, log.write_noise)
    endpoint = HttpClient(url, options.max_message, options.headers)
    bridge = Bridge(endpoint, driver, log, options.max_message)
    rules.refuse = bridge.refuse
    _end(rules, records, log, bridge.run)


def _store(options: "Options", log: "Log") -> "Store":
    if options.store is not None:
        from mcp_abridge.errors import StoreError
        from mcp_abridge.storage.folder import Folder

        try:
            return Folder(options.store, size=options.snapshots, seconds=options.snapshot_age)
        except StoreError as error:
            log.error(f"{error}; this session keeps its answers in memory")
    from mcp_abridge.storage.snapshots import Memory

    return Memory(size=options.snapshots, seconds=options.snapshot_age, ages=True)


def _session(options: "Options") -> "tuple[Log, _Rules, list[Record], Session]":
    _import_msgspec()

    from functools import partial

    from mcp_abridge.session.session import Session
    from mcp_abridge.session.state import SessionState
    from mcp_abridge.storage.calls import RecentCalls
    from mcp_abridge.storage.ledger import Ledger, claim_call, default_path, secret_of
    from mcp_abridge.storage.meter import Meters
    from mcp_abridge.transports.log import Log

    level: Level = "error" if options.quiet else "debug" if options.verbose else "info"
    log = Log(level, options.log_format)
    if os.isatty(0):
        log.info(_TERMINAL)
    traces = telemetry(log)
    meters = Meters(None if traces is None else traces.observe)
    rules, calls = _Rules(options, log), RecentCalls()
    records: list[Record] = []
    if options.ledger != "off":
        path = options.ledger or default_path()
        elsewhere = partial(claim_call, path)
        calls = RecentCalls(elsewhere, meters.wake_drain, secret=partial(secret_of, path))
        records.append(Ledger(path, meters, warn=log.warning, recent=calls))
    scope, deadline = _scope(options), options.deadline
    store = _store(options, log)
    state = SessionState(
        rules,
        meters.of,
        log.warning,
        store,
        scope=scope,
        calls=calls,
        deadline=deadline,
        store_failed=log.error,
    )
    if (recorder := recording(options, log)) is not None:
        state.recorder = recorder.session()
        records.append(recorder)
    if traces is not None:
        state.tracer = traces.tracer(options.url or tuple(options.command))
        records.append(traces)
    return log, rules, records, Session(state)


def telemetry(log: "Log") -> "Telemetry | None":
    """Return the sender of spans and metrics; None if the environment names no place for them."""
    if not any(name.startswith("OTEL_") for name in os.environ):
        return None
    from mcp_abridge.cli import own_version
    from mcp_abridge.transports.telemetry import SIGNALS, Telemetry, configured

    return Telemetry(log, own_version) if any(map(configured, SIGNALS)) else None


def recording(settings: "Options | Namespace", log: "Log") -> "Recorder | None":
    """Return the recorder that `--record` asks for."""
    if not settings.record:
        return None
    from mcp_abridge.storage.recorder import Recorder
    from mcp_abridge.storage.redaction import Redaction

    masks = Redaction(settings.redact or ())
    return Recorder(settings.record, settings.record_size, masks, log.error)


def _scope(options: "Options") -> str:
    """Return a text that is the same for each process that wraps a server for the same account.

    It stays in this process, since it may hold secrets.
    """
    from mcp_abridge.cli.options import HEADER, OPTIONS
    from mcp_abridge.storage import scope

    account: object = options.store_scope
    if account is None and options.url is not None:
        account = [str(part) for header in options.headers for part in header]
    elif account is None:
        # Another wrapper within the command would send that header.
        own = {option.variable for option in OPTIONS} - {HEADER}
        account = scope.account(os.environ, own)
    return repr((scope.place(options.url or options.command), account))


def _end(
    rules: "_Rules", records: "list[Record]", log: "Log", relay: "Callable[[], int]"
) -> "NoReturn":
    from threading import Thread

    loading = Thread(target=rules.load, name="rules", daemon=True)
    loading.start()
    code = relay()
    # The server may end before the rules are read; their problems are logged all the same.
    loading.join(1.0)
    if rules.failed and code == 0:
        code = _BAD_RULES
    for each in records:
        each.close()
    log.flush()
    # Do not join threads: one may wait for a client that keeps stdin open. All output is written.
    os._exit(code)


class _Rules:
    """The rules of the session; callers wait until the rule files are read."""

    def __init__(self, options: "Options", log: "Log") -> None:
        from threading import Event

        self._options = options
        self._log = log
        self._selection: Selection | None = None
        self._loaded = Event()
        self.failed = False
        self.refuse: Callable[[int, str], None]
        """Ends the session with an exit code and a reason; called if the rules cannot be used."""

    def load(self) -> None:
        try:
            self._selection = self._read()
        except Exception as error:  # callers would wait for the rules for ever
            self._fail(error)
        finally:
            self._loaded.set()

    def _read(self) -> "Selection":
        from mcp_abridge.ruleset.selection import NO_RULES, Selection
        from mcp_abridge.ruleset.watch import Watch
        from mcp_abridge.storage.rule_history import RuleHistory
        from mcp_abridge.storage.scope import place

        names, allowed = self._options.rules, self._options.allow_python
        log, warn, budget = self._log.info, self._log.warning, self._options.budget
        scripts = self._options.scripts
        if names == [NO_RULES]:
            return Selection((), "off", log)
        files = history = None
        if names is not None:
            if allowed:
                # Stdout carries only messages, so output of rules' Python goes to stderr.
                sys.stdout = sys.stderr
            files = Watch(names, log, warn, allow_python=allowed).look
            history = RuleHistory(place(self._options.url or self._options.command), warn)
        return Selection(files, budget, log, environ=os.environ, history=history, scripts=scripts)

    def __call__(
        self, server: str | None, client: str | None, version: str | None = None
    ) -> "RuleSet":
        # On the path of every tool call: do not wait if the rules are loaded.
        if self._selection is None:
            self._loaded.wait()
        if self._selection is None:
            from mcp_abridge.errors import RuleErrors

            raise RuleErrors([])
        try:
            return self._selection(server, client, version)
        except Exception as error:
            from mcp_abridge.errors import RuleErrors

            if isinstance(error, RuleErrors):
                self._fail(error)
            raise

    def _fail(self, error: Exception) -> None:
        from mcp_abridge.errors import RuleErrors

        self.failed = True
        lines = [f"{RuleErrors.brief}: {type(error).__name__}: {error}"]
        for line in error.problems if isinstance(error, RuleErrors) else lines:
            self._log.error(str(line))
        self.refuse(_BAD_RULES, RuleErrors.brief)


def _open_standard() -> None:
    """Open /dev/null in place of a missing standard stream; a pipe would get its descriptor."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _import_msgspec() -> None:
    # msgspec imports typing_extensions, which takes 8 ms, for names that Python 3.11 has itself.
    name = "typing_extensions"
    absent = name not in sys.modules
    if absent:
        sys.modules[name] = None  # type: ignore[assignment]
    import msgspec.json  # noqa: F401

    if absent:
        del sys.modules[name]
