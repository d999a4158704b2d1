"""Snapshots and recent calls in Redis, for several replicas behind one address.

A snapshot is a string key, and so is its place, by which other sessions of its caller find it. So
is the epoch of each scope and rule, a random token: only values that begin with it count, so that
dropping a rule applies to all replicas at once. All keys expire after their last use, and hold no
name or argument in clear text.
"""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from threading import Lock
from typing import Any

from mcp_abridge.errors import StoreError
from mcp_abridge.storage import calls
from mcp_abridge.storage.answer_list import MOST, StoredAnswer, listing, text_of
from mcp_abridge.storage.snapshots import LABELS, Key, Snapshot, digest, label_of, pack, unpack

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ModuleNotFoundError as error:
    raise StoreError(
        "snapshots in redis need the redis package: pip install 'mcp-abridge[redis]'"
    ) from error

_PREFIX = "mcp-abridge"
_TIMEOUT = 1.0  # seconds, to connect and for each reply: the sum of both is the longest wait
_TOKEN = 16  # bytes of the token of an epoch
_PAUSE = 1.0  # seconds without requests to Redis after a failure
_ELSEWHERE = b"in "
"""The mark of a value that is the place of a caller's newest snapshot, in one of its sessions."""


class Redis:
    """A Store that replicas share; safe for several threads.

    A request blocks for at most about two seconds. After a failure, requests fail at once for a
    second, then one tries again. The `maxmemory` of Redis bounds the total size.
    """

    remote = True

    def __init__(self, url: str, *, seconds: int = 1800, size: int = 64 << 20) -> None:
        """Keep snapshots of at most `size` bytes, `seconds` after their last use. StoreError."""
        self._seconds, self._size = seconds, size
        # One retry if an idle connection turns out to be closed; never after a timeout.
        retry = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
        times = {"socket_timeout": _TIMEOUT, "socket_connect_timeout": _TIMEOUT}
        try:
            pool = redis.ConnectionPool.from_url(url, protocol=2, retry=retry, **times)
            pool.make_connection()
        except (ValueError, TypeError):
            # The cause is omitted, because it may quote a part of the password.
            raise StoreError(
                "the URL of a redis store is written like redis://user:password@host:6379/0"
            ) from None
        options = pool.connection_kwargs
        host, port = options.get("host", "localhost"), options.get("port", 6379)
        self._address = options.get("path") or f"{host}:{port}"
        self._client = redis.Redis(connection_pool=pool)
        self._lock = Lock()
        self._failure = ""
        self._again = 0.0  # the time of the next allowed request after a failure

    def put(self, key: Key, snapshot: Snapshot) -> None:
        if snapshot.size > self._size:
            self.drop(key)
            return
        place, shared = self._put(key, pack(snapshot, text_of(key.call))), key.of_caller
        if shared is not None:
            self._put(shared, _ELSEWHERE + place.encode())
        index = _index(key)
        self._ask(
            ("ZADD", index, int(time.time()), place),
            ("ZREMRANGEBYRANK", index, 0, -MOST - 1),
            ("EXPIRE", index, self._seconds),
        )

    def _put(self, key: Key, value: bytes) -> str:
        """Store a value, and return its place: the keys in Redis of its epoch and of itself."""
        epoch, name = _names(key)
        _, token, _ = self._ask(
            ("SET", epoch, os.urandom(_TOKEN), "NX", "EX", self._seconds),
            ("GET", epoch),
            ("EXPIRE", epoch, self._seconds),
        )
        self._ask(("SET", name, (token or b"") + value, "EX", self._seconds))
        return f"{epoch} {name}"

    def get(self, key: Key) -> Snapshot | None:
        if key.call is None:
            return self._list(key)
        value = self._get(*_names(key))
        if value.startswith(_ELSEWHERE):
            value = self._get(*value.removeprefix(_ELSEWHERE).decode().split(" "))
        return unpack(value)

    def _get(self, epoch: str, name: str) -> bytes:
        """Return a value, which then counts as just used; b"" if there is none."""
        token, raw, *_ = self._ask(
            ("GET", epoch),
            ("GET", name),
            ("EXPIRE", name, self._seconds),
            ("EXPIRE", epoch, self._seconds),
        )
        return raw[len(token) :] if token and raw and raw.startswith(token) else b""

    def _list(self, key: Key) -> Snapshot:
        [members] = self._ask(("ZREVRANGE", _index(key), 0, -1))
        own: list[StoredAnswer] = []
        for epoch, name in (member.decode().split(" ") for member in members):
            token, raw, size = self._ask(
                ("GET", epoch), ("GETRANGE", name, 0, _TOKEN + LABELS), ("STRLEN", name)
            )
            label = label_of(raw[_TOKEN:]) if token and raw.startswith(token) else None
            if label is not None:
                call, age, start = label
                own.append(StoredAnswer(call, size - _TOKEN - start, age))
        return listing(own)

    def drop(self, key: Key) -> None:
        for each in filter(None, (key, key.of_caller)):
            epoch, name = _names(each)
            self._ask(("UNLINK", epoch if key.call is None else name))

    def remember(self, hashes: Iterable[bytes]) -> None:
        """Remember calls for an hour, for all replicas. Raises StoreError."""
        self._ask(*(("SET", _call(each), b"", "EX", calls.SECONDS) for each in hashes))

    def claim(self, call: bytes) -> bool:
        """Return True, and remember the call, if no replica has made it; False if nobody knows."""
        with suppress(StoreError):
            [stored] = self._ask(("SET", _call(call), b"", "NX", "EX", calls.SECONDS))
            return stored is not None
        return False

    def close(self) -> None:
        self._client.close()

    def _ask(self, *commands: tuple[str | bytes | int, ...]) -> list[Any]:
        self._admit()
        try:
            # A full Redis refuses every transaction, even to read or delete.
            with self._client.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
                answers = pipeline.execute(raise_on_error=False)
        except (redis.ConnectionError, redis.TimeoutError) as error:
            failure = self._message(error)
            with self._lock:
                self._failure, self._again = failure, time.monotonic() + _PAUSE
            raise StoreError(failure) from error
        except redis.RedisError as error:
            answers = [error]
        self._failure = ""
        for answer in answers:
            if isinstance(answer, redis.RedisError):
                raise StoreError(self._message(answer)) from answer
        return answers

    def _admit(self) -> None:
        """Admit one request after a pause; the others fail at once until its result is known."""
        with self._lock:
            now = time.monotonic()
            if self._failure and now < self._again:
                error = StoreError(self._failure)
                error.again = True
                raise error
            self._again = now + 2 * _TIMEOUT

    def _message(self, error: redis.RedisError) -> str:
        # redis-py puts the command in front, with a part of the stored value.
        reason = str(error).rpartition(" of pipeline caused error: ")[2]
        return f"redis at {self._address}: {reason.rstrip('.')}"


def _call(hash: bytes) -> str:
    return f"{_PREFIX}:call:{hash.hex()}"


def _index(key: Key) -> str:
    return f"{_PREFIX}:kept:{digest((key.of_caller or key).scope)}"


def _names(key: Key) -> tuple[str, str]:
    """Return the keys in Redis of the epoch and of the snapshot, on one node of a cluster."""
    epoch = f"{_PREFIX}:{{{digest(key.scope, key.rule)}}}"
    return epoch, f"{epoch}:{digest(key.call)}"
