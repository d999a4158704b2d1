"""Snapshots in a real Redis: what it holds, and what is said when it cannot be asked."""

import errno
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest
from mcp_abridge.errors import StoreError
from mcp_abridge.storage.calls import RecentCalls
from mcp_abridge.storage.redis import Redis
from mcp_abridge.storage.snapshots import Key, Snapshot
from redis import Redis as Client

from tests.conformance.suite import free_port
from tests.faults.processes import until
from tests.redis_server import RedisServer, redis_server

SNAPSHOT = Snapshot(frame=b"{}", document=b"[1,2]")
A = Key("of the caller", "the rule", "tool\nsecret argument")


@pytest.fixture(scope="module")
def running() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
def server(running: RedisServer, client: Client) -> RedisServer:
    client.flushall()
    return running


@pytest.fixture
def client(running: RedisServer) -> Iterator[Client]:
    with Client.from_url(running.url, encoding="latin-1", decode_responses=True) as client:
        yield client


@pytest.fixture
def store(server: RedisServer) -> Iterator[Redis]:
    store = Redis(server.url, seconds=100)
    yield store
    store.close()


def keys(client: Client) -> set[str]:
    return {str(name) for name in client.scan_iter()}


def test_replicas_know_of_each_others_calls_for_an_hour(store: Redis, client: Client) -> None:
    wake = Event()
    one, other = RecentCalls(store.claim, wake), RecentCalls(store.claim)
    Thread(target=one.share, args=(store.remember,), daemon=True).start()
    one.add("caller", "secret argument")
    until(lambda: len(keys(client)) == 1)
    assert not other.claim("caller", "secret argument")
    assert other.claim("caller", "another")
    assert not RecentCalls(store.claim).claim("caller", "another")
    for name in keys(client):
        assert 3500 < client.ttl(name) <= 3600
        assert not any(word in name for word in ("caller", "secret", "another"))


def test_if_redis_is_away_no_call_is_known_to_be_the_first_and_none_is_forgotten() -> None:
    with redis_server() as own:
        store, wake = Redis(own.url), Event()
        recent = RecentCalls(store.claim, wake)
        own.stop()
        Thread(target=recent.share, args=(store.remember, 0.01), daemon=True).start()
        recent.add("", "made meanwhile")
        assert not RecentCalls(store.claim).claim("", "new")
        own.start()
        with Client.from_url(own.url, encoding="latin-1", decode_responses=True) as client:
            until(lambda: len(keys(client)) == 1)
        assert not RecentCalls(store.claim).claim("", "made meanwhile")


def test_no_key_shows_what_it_is_of(store: Redis, client: Client) -> None:
    store.put(A, SNAPSHOT)
    assert len(keys(client)) == 3
    for name in keys(client):
        assert name.startswith("mcp-abridge:")
        assert not any(word in name for word in ("caller", "rule", "tool", "secret"))


def test_a_value_that_is_not_ours_or_was_evicted_is_none(store: Redis, client: Client) -> None:
    store.put(A, SNAPSHOT)
    for name in (name for name in keys(client) if "kept" not in name):
        client.delete(name)
        assert store.get(A) is None
        store.put(A, SNAPSHOT)
        assert store.get(A) == SNAPSHOT
    [epoch] = (name for name in keys(client) if name.endswith("}"))
    [name] = (name for name in keys(client) if name.startswith(f"{epoch}:"))
    client.set(name, str(client.get(epoch)) + "not ours" + "\x00" * 8)
    assert store.get(A) is None


def failure(store: Redis) -> tuple[str, float]:
    """Return the message of a request that Redis does not answer, and the seconds until then."""
    start = time.monotonic()
    with pytest.raises(StoreError) as caught:
        store.get(A)
    return str(caught.value), time.monotonic() - start


def until_it_answers(store: Redis) -> Snapshot | None:
    """Ask until the pause after a failure is over."""
    end = time.monotonic() + 20
    while True:
        try:
            return store.get(A)
        except StoreError:
            if time.monotonic() > end:
                raise


def test_the_error_of_an_absent_redis_does_not_show_the_password() -> None:
    port = free_port()
    message, _ = failure(Redis(f"redis://user:secret@127.0.0.1:{port}/0"))
    assert message == (
        f"redis at 127.0.0.1:{port}: "
        f"Error {errno.ECONNREFUSED} connecting to 127.0.0.1:{port}. Connection refused"
    )


def test_a_redis_that_hangs_is_waited_for_briefly_and_then_not_for_a_while() -> None:
    with redis_server() as own:
        store = Redis(own.url)
        store.put(A, SNAPSHOT)
        with own.halted():
            message, seconds = failure(store)
            assert message == f"redis at 127.0.0.1:{own.port}: Timeout reading from socket"
            assert seconds < 10
            with ThreadPoolExecutor(8) as threads:
                assert {message for message, _ in threads.map(failure, [store] * 8)} == {message}
        assert until_it_answers(store) == SNAPSHOT
        store.close()


def test_the_error_of_a_wrong_password_does_not_show_it() -> None:
    with redis_server("--requirepass", "right") as server:
        wrong = Redis(f"redis://:mistaken@127.0.0.1:{server.port}/0")
        message, _ = failure(wrong)
        assert message == (
            f"redis at 127.0.0.1:{server.port}: invalid username-password pair or user is disabled"
        )
        right = Redis(f"redis://:right@127.0.0.1:{server.port}/0")
        right.put(A, SNAPSHOT)
        assert right.get(A) == SNAPSHOT
        wrong.close()
        right.close()


@pytest.mark.parametrize(
    "url",
    [
        "localhost:6379",
        "redis://user:sec/ret@localhost:6379/0",
        "redis://:secret@localhost:port",
        "redis://:secret@localhost?colour=red",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        Redis(url)
    assert str(caught.value) == (
        "the URL of a redis store is written like redis://user:password@host:6379/0"
    )
    assert caught.value.__cause__ is None


def test_a_full_redis_refuses_writes_and_still_serves_reads(store: Redis, client: Client) -> None:
    store.put(A, SNAPSHOT)
    client.config_set("maxmemory", "1")
    try:
        with pytest.raises(StoreError, match="used memory > 'maxmemory'"):
            store.put(Key("scope", "rule", "b"), SNAPSHOT)
        assert store.get(A) == SNAPSHOT
    finally:
        client.config_set("maxmemory", "0")
