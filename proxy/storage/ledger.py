"""The ledger of the meters: names and sizes of calls in an SQLite file, never their content.

Invariant: no call waits for the ledger, and no call fails because of it. A separate thread drains
the meters, at once after a quiet second and else every second, in one transaction each time, so
that no reader ever sees a half-written row. Any error with the file ends the recording, with one
line in the log and a count of the calls that were not recorded. `proxy.storage.retention` limits
the size of the file.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from proxy.errors import AbridgeError
from proxy.storage import retention
from proxy.storage.meter import Meters, Row, Warnings

# The import of sqlite3 takes several milliseconds: just the writing thread and `report` need it.
if TYPE_CHECKING:
    import sqlite3

_DAY = 86_400
_AFTER_CALL = 0.05  # seconds from a call to its record: by then the response has been sent
_LONGEST_NAME = 200
_LOG_SIZE = 1 << 20  # bytes that the write-ahead log is cut to after it was larger

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}

_APPLICATION_ID = 0x6D616272  # "mabr": distinguishes a ledger from any other database

# Each migration leads from the version of its index to the next. Never edit a released one.
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE calls (
            time INTEGER NOT NULL,
            session TEXT NOT NULL,
            server TEXT,
            client TEXT,
            tool TEXT NOT NULL,
            rule TEXT,
            outcome TEXT NOT NULL,
            calls INTEGER NOT NULL,
            wire_before INTEGER NOT NULL,
            wire_after INTEGER NOT NULL,
            visible_before INTEGER NOT NULL,
            visible_after INTEGER NOT NULL
        )""",
        "CREATE INDEX calls_time ON calls (time)",
    ),
    (
        """CREATE TABLE warnings (
            time INTEGER NOT NULL,
            session TEXT NOT NULL,
            server TEXT,
            client TEXT,
            tool TEXT NOT NULL,
            rule TEXT NOT NULL,
            kind TEXT NOT NULL,
            count INTEGER NOT NULL
        )""",
        "CREATE INDEX warnings_time ON warnings (time)",
    ),
)
_WITH_WARNINGS = 2  # the first version with a table of warnings


def _insertion(table: str, fields: Sequence[str]) -> str:
    # Columns by name: a running process can still write after a later version added a column.
    columns = ("time", "session", "server", "client", *fields)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


_INSERT = _insertion("calls", Row.__struct_fields__)
_INSERT_WARNINGS = _insertion("warnings", Warnings.__struct_fields__)

_BY = {
    "tool": "tool",
    "server": "server",
    "rule": "rule",
    "client": "client",
    "day": "date(time, 'unixepoch', 'localtime')",
}
BY = tuple(_BY)
"""The keys that `rows` can sum by."""


class LedgerError(AbridgeError):
    """A ledger that cannot be read or written; the message names the file and the reason."""


class Figures(Struct, frozen=True):
    """The sums of one tool, server, rule, client or day; `name` is None if it was not known.

    `shaped` counts the calls whose response a rule or the budget made, `failed` the calls whose
    rule failed. Shadow rules save nothing: their calls count with the sizes that were really sent,
    and `shadow_saves` is the number of visible bytes that they would have saved.
    """

    name: str | None
    calls: int
    shaped: int
    failed: int
    wire_before: int
    wire_after: int
    visible_before: int
    visible_after: int
    shadow_saves: int


class Counted(Struct, frozen=True):
    """The number of warnings of one kind by one rule."""

    rule: str
    kind: str
    count: int


