"""What a client that comes back gets: everything that followed, or nothing."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from proxy.transports.sidecar.command.event_store import EventStore


def test_an_id_that_was_never_given_finds_nothing() -> None:
    history = EventStore()
    stream = history.open()
    history.add(stream, b"x")
    for id in ("", "x", f"{stream}-0", f"{stream}-2", "99-1", f"{stream}-1 ", "1" * 40 + "-1"):
        assert history.after(id) is None, id


def test_the_newest_stays_whatever_its_size() -> None:
    history = EventStore(size=1000)
    stream = history.open()
    first = history.add(stream, b"")
    second = history.add(stream, b"x" * 5000)
    assert history.after(first.id) == (stream, [second])


@given(
    st.lists(st.tuples(st.sampled_from(["add", "drop"]), st.integers(0, 3))),
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
