"""The ledger of the meters: sums of calls in an SQLite file, by minute; never their content.

Beside the sums, it has hashes of the calls of the last hour, which all processes of a user share.

Invariant: no call waits for the ledger, and no call fails because of it. Any error with the file
ends the recording, with one line in the log and a count of the calls that were not recorded. The
pages in use take at most MAX_BYTES plus one flush.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from threading import Event, Thread
from typing import TYPE_CHECKING

from msgspec.structs import fields

from mcp_abridge.errors import AbridgeError
from mcp_abridge.storage import calls
from mcp_abridge.storage.calls import RecentCalls
from mcp_abridge.storage.meter import Definitions, Looks, Meters, Row, Tally, Warnings, label
from mcp_abridge.storage.scope import secret
from mcp_abridge.system import platform

# The import of sqlite3 takes several milliseconds: just the writing thread and `report` need it.
if TYPE_CHECKING:
    import sqlite3

KEPT_DAYS = 400
MAX_BYTES = 16 << 20

_DAY = 86_400
_AFTER_CALL = 0.01  # seconds from a call to its record: by then the response has been sent
_FIRST_INTERVAL = 0.03  # seconds; doubled after each write: some clients kill a short session
_LOG_SIZE = 1 << 20  # bytes that the write-ahead log is cut to after it was larger

_NAME = ("mcp-abridge", "ledger.sqlite3")
_APPLICATION_ID = 0x6D616272  # "mabr": distinguishes a ledger from any other database
_VERSION = 5

# One table for each kind of counts: the time and the text fields are its key, int fields are sums.
# A further table changes no version: other versions neither read nor write it.
_TABLES: dict[str, type[Tally]] = {
    "calls": Row,
    "warnings": Warnings,
    "definitions": Definitions,
    "looks": Looks,
}
_SUMS = {
    table: [field.name for field in fields(kind) if field.type is int]
    for table, kind in _TABLES.items()
}
_KEYS = {
    table: [name for name in kind.__struct_fields__ if name not in _SUMS[table]]
    for table, kind in _TABLES.items()
}
_LARGEST = "largest"  # of several rows the maximum, not the sum
DATE = "date(time, 'unixepoch', 'localtime')"


class LedgerError(AbridgeError):
    """A ledger that cannot be read or written; the message names the file and the reason."""


def default_path() -> str:
    """Return the path of the ledger if no option sets it: in the XDG state folder."""
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification says to ignore relative paths.
    return os.path.join(state, *_NAME) if os.path.isabs(state) else home_path()


def home_path() -> str:
    """Return the default path for a process without XDG_STATE_HOME."""
    return os.path.join(platform.state_folder(), *_NAME)


class Ledger:
    """The recorder of the meters' counts; it runs in a thread until it is closed.

    `recent` are the calls whose hashes it shares with other processes. `warn` receives one line
    with the reason if recording stops, `lose` the number of calls that were not recorded, each
    time. `interval` is the time between two writes, shorter at first; `patience` is the time that a
    write waits for another process's lock, both in seconds.
    """

    def __init__(
        self,
        path: str,
        meters: Meters,
        *,
        warn: Callable[[str], None],
        recent: RecentCalls | None = None,
        lose: Callable[[int], None] | None = None,
        interval: float = 1.0,
        patience: float = 5.0,
    ) -> None:
        self.unrecorded = 0
        """The number of calls that could not be recorded."""
        self._path = path
        self._meters = meters
        self._warn = warn
        self._recent = recent
        self._lose = lose
        self._interval = interval
        self._patience = patience
        self._file: LedgerFile | None = None
        self._broken = False
        self._closing = Event()
        self._thread = Thread(target=self._run, name="ledger", daemon=True)
        self._thread.start()

    def close(self, timeout: float = 2.0) -> bool:
        """Record the remaining counts and end the thread; False if that exceeds `timeout`."""
        self._closing.set()
        self._meters.wake_drain.set()
        self._thread.join(timeout)
        if self.unrecorded:
            self._warn(f"calls that the ledger did not record: {self.unrecorded}")
        return not self._thread.is_alive()

    def _run(self) -> None:
        interval = min(_FIRST_INTERVAL, self._interval)
        while True:
            self._meters.wake_drain.wait()
            if self._closing.wait(_AFTER_CALL):
                break
            self._meters.wake_drain.clear()
            counted = self._flush()
            # A call that has no answer yet must not delay the record of its answer.
            if self._closing.wait(interval if counted else 0.0):
                break
            interval = min(2 * interval, self._interval) if counted else interval
        self._flush()
        if self._file is not None:
            self._file.close()

    def _flush(self) -> bool:
        """Record what there is; return True if there were answered calls."""
        rows = self._meters.drain(Row)
        kinds = (kind for kind in _TABLES.values() if kind is not Row)
        others = [tally for kind in kinds for tally in self._meters.drain(kind)]
        recent = set() if self._recent is None else self._recent.drain()
        if not (rows or others or recent):
            return False
        if not self._broken:
            try:
                if self._file is None:
                    self._file = LedgerFile(self._path, self._patience)
                self._file.write([*rows, *others], recent)
                return bool(rows)
            # Not just the known errors of SQLite: recording must never end a call.
            except Exception as error:
                self._broken = True
                if self._file is not None:
                    self._file.close()  # no lock may outlive the recording: others still write
                reason = str(error) or type(error).__name__
                self._warn(f"ledger {self._path}: recording stopped: {reason}; calls go on")
        lost_calls = sum(row.calls for row in rows)
        self.unrecorded += lost_calls
        if self._lose is not None:
            self._lose(lost_calls)
        return True


class LedgerFile:
    """An open ledger file, for the one thread that opened it; only its owner has access.

    The pages in use have at most `max_bytes` and the last write. Raises LedgerError, OSError or
    sqlite3.Error.
    """

    def __init__(
        self,
        path: str,
        patience: float = 5.0,
        *,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        import sqlite3

        self._max_bytes, self._clock = max_bytes, clock
        self._last_prune = 0  # when rows were last deleted for their age
        _create(path)
        self._db = sqlite3.connect(path, timeout=patience, isolation_level=None)
        deadline = time.monotonic() + patience
        while True:
            try:
                _prepare(self._db)
                return
            except BaseException as error:
                # SQLite does not wait by itself if two processes switch a new file to WAL.
                locked = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
                if not locked or time.monotonic() > deadline:
                    self._db.close()
                    raise
                time.sleep(0.01)

    def write(self, counts: Sequence[Tally], recent: Iterable[bytes] = ()) -> None:
        """Add to the sums of this minute, and to the hashes of recent calls: all or none."""
        now = int(self._clock())
        with self._db as db:
            db.execute("BEGIN IMMEDIATE")
            if now - self._last_prune > _DAY:
                self._last_prune = now
                for table in _TABLES:
                    db.execute(f"DELETE FROM {table} WHERE time < ?", (now - KEPT_DAYS * _DAY,))
            if _used_bytes(db) > self._max_bytes:
                _make_room(db, now, self._max_bytes // 2)
            for table, kind in _TABLES.items():
                _add(db, table, now, [each for each in counts if isinstance(each, kind)])
            _forget_calls(db, now)
            calls = ((call, now) for call in recent)
            db.executemany("INSERT OR REPLACE INTO recent VALUES (?, ?)", calls)

    def claim(self, call: bytes) -> bool:
        """Return True, and remember the call with this hash, if it is not remembered."""
        now = int(self._clock())
        with self._db as db:
            db.execute("BEGIN IMMEDIATE")
            _forget_calls(db, now)
            claim = "INSERT OR IGNORE INTO recent VALUES (?, ?)"
            return db.execute(claim, (call, now)).rowcount == 1

    def close(self) -> None:
        self._db.close()


def _create(path: str) -> None:
    for at, character in enumerate(path):
        if at and character == os.sep:  # the mode is for the last folder alone
            os.makedirs(path[:at], mode=0o700, exist_ok=True)
    check_regular(path)
    os.close(os.open(path, os.O_CREAT, 0o600))


def check_regular(path: str) -> None:
    """Raise LedgerError if `path` is no regular file: SQLite would wait for a pipe's writer."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise LedgerError("not a regular file; --ledger takes the path of one")


