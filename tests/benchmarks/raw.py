"""A client that looks at bytes only: it knows that an answer is over by its newline."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from time import perf_counter
from typing import Protocol

from tests.benchmarks.commands import ROOT, cores, environment
from tests.wire import Wire

CHUNK = 1 << 16  # bytes of a pipe that asyncio and Node, too, read at once
MEMORY = memoryview(bytearray(16 << 20))
BUFFER = bytearray(CHUNK)
NEWLINE = 0x0A
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"benchmark","version":"1.0.0"}}}\n'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
TOOLS_LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}\n'


def tools_call(tool: str, arguments: str = "{}", number: int = 2) -> bytes:
    params = f'{{"name":"{tool}","arguments":{arguments}}}'
    line = f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}\n'
    return line.encode()


class Caller(Protocol):
    def call(self, request: bytes) -> object: ...


class StdioClient(Wire):
    """A started command and both of its pipes, as the system makes them.

    Raises EOFError with the end of its stderr when the command ends before it has answered.
    """

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(command, environment(), ROOT)
        os.set_blocking(self.stdin, True)
        os.set_blocking(self.stdout, True)

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        self.call(INITIALIZE)
        os.write(self.stdin, INITIALIZED)
        self.call(TOOLS_LIST)

    def call(self, request: bytes) -> memoryview:
        """Send one request and return its answer, which is good until the next call."""
        os.write(self.stdin, request)
        size = 0
        while True:
            # Into memory that is there already: what the system takes to clear new pages varies
            # more than everything that is measured here.
            size += self._come(MEMORY[size : size + CHUNK])
            if MEMORY[size - 1] == NEWLINE:
                return MEMORY[:size]

    def fetch(self, request: bytes) -> bytes:
        return bytes(self.call(request)).strip()

    def many(self, requests: Sequence[bytes], in_flight: int) -> None:
        """Send requests, always so many unanswered, until all are answered."""
        os.write(self.stdin, b"".join(requests[:in_flight]))
        sent_count, answered = in_flight, 0
        while answered < len(requests):
            come = BUFFER.count(b"\n", 0, self._come(BUFFER))
            answered += come
            if sent_count < len(requests):
                os.write(self.stdin, b"".join(requests[sent_count : sent_count + come]))
                sent_count += come

    def _come(self, memory: memoryview | bytearray) -> int:
        size = os.readv(self.stdout, (memory,))
        if not size:
            self.drain.join(1)
            raise EOFError(f"the command ended: {self.errors[-2000:].decode(errors='replace')}")
        return size


@contextmanager
def on_own_core() -> Iterator[None]:
    """Keep this thread on the first of both cores meanwhile; what it has started stays free."""
    before = os.sched_getaffinity(0) if cores() else set()
    if before:
        os.sched_setaffinity(0, cores()[:1])
    try:
        yield
    finally:
        if before:
            os.sched_setaffinity(0, before)


class Timed:
    def __init__(self, once: Callable[[], float], *, own_core: bool = True) -> None:
        self.once = once
        self.own_core = own_core

    def times(self, calls: int) -> list[float]:
        with on_own_core() if self.own_core else nullcontext():
            return [self.once() for _ in range(calls)]


def calls(client: Caller, request: bytes) -> Timed:
    def once() -> float:
        start = perf_counter()
        client.call(request)
        return perf_counter() - start

    return Timed(once)


def flights(client: StdioClient, tool: str) -> Timed:
    """Many calls at once; the time of one is that of all divided by their number."""
    requests = [tools_call(tool, number=number) for number in range(2, 4002)]

    def once() -> float:
        start = perf_counter()
        client.many(requests, 32)
        return (perf_counter() - start) / len(requests)

    return Timed(once)


def starts(command: Sequence[str]) -> Timed:

    def once() -> float:
        start = perf_counter()
        with StdioClient(command) as client:
            client.call(INITIALIZE)
            return perf_counter() - start

    return Timed(once, own_core=False)
