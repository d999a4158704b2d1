"""Random writes through our end of a real pipe, held against the lines that must come out."""

import os
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import suppress
from threading import enumerate as threads

from msgspec import Struct

from proxy.transports.stdio.pipes import PipeReader, PipeWriter
from tests.fuzz.dice import Dice
from tests.fuzz.fuzzer import Wrong

Write = tuple[str, tuple[bytes, ...]]


class Talk(Struct, frozen=True):
    """What is written, in order: lines that are sent or posted, and lines in pieces."""

    writes: tuple[Write, ...]
    ends: bool = True


def talk(dice: Dice) -> Talk:
    """Return a random one."""
    writes: list[Write] = []
    number = 0
    for _ in range(dice.within(1, 8)):
        word = dice.pick(("send", "send", "post", "piece", "flush"))
        count = dice.within(1, 3)
        parts = []
        for _ in range(count):
            number += 1
            parts.append(b"%d:" % number + dice.pick((b"", b"x" * 40, b"y" * 3000, "é".encode())))
        writes.append((word, tuple(parts)))
    return Talk(tuple(writes), dice.one_in(2))


def check(given: Talk) -> Iterator[Hashable]:
    """Write it all, and read what comes out. Raises Wrong."""
    out, into = os.pipe()
    outlet = PipeWriter(into, lambda: None)
    expected: list[bytes] = []
    unfinished = False
    try:
        for number, (word, parts) in enumerate(given.writes):
            if word == "send":
                outlet.send(list(parts))
                expected += parts
            elif word == "post":
                outlet.send_later(list(parts))
                expected += parts
            elif word == "piece":
                last = given.ends or number < len(given.writes) - 1
                unfinished = not last
                for part in parts:
                    outlet.send_chunk(part, False)
                # What is posted and sent meanwhile must not break into it.
                outlet.send_later([b"posted %d" % number])
                outlet.send([b"after %d" % number])
                expected += [b"".join(parts), b"posted %d" % number, b"after %d" % number]
                if last:
                    outlet.send_chunk(b"\n", True)
            else:
                outlet.flush()
        for each in threads():
            if each.name == "post":
                each.join()
        outlet.flush()
        if unfinished:
            outlet.finish([b"last words"])
            expected.append(b"last words")
        outlet.close()
        found = list(_lines(out))
    finally:
        with suppress(OSError):
            os.close(out)
    if Counter(found) != Counter(expected):
        raise Wrong("each line goes out once and whole", f"{found}, not {expected}")
    sent = [part for word, parts in given.writes if word == "send" for part in parts]
    if [line for line in found if line in set(sent)] != sent:
        raise Wrong("lines go out in order", f"{found}")
    yield "pipe", tuple(sorted({word for word, _ in given.writes})), unfinished


def _lines(descriptor: int) -> Iterator[bytes]:
    inlet, raw = PipeReader(descriptor), bytearray()
    while True:
        buffer, size = inlet.read()
        if not size:
            break
        raw += memoryview(buffer)[:size]
    yield from bytes(raw).split(b"\n")[:-1]