def default_path() -> str:
    """Return the path of the ledger if no option sets it: in the XDG state folder."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # the XDG specification says to ignore relative paths
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "mcp-abridge", "ledger.sqlite3")


class Ledger:
    """The recorder of the meters' counts; it runs in a thread until it is closed.

    `warn` receives one line with the reason if recording stops, `lose` the number of calls that
    were not recorded, each time. `interval` is the least time between two writes, `patience` the
    time that a write waits for another process's lock, both in seconds. Clients kill a process at
    the end of a session: it loses calls made less than an `interval` after a write, but never its
    first call.
    """

    def __init__(
        self,
        path: str,
        meters: Meters,
        *,
        warn: Callable[[str], None],
        lose: Callable[[int], None] | None = None,
        interval: float = 1.0,
        patience: float = 5.0,
    ) -> None:
        self.lost = 0
        """The number of calls that could not be recorded."""
        self._path = path
        self._meters = meters
        self._warn = warn
        self._lose = lose
        self._interval = interval
        self._patience = patience
        self._session = os.urandom(8).hex()
        self._book: LedgerFile | None = None
        self._broken = False
        self._closing = Event()
        self._thread = Thread(target=self._run, name="ledger", daemon=True)
        self._thread.start()

    def close(self, timeout: float = 2.0) -> bool:
        """Record the remaining counts and end the thread; False if that exceeds `timeout`."""
        self._closing.set()
        self._meters.counted.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            self._meters.counted.wait()
            if self._closing.wait(_AFTER_CALL):
                break
            self._meters.counted.clear()
            self._flush()
            if self._closing.wait(self._interval):
                break
        self._flush()
        self._close_book()

    def _flush(self) -> None:
        counted = self._meters.drain()
        warned = self._meters.drain_warnings()
        if not (counted or warned):
            return
        if not self._broken:
            try:
                if self._book is None:
                    self._book = LedgerFile(self._path, self._patience)
                self._book.write(counted, self._session, warned)
                return
            # Not just the known errors of SQLite: recording must never end a call.
            except Exception as error:
                self._broken = True
                self._close_book()  # no lock may outlive the recording: other processes still write
                reason = str(error) or type(error).__name__
                self._warn(f"ledger {self._path}: recording stopped: {reason}; calls go on")
        lost = sum(row.calls for _, _, row in counted)
        self.lost += lost
        if self._lose is not None:
            self._lose(lost)

    def _close_book(self) -> None:
        if self._book is not None:
            self._book.close()
            self._book = None


class LedgerFile:
    """An open ledger file, for the one thread that opened it.

    Creates missing folders and the file, accessible to their owner alone under any umask. The part
    of the file in use has at most `most` bytes and the last write. Raises LedgerError, OSError or
    sqlite3.Error.
    """

    def __init__(
        self,
        path: str,
        patience: float = 5.0,
        *,
        most: int = retention.MOST_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        import sqlite3

        self._most = most
        self._clock = clock
        self._pruned = clock()
        _create(path)
        self._db = sqlite3.connect(path, timeout=patience, isolation_level=None)
        try:
            self._settle(time.monotonic() + patience)
        except BaseException:
            self._db.close()
            raise

    def _settle(self, deadline: float) -> None:
        import sqlite3

        while True:
            try:
                _settle(self._db, self._pruned)
                return
            except sqlite3.OperationalError as error:
                # SQLite does not wait by itself if two processes switch a new file to WAL.
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def write(
        self,
        rows: Sequence[tuple[str | None, str | None, Row]],
        session: str,
        warnings: Sequence[tuple[str | None, str | None, Warnings]] = (),
    ) -> None:
        """Add `rows` and `warnings`, each with the names of its server and client: all or none."""
        now = int(self._clock())
        values = [
            (
                now,
                session,
                _storable(server),
                _storable(client),
                _storable(row.tool),
                _storable(row.rule),
                row.outcome,
                row.calls,
                row.wire_before,
                row.wire_after,
                row.visible_before,
                row.visible_after,
            )
            for server, client, row in rows
        ]
        warned = [
            (
                now,
                session,
                _storable(server),
                _storable(client),
                _storable(each.tool),
                _storable(each.rule),
                _storable(each.kind),
                each.count,
            )
            for server, client, each in warnings
        ]
        with _transaction(self._db):
            if now - self._pruned > _DAY:
                self._pruned = now
                retention.prune(self._db, now)
            if retention.crowded(self._db, self._most):
                retention.make_room(self._db, now, self._most)
            self._db.executemany(_INSERT, values)
            self._db.executemany(_INSERT_WARNINGS, warned)

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _create(path: str) -> None:
    """Create an empty file if there is none, and its folders."""
    folder = os.path.dirname(path)
    missing = []
    while folder and not os.path.exists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(each, 0o700)
            os.chmod(each, 0o700)  # the umask may have removed some of these bits
    _check_regular(path)
    with suppress(FileExistsError):
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            os.chmod(path, 0o600)
        finally:
            os.close(file)


def _check_regular(path: str) -> None:
    """Raise LedgerError if `path` is no regular file: SQLite would wait for a pipe's writer."""
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            kind = _KINDS.get(stat.S_IFMT(mode), "a device")
            raise LedgerError(f"{kind}, not a file; --ledger takes the path of a file")


