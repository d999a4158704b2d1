"""Snapshots in memory: kept for a while, bounded by number, bytes and age."""

import pytest

from proxy.snapshots import Memory, Snapshot


def snapshot(size: int) -> Snapshot:
    return Snapshot(frame=b"", document=b"x" * size)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> "Clock":
    clock = Clock()
    monkeypatch.setattr("proxy.snapshots.time.monotonic", lambda: clock.now)
    return clock


class Clock:
    now = 1000.0


def test_the_size_of_a_snapshot_is_that_of_its_frame_and_its_document() -> None:
    assert Snapshot(frame=b"abc", document=b"de").size == 5


def test_what_was_put_is_got_until_it_is_dropped() -> None:
    store, kept = Memory(), snapshot(1)
    store.put("a", kept)

    assert store.get("a") is kept
    assert store.get("b") is None
    store.drop(("a", "unknown"))
    assert store.get("a") is None


def test_a_later_snapshot_takes_the_place_of_an_earlier_one() -> None:
    store, later = Memory(size=10), snapshot(6)
    store.put("a", snapshot(6))
    store.put("a", later)

    assert store.get("a") is later


def test_the_least_recently_used_goes_first_where_there_are_too_many() -> None:
    store = Memory(number=2)
    store.put("a", snapshot(1))
    store.put("b", snapshot(1))
    store.get("a")
    store.put("c", snapshot(1))

    assert [store.get(key) is not None for key in "abc"] == [True, False, True]


def test_the_oldest_go_where_all_together_are_too_large() -> None:
    store = Memory(size=10)
    for key in "abc":
        store.put(key, snapshot(4))

    assert [store.get(key) is not None for key in "abc"] == [False, True, True]


def test_one_that_is_larger_than_the_store_is_not_kept_and_ousts_none() -> None:
    store = Memory(size=10)
    store.put("a", snapshot(4))
    store.put("b", snapshot(11))

    assert store.get("a") is not None
    assert store.get("b") is None


def test_one_that_has_grown_too_large_is_no_longer_answered_as_it_was() -> None:
    store = Memory(size=10)
    store.put("a", snapshot(4))
    store.put("a", snapshot(11))

    assert store.get("a") is None


def test_room_that_was_freed_can_be_used_again() -> None:
    store = Memory(size=10)
    for _ in range(5):
        store.put("a", snapshot(9))
        store.drop(("a",))
    store.put("b", snapshot(10))

    assert store.get("b") is not None


def test_a_snapshot_goes_some_time_after_its_last_use(clock: Clock) -> None:
    store = Memory(seconds=10)
    store.put("a", snapshot(1))
    clock.now += 9
    assert store.get("a") is not None
    clock.now += 9
    assert store.get("a") is not None
    clock.now += 11
    assert store.get("a") is None


def test_one_that_was_just_used_does_not_hide_an_older_one_that_is_over(clock: Clock) -> None:
    store = Memory(seconds=10)
    store.put("a", snapshot(1))
    clock.now += 6
    store.put("b", snapshot(1))
    clock.now += 6
    store.get("b")
    store.put("c", snapshot(1))

    assert [store.get(key) is not None for key in "abc"] == [False, True, True]
