"""The parts that the sessions of one program share: rules, stored answers, earlier calls, counts.

Nothing is written to a file unless a ledger or a store is named.
"""

import atexit
import logging
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias, TypedDict

from mcp_abridge.document.printable import printable
from mcp_abridge.document.sizes import LEAST_BOUND
from mcp_abridge.errors import did_you_mean_or_known
from mcp_abridge.ruleset.rule_set import RuleFile
from mcp_abridge.ruleset.selection import NO_RULES, Budget, Scripts, Selection
from mcp_abridge.ruleset.watch import Watch
from mcp_abridge.session.state import SessionState
from mcp_abridge.storage.calls import RecentCalls
from mcp_abridge.storage.folder import Folder
from mcp_abridge.storage.ledger import Ledger, claim_call, secret_of
from mcp_abridge.storage.meter import Meters
from mcp_abridge.storage.snapshots import Memory, Store

Path: TypeAlias = str | os.PathLike[str]
Rules: TypeAlias = Path | Iterable[Path] | None

_BUDGETS = ("auto", "client", "off")


class AbridgeOptions(TypedDict, total=False):
    """Options of both public classes, with the names, meanings and defaults of the wrapper's.

    `budget`: most bytes of a result without a rule, or "auto", "client", "off". `scripts`: "on" if
    answers go to scripts, whole. `allow_python`: the Python that rule files name may run.
    `snapshots`: most bytes of answers kept for views, for `snapshot_age` seconds after their last
    use; `store`: a folder of them that the processes of one program share. `ledger`: a file for the
    sizes of calls.
    """

    budget: Budget
    scripts: Scripts
    allow_python: bool
    snapshots: int
    snapshot_age: float
    store: Path
    ledger: Path


def new_states(rules: Rules, options: AbridgeOptions) -> Callable[[], SessionState]:
    """Return the function that makes the state of a session; all of these share the parts.

    `rules` are files, folders of them or bundled names, "none", or None for the bundled file that
    fits the server. Raises RuleErrors, StoreError, TypeError, ValueError.
    """
    names = AbridgeOptions.__annotations__
    for name in options.keys() - names:
        raise TypeError(f"there is no option {name!r}{did_you_mean_or_known(name, names)}")
    log = logging.getLogger("mcp_abridge")
    log.addFilter(_clean)
    select = _selection(rules, options, log)
    size, seconds = options.get("snapshots", 256_000_000), options.get("snapshot_age", 1800.0)
    folder = options.get("store")
    kind = Memory if folder is None else partial(Folder, os.fspath(folder))
    store: Store = kind(size=size, seconds=seconds)
    meters = Meters()
    # Without a ledger, no process knows which calls another one has made.
    calls = None if "store" in options else RecentCalls()
    if "ledger" in options:
        path = os.fspath(options["ledger"])
        elsewhere, wake = partial(claim_call, path), meters.wake_drain
        calls = RecentCalls(elsewhere, wake, secret=partial(secret_of, path))
        atexit.register(Ledger(path, meters, warn=log.warning, recent=calls).close)
    return lambda: SessionState(
        select, meters.of, log.warning, store, calls=calls, store_failed=log.error
    )


def _selection(rules: Rules, options: AbridgeOptions, log: logging.Logger) -> Selection:
    budget, scripts = options.get("budget", "auto"), options.get("scripts", "auto")
    if budget not in _BUDGETS and (type(budget) is not int or budget < LEAST_BOUND):
        words = f"neither {LEAST_BOUND} bytes or more nor {', '.join(_BUDGETS)}"
        raise ValueError(f"budget: {budget!r} is {words}")
    several = [rules] if isinstance(rules, str | os.PathLike) else rules
    names = None if several is None else [os.fspath(name) for name in several]
    files: Callable[[], tuple[RuleFile, ...]] | tuple[RuleFile, ...] | None = None
    if names == [NO_RULES]:
        files, budget = (), "off"
    elif names is not None:
        python = options.get("allow_python", False)
        files = Watch(names, log.info, log.warning, allow_python=python).look
    return Selection(files, budget, log.info, environ=os.environ, scripts=scripts)


def _clean(record: logging.LogRecord) -> bool:
    record.msg = printable(str(record.msg))  # the words of servers are no control characters
    return True