@contextmanager
def _transaction(db: "sqlite3.Connection") -> Iterator[None]:
    """Commit the statements inside, or roll all of them back."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # if the disk is full, SQLite may have rolled back by itself
            db.execute("ROLLBACK")
        raise


def _settle(db: "sqlite3.Connection", now: float) -> None:
    """Migrate a new or older file to this version, in WAL mode and without outdated rows."""
    with _transaction(db):
        _check_kind(db)
        (version,) = db.execute("PRAGMA user_version").fetchone()
        for migration in _MIGRATIONS[version:]:
            for statement in migration:
                db.execute(statement)
        if version < len(_MIGRATIONS):
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {len(_MIGRATIONS)}")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA cache_size = -256")  # kB: a writer of small rows needs no more
    db.execute(f"PRAGMA journal_size_limit = {_LOG_SIZE}")
    db.execute("PRAGMA temp_store = MEMORY")  # a writable temporary folder may not exist
    retention.prune(db, now)


def _check_kind(db: "sqlite3.Connection") -> None:
    """Raise LedgerError for another program's database, or a ledger of a later version."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (objects,) = db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    if application != _APPLICATION_ID and (application or version or objects):
        raise LedgerError("the file is a database of another program")
    if version > len(_MIGRATIONS):
        raise LedgerError(
            f"the file has version {version}, from a later mcp-abridge; "
            f"this one knows {len(_MIGRATIONS)}"
        )


def rows(path: str, since: float | None = None, by: str = "tool") -> list[Figures]:
    """Return the sums of the ledger at `path`, the most bytes saved first.

    `since` is a time in unix seconds (None: no limit), `by` one of BY; days are in order. Raises
    LedgerError if the file is missing or cannot be read.
    """
    order = "name" if by == "day" else "seen_before - seen_after DESC, seen_before DESC, name"
    found = _read(
        path,
        f"""SELECT {_BY[by]} AS name, SUM(calls),
            SUM(CASE WHEN outcome IN ('shaped', 'page', 'view') THEN calls ELSE 0 END),
            SUM(CASE WHEN outcome = 'failed' THEN calls ELSE 0 END),
            SUM(wire_before),
            SUM(CASE WHEN outcome = 'shadow' THEN wire_before ELSE wire_after END),
            SUM(visible_before) AS seen_before,
            SUM(CASE WHEN outcome = 'shadow' THEN visible_before ELSE visible_after END)
                AS seen_after,
            SUM(CASE WHEN outcome = 'shadow' THEN visible_before - visible_after ELSE 0 END)
        FROM calls WHERE time >= ? GROUP BY name ORDER BY {order}""",
        since,
    )
    return [Figures(*figures) for figures in found]


def warnings(path: str, since: float | None = None) -> list[Counted]:
    """Return the warnings in the ledger at `path`, by rule and kind, the most frequent first.

    A ledger that a process of an earlier version wrote has none. `since` and the errors are the
    same as for `rows`.
    """
    found = _read(
        path,
        """SELECT rule, kind, SUM(count) AS times FROM warnings WHERE time >= ?
        GROUP BY rule, kind ORDER BY times DESC, rule, kind""",
        since,
        version=_WITH_WARNINGS,
    )
    return [Counted(*each) for each in found]


def _read(path: str, query: str, since: float | None, version: int = 1) -> list[tuple[Any, ...]]:
    """Return the rows of `query`; none if the ledger has an earlier version than `version`."""
    import sqlite3
    from urllib.parse import quote

    if not os.path.exists(path):
        raise LedgerError(f"{path}: no such file")
    try:
        _check_regular(path)
        db = sqlite3.connect(
            f"file:{quote(path)}?mode=ro", uri=True, timeout=5, isolation_level=None
        )
        try:
            db.execute("BEGIN")  # one view of the file, also while others create or migrate it
            _check_kind(db)
            (found,) = db.execute("PRAGMA user_version").fetchone()
            if found < version:  # 0: created by a process that has not written yet
                return []
            return db.execute(query, (-1 if since is None else int(since),)).fetchall()
        finally:
            db.close()
    except (OSError, sqlite3.Error, LedgerError) as error:
        raise LedgerError(f"{path}: {error}") from error


def _storable(name: str | None) -> str | None:
    # UTF-8 has no lone surrogates, and a sender may choose a name of any length.
    return None if name is None else name[:_LONGEST_NAME].encode("utf-8", "replace").decode()
