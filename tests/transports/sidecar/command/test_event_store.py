"""What a client that comes back gets: everything that followed, or nothing."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from proxy.transports.sidecar.command.event_store import EventStore


def test_streams_do_not_mix_and_no_id_is_used_twice() -> None:
    history = EventStore()
    one, other = history.open(), history.open()
    said = [history.add(stream, b"x") for stream in (one, other, one, other)]
    assert len({each.id for each in said}) == 4
    assert history.after(said[0].id) == (one, [said[2]])


def test_an_id_that_was_never_given_finds_nothing() -> None:
    history = EventStore()
    stream = history.open()
    history.add(stream, b"x")
    for id in ("", "x", f"{stream}-0", f"{stream}-2", "99-1", f"{stream}-1 ", "1" * 40 + "-1"):
        assert history.after(id) is None, id


def test_the_oldest_goes_first_and_a_gap_is_no_answer() -> None:
    history = EventStore(number=2)
    stream = history.open()
    first, second, third = (history.add(stream, data) for data in (b"1", b"2", b"3"))
    assert history.after(first.id) == (stream, [second, third])
    fourth = history.add(stream, b"4")
    assert history.after(first.id) is None
    assert history.after(second.id) == (stream, [third, fourth])


def test_the_newest_stays_whatever_its_size() -> None:
    history = EventStore(size=1000)
    stream = history.open()
    first = history.add(stream, b"")
    second = history.add(stream, b"x" * 5000)
    assert history.after(first.id) == (stream, [second])


def test_a_stream_that_is_over_is_kept_for_its_time() -> None:
    history = EventStore(number=1)
    stream = history.open()
    said = history.add(stream, b"x")
    history.close(stream)
    assert history.after(said.id) == (stream, [])
    history.add(history.open(), b"y")
    assert history.after(said.id) is None


def test_a_dropped_stream_is_forgotten_and_makes_room() -> None:
    history = EventStore(size=1000)
    stream, other = history.open(), history.open()
    gone = history.add(stream, b"x" * 500)
    history.drop(stream)
    history.drop(stream)
    kept = history.add(other, b"y" * 500)
    history.add(other, b"")
    assert history.after(gone.id) is None
    assert history.after(kept.id) is not None


@given(
    st.lists(st.tuples(st.sampled_from(["add", "close", "drop"]), st.integers(0, 3))),
    st.integers(1, 5),
)
def test_whatever_happens_what_is_found_is_all_that_followed(
    steps: list[tuple[str, int]], number: int
) -> None:
    history = EventStore(number=number)
    streams = [history.open() for _ in range(4)]
    said: dict[int, list[str]] = {stream: [] for stream in streams}
    closed: set[int] = set()
    for step, at in steps:
        stream = streams[at]
        if step == "add" and stream not in closed:
            said[stream].append(history.add(stream, b"%d" % len(said[stream])).id)
        elif step == "close":
            history.close(stream)
            closed.add(stream)
        elif step == "drop":
            history.drop(stream)
            closed.add(stream)
    for stream, ids in said.items():
        for at, id in enumerate(ids):
            found = history.after(id)
            if found is not None:
                assert found[0] == stream
                assert [each.id for each in found[1]] == ids[at + 1 :]
    newest = [ids[-1] for stream, ids in said.items() if ids and stream not in closed]
    assert sum(history.after(id) is not None for id in newest) == len(newest)


def test_nothing_is_left_of_streams_that_were_dropped() -> None:
    history = EventStore()
    open = history.open()
    first = history.add(open, b"1")
    tracemalloc.start()
    for _ in range(10_000):
        stream = history.open()
        history.add(stream, b"2")
        history.add(stream, b"3")
        history.drop(stream)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 10_000
    second = history.add(open, b"4")
    assert history.after(first.id) == (open, [second])


def test_dropped_streams_do_not_crowd_out_others() -> None:
    history = EventStore(number=10)
    stream = history.open()
    first, second = history.add(stream, b"1"), history.add(stream, b"2")
    for _ in range(100):
        other = history.open()
        history.add(other, b"")
        history.drop(other)
    assert history.after(first.id) == (stream, [second])
