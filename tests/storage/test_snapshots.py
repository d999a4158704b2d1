"""Snapshots: what every store promises, and the bounds of the one in memory."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from mcp_abridge.document.measure import Structure, TextFrame
from mcp_abridge.errors import StoreError
from mcp_abridge.storage.answer_list import read
from mcp_abridge.storage.folder import Folder
from mcp_abridge.storage.redis import Redis
from mcp_abridge.storage.snapshots import ANYBODY, Key, Memory, Snapshot, Store
from msgspec import Raw
from msgspec.structs import replace
from redis import Redis as Client

from tests.redis_server import RedisServer, redis_server

SECONDS = 100
SIZE = 2000
HEAD = 67  # bytes that a file has beside the snapshot


def snapshot(size: int) -> Snapshot:
    return Snapshot(frame=b"", document=b"x" * size)


def key(call: str, rule: str = "rule", scope: str = "scope") -> Key:
    return Key(scope, rule, call)


A, B, C = map(key, "abc")
ALL = Key("scope", "rule", None)


class Clock:
    now = 1000.0

    def pass_by(self, seconds: int) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("mcp_abridge.storage.snapshots.time.monotonic", lambda: clock.now)
    return clock


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


class Case(NamedTuple):
    """A store, and a way to let time pass for it."""

    store: Store
    pass_by: Callable[[int], None]


def ageing(folder: Path) -> Callable[[int], None]:
    def pass_by(seconds: int) -> None:
        for file in folder.rglob("*.snapshot"):
            used = file.stat().st_mtime - seconds
            os.utime(file, (used, used))

    return pass_by


@pytest.fixture(params=["memory", "folder", "redis"])
def case(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> Iterator[Case]:
    if request.param == "memory":
        yield Case(Memory(seconds=SECONDS, size=SIZE), clock.pass_by)
        return
    if request.param == "folder":
        yield Case(
            Folder(str(tmp_path / "store"), seconds=SECONDS, size=SIZE + HEAD), ageing(tmp_path)
        )
        return
    server: RedisServer = request.getfixturevalue("server")
    store = Redis(server.url, seconds=SECONDS, size=SIZE)
    with Client.from_url(server.url) as client:
        client.flushall()

        def pass_by(seconds: int) -> None:
            for name in client.scan_iter():
                client.expire(name, int(client.ttl(name)) - seconds)

        yield Case(store, pass_by)
    store.close()


@pytest.fixture
def store(case: Case) -> Store:
    return case.store


def test_in_memory_no_caller_pushes_out_what_another_one_keeps(clock: Clock) -> None:
    for number, each in ((100, 300), (6, 1)):
        store = Memory(number=number, size=SIZE, seconds=SECONDS)
        alice = [key(call, scope=f"alice\nsession {call}") for call in "ab"]
        bob = [key(str(call), scope=f"bob\nsession {call}") for call in range(20)]
        anybody = key("a", scope=f"{ANYBODY}\nsession 1")
        for one in (*alice, anybody, *bob):
            store.put(one, snapshot(each))
        assert None not in map(store.get, [*alice, anybody])
        latest = [one for one in bob if store.get(one) is not None]
        assert latest == bob[-len(latest) :]
        assert len(store) == min(number, SIZE // each)
        for one in latest:
            store.drop(one)
        for one in (key(str(call), scope="carol") for call in range(3)):
            store.put(one, snapshot(each))  # what is gone counts for nobody
        assert store.get(key("2", scope="carol")) is not None


def test_a_snapshot_can_be_read_until_it_is_dropped(store: Store) -> None:
    snapshot = Snapshot(frame=b'{"a"}\r\n\x00', document="[1, \u2026]".encode())
    store.put(A, snapshot)

    assert store.get(A) == snapshot
    assert store.get(B) is None
    store.drop(B)
    assert store.get(A) == snapshot
    store.drop(A)
    assert store.get(A) is None


def test_all_of_a_rule_is_dropped_in_its_scope_alone(store: Store) -> None:
    others = [key("a", rule="other"), key("a", scope="other"), key("a", "escope", "rul")]
    for each in (A, B, *others):
        store.put(each, snapshot(1))
    store.drop(ALL)

    assert [store.get(each) for each in (A, B)] == [None, None]
    assert [store.get(each) for each in others] == [snapshot(1)] * 3
    store.put(B, snapshot(2))
    assert [store.get(each) for each in (A, B)] == [None, snapshot(2)]


def test_a_caller_gets_the_list_of_its_own_answers_the_newest_first(case: Case) -> None:
    store = case.store
    store.put(key('["old",{"token":"hunter2"}]0000abcd'), snapshot(7))
    case.pass_by(2)
    store.put(key('["new",{}]{"limit":5}0000abcd', rule="other"), Snapshot(b"a frame", b"document"))
    store.put(key('["hers",{}]', scope="other"), snapshot(9))
    store.put(key("known to anybody", rule=""), snapshot(9))
    stored = store.get(Key("scope", "", None))

    assert stored is not None
    answers = read(stored)
    assert sorted((each.call, each.size) for each in answers) == [
        ('["new",{"limit":5}]', 8),
        ('["old",{"token":"***"}]', 7),
    ]
    assert all(each.age < SECONDS for each in answers)


def test_names_may_hold_anything_and_are_told_apart(store: Store) -> None:
    signs = ["", "\n", "a\nb", "{}", "*", "\u00e9", "\U0001f4d3", "\ud83d"]
    texts = [*signs, "x" * 100_000, "x" * 100_001]
    keys = [Key(scope, rule, text) for text in texts for scope, rule in [("", "*"), ("*", "")]]
    for size, each in enumerate(keys):
        store.put(each, snapshot(size))

    assert [store.get(each) for each in keys] == [snapshot(size) for size in range(len(keys))]


def test_one_that_is_too_large_is_not_kept_and_ousts_none_but_an_older_one_of_itself(
    store: Store,
) -> None:
    store.put(A, snapshot(SIZE - 1))
    store.put(B, snapshot(SIZE + 1))
    assert store.get(A) == snapshot(SIZE - 1)
    assert store.get(B) is None
    store.put(A, snapshot(SIZE + 1))
    assert store.get(A) is None


@pytest.mark.fault(41, "inside")
def test_a_snapshot_goes_some_time_after_its_last_use(case: Case) -> None:
    case.store.put(A, snapshot(1))
    for _ in range(3):
        case.pass_by(SECONDS - 10)
        assert case.store.get(A) is not None
    case.pass_by(SECONDS + 1)

    assert case.store.get(A) is None


SHARED = pytest.mark.parametrize("case", ["memory", "redis"], indirect=True)


@SHARED
def test_the_sessions_of_a_caller_see_each_others_answers_and_nobody_elses(store: Store) -> None:
    for number, scope in enumerate(("jane\n1", "jane\n2", f"{ANYBODY}\n1")):
        store.put(key('["t"]', scope=scope), snapshot(number))
    [own, newest] = (store.get(key('["t"]', scope=scope)) for scope in ("jane\n1", "jane"))
    assert (own, newest) == (snapshot(0), snapshot(1))
    for scope, count in (("jane\n3", 2), ("joe\n1", 0), (f"{ANYBODY}\n2", 0)):
        stored = store.get(Key(scope, "", None))
        assert stored is not None
        assert len(read(stored)) == count


@SHARED
def test_an_answer_that_a_call_made_untrue_is_gone_for_other_sessions_of_the_caller_too(
    store: Store,
) -> None:
    one, other, shared = (key("a", scope=scope) for scope in ("jane\n1", "jane\n2", "jane"))
    for dropped in (other, Key("jane\n2", "rule", None)):
        store.put(one, snapshot(1))
        assert store.get(shared) is not None
        store.drop(dropped)
        assert store.get(shared) is None
        assert store.get(one) is not None


def test_a_folder_that_others_can_open_is_refused_in_words(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(StoreError, match=r"others can open the folder \(mode 750\)"):
        Folder(str(tmp_path))
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(StoreError, match=r"--store .*/file: file exists"):
        Folder(str(file))


def test_expired_files_are_deleted_when_the_next_session_begins(tmp_path: Path) -> None:
    path = tmp_path / "store"
    Folder(str(path)).put(A, snapshot(1))
    ageing(path)(SECONDS)
    Folder(str(path), seconds=SECONDS - 1)
    assert list(path.glob("*.snapshot")) == []


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_of_too_many_the_least_recently_used_goes_first(tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "store")
    store: Store = Memory(number=2) if kind == "memory" else Folder(path, number=2)
    for each in (A, B):
        store.put(each, snapshot(1))
        ageing(tmp_path)(10)
    assert store.get(A) is not None
    store.put(C, snapshot(1))
    assert [store.get(each) is None for each in (A, B, C)] == [False, True, False]


def test_old_snapshots_go_without_any_request() -> None:
    store = Memory(seconds=0.2, ages=True)
    store.put(A, snapshot(1))
    store.put(B, snapshot(1))
    assert len(store) == 2
    end = time.monotonic() + 20
    while len(store):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_several_threads_may_put_and_get_at_once() -> None:
    store = Memory(number=5, size=100)

    def use(scope: str) -> None:
        for number in range(2000):
            store.put(key(str(number % 7), scope=scope), snapshot(number % 40))
            store.get(key(str(number % 5), scope=scope))
            store.drop(Key(scope, "rule", None if number % 11 == 0 else "3"))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(use, "abcd"))
    assert len(store) <= 5
    for scope in "abcd":
        store.drop(Key(scope, "rule", None))
    assert (len(store), vars(store)["_bytes"]) == (0, 0)


@pytest.mark.parametrize(("size", "whole"), [(SIZE, True), (SIZE - 1, False)])
def test_what_a_text_was_read_as_counts_as_part_of_its_snapshot(size: int, whole: bool) -> None:
    store = Memory(size=size)
    structure = Structure(Raw(b"x" * (SIZE // 2)), TextFrame())
    store.put(A, replace(snapshot(SIZE // 2), structure=structure))
    stored = store.get(A)
    assert stored is not None
    assert (stored.structure == structure) is whole
    store.put(B, snapshot(10))
    assert (store.get(A) is None) is whole