def _prepare(db: "sqlite3.Connection") -> None:
    db.execute("PRAGMA temp_store = MEMORY")  # a writable temporary folder may not exist
    with db:
        db.execute("BEGIN IMMEDIATE")
        new = is_new(db)
        for table, keys in _KEYS.items():
            key = ", ".join(("time", *keys))
            columns = [f"{each} NOT NULL" for each in ("time", *keys)]
            columns += [f"{each} INTEGER NOT NULL" for each in _SUMS[table]]
            db.execute(
                f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)}, PRIMARY KEY ({key}))"
                " WITHOUT ROWID"
            )
        if new:
            db.execute("CREATE TABLE recent (call BLOB UNIQUE, time INTEGER NOT NULL)")
            db.execute("CREATE INDEX recent_time ON recent (time)")
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {_VERSION}")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA cache_size = -256")  # kB: a writer of small rows needs no more
    db.execute(f"PRAGMA journal_size_limit = {_LOG_SIZE}")


def _add(db: "sqlite3.Connection", table: str, now: int, counts: Iterable[Tally]) -> None:
    keys, columns = ", ".join(_KEYS[table]), [*_KEYS[table], *_SUMS[table]]
    sums = {each: f"{each} + excluded.{each}" for each in _SUMS[table]}
    if _LARGEST in sums:
        sums[_LARGEST] = f"MAX({_LARGEST}, excluded.{_LARGEST})"
    added = ", ".join(f"{each} = {sum}" for each, sum in sums.items())
    minute = now // 60 * 60
    db.executemany(
        f"""INSERT INTO {table} (time, {", ".join(columns)}) VALUES (?{", ?" * len(columns)})
        ON CONFLICT (time, {keys}) DO UPDATE SET {added}""",
        ((minute, *(_storable(getattr(each, name)) for name in columns)) for each in counts),
    )


