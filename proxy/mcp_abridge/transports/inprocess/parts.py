"""The parts that the sessions of one program share: rules, stored answers, earlier calls, counts.

Nothing is written to a file unless a ledger is named.
"""

import atexit
import logging
import os
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, TypeAlias, TypedDict

from mcp_abridge.document.printable import printable
from mcp_abridge.errors import did_you_mean_or_known
from mcp_abridge.ruleset.rule_set import RuleFile
from mcp_abridge.ruleset.selection import NO_RULES, Budget, Scripts, Selection
from mcp_abridge.ruleset.watch import Watch
from mcp_abridge.session.state import SessionState
from mcp_abridge.storage.calls import RecentCalls
from mcp_abridge.storage.ledger import Ledger
from mcp_abridge.storage.meter import Meters
from mcp_abridge.storage.snapshots import Memory

Path: TypeAlias = "str | os.PathLike[str]"
Rules: TypeAlias = "Path | Iterable[Path] | None"


class Options(TypedDict, total=False):
    """Options of both public classes, with the names, meanings and defaults of the wrapper's.

    `budget`: most bytes of a result without a rule, or "auto", "client", "off". `scripts`: "on" if
    answers go to scripts, whole. `allow_python`: the Python that rule files name may run.
    `snapshots`: most bytes of answers kept for views, for `snapshot_age` seconds after their last
    use. `ledger`: a file for the sizes of calls.
    """

    budget: Budget
    scripts: Scripts
    allow_python: bool
    snapshots: int
    snapshot_age: float
    ledger: Path


class Parts:
    """The shared parts, by the rules and options of a program; raises RuleErrors, TypeError.

    `rules` are files, folders of them or bundled names, "none", or None for the bundled file that
    fits the server.
    """

    def __init__(self, rules: Rules, options: Options) -> None:
        names = Options.__annotations__
        for name in options.keys() - names:
            raise TypeError(f"there is no option {name!r}{did_you_mean_or_known(name, names)}")
        self.log = _Lines(logging.getLogger("mcp_abridge"))
        self.store = Memory(
            size=options.get("snapshots", 256_000_000), seconds=options.get("snapshot_age", 1800.0)
        )
        self._select = self._selection(rules, options)
        self._meters, self._calls = Meters(), RecentCalls()
        if "ledger" in options:
            path = os.fspath(options["ledger"])
            ledger = Ledger(path, self._meters, warn=self.log.warning, recent=self._calls)
            atexit.register(ledger.close)

    def _selection(self, rules: Rules, options: Options) -> Selection:
        budget, scripts = options.get("budget", "auto"), options.get("scripts", "auto")
        several = [rules] if isinstance(rules, str | os.PathLike) else rules
        names = None if several is None else [os.fspath(name) for name in several]
        files: Callable[[], tuple[RuleFile, ...]] | tuple[RuleFile, ...] | None = None
        if names == [NO_RULES]:
            files, budget = (), "off"
        elif names is not None:
            python = options.get("allow_python", False)
            files = Watch(names, self.log.info, self.log.warning, allow_python=python).look
        return Selection(files, budget, self.log.info, environ=os.environ, scripts=scripts)

    def state(self) -> SessionState:
        """Return the state of a new session."""
        return SessionState(self._select, self._meters.of, self.log.warning, calls=self._calls)


class _Lines(logging.LoggerAdapter[logging.Logger]):
    """A logger to which the words of servers are no control characters."""

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        return printable(str(msg)), kwargs