def _storable(value: str | int | None) -> str | int:
    # In a key, NULL would differ from NULL.
    return "" if value is None else label(value) if isinstance(value, str) else value


def _make_room(db: "sqlite3.Connection", now: int, max_bytes: int) -> None:
    """Bring the pages in use below `max_bytes`; to be called within a transaction.

    First, rows older than a day become sums of days, which changes no report over days. If there
    are too many names, the older half of the rows goes, again and again.
    """
    for table, sums in _SUMS.items():
        keys = ", ".join(_KEYS[table])
        columns = ", ".join(f"{'MAX' if each == _LARGEST else 'SUM'}({each})" for each in sums)
        db.execute(
            f"""CREATE TEMP TABLE sums AS SELECT MAX(time), {keys}, {columns} FROM {table}
            WHERE time < ? GROUP BY {DATE}, {keys}""",
            (now - _DAY,),
        )
        db.execute(f"DELETE FROM {table} WHERE time < ?", (now - _DAY,))
        db.execute(f"INSERT INTO {table} SELECT * FROM sums")
        db.execute("DROP TABLE sums")
    deleted = 1
    while deleted and _used_bytes(db) > max_bytes:
        deleted = sum(
            db.execute(
                f"""DELETE FROM {table} WHERE time <= (SELECT time FROM {table} ORDER BY time
                LIMIT 1 OFFSET (SELECT COUNT(*) / 2 FROM {table}))"""
            ).rowcount
            for table in _TABLES
        )


def _forget_calls(db: "sqlite3.Connection", now: int) -> None:
    db.execute("DELETE FROM recent WHERE time <= ?", (now - calls.SECONDS,))
    limit = "(SELECT MAX(rowid) FROM recent) - ?"
    db.execute(f"DELETE FROM recent WHERE rowid <= {limit}", (calls.MOST,))


def claim_call(path: str, call: bytes, *, clock: Callable[[], float] = time.time) -> bool:
    """Return True if no process has made the call with this hash; it is remembered from now on.

    If another process has locked the file for long, nobody knows: False. If the file cannot be used
    at all, just this process remembers calls: True.
    """
    import sqlite3

    try:
        with closing(LedgerFile(path, patience=1.0, clock=clock)) as file:
            return file.claim(call)
    except Exception as error:
        return getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY


def secret_of(path: str) -> str:
    """Return the secret of a ledger, in a file beside it; of this process if there can be none."""
    try:
        _create(path)
        return secret(f"{path}.secret")
    except (OSError, LedgerError):
        return os.urandom(32).hex()


def _used_bytes(db: "sqlite3.Connection") -> int:
    pages = _pragma(db, "page_count") - _pragma(db, "freelist_count")
    return pages * _pragma(db, "page_size")


def _pragma(db: "sqlite3.Connection", name: str) -> int:
    value: int = db.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def is_new(db: "sqlite3.Connection") -> bool:
    """Return True for an empty file. Raises LedgerError if it is no ledger of this version."""
    application, version = _pragma(db, "application_id"), _pragma(db, "user_version")
    (objects,) = db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    if application != _APPLICATION_ID and (application or version or objects):
        raise LedgerError("the file is a database of another program")
    if version not in (0, _VERSION):
        raise LedgerError(
            f"the file has version {version}, from another mcp-abridge; this one writes version "
            f"{_VERSION}: move the file away, or name another with --ledger"
        )
    return version == 0
