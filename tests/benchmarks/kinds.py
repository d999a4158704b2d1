"""What a row of the table is, and how each kind of row is measured."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from tests.benchmarks import raw, sdk, services, web_client
from tests.benchmarks.commands import cores, direct, wrapped
from tests.benchmarks.measure import Figures, interleaved
from tests.benchmarks.web_client import WrongAnswer
from tests.conformance.suite import free_port
from tests.servers.install import NotInstalled

Measure = Callable[["Leg", float], Figures]

IDLE = 1.5  # seconds after a call until memory is looked at; by then the ledger has been written


class Target(Struct, frozen=True):
    """A bound: on the ratio, on the seconds added, or on what was measured of the wrapper alone."""

    of: Literal["ratio", "added", "wrapped"]
    bound: float
    least: bool = False


class Leg(Struct, frozen=True):
    """One row of the table.

    `rules` is what the wrapper is given: `none`, a file of rules/, or nothing at all. `most` is how
    many bytes an answer through the wrapper may have; None: it must be the same as a direct one.
    """

    name: str
    measure: Measure
    tool: str = "small"
    rules: str = "none"
    most: int | None = None
    target: Target | None = None
    arguments: str = "{}"
    server: tuple[str, ...] = ()
    unit: Literal["s", "calls/s", "MB"] = "s"
    way: services.Way = "stdio to stdio"
    accept: str = web_client.BOTH

    @property
    def request(self) -> bytes:
        return raw.tools_call(self.tool, self.arguments)

    def pinned(self) -> "Leg":
        """Return the same leg with the server on a core that the raw client leaves to it."""
        options = tuple(f"--core={core}" for core in cores()[1:])
        return msgspec.structs.replace(self, server=self.server + options)

    @property
    def commands(self) -> tuple[list[str], list[str]]:
        return direct(self.server), wrapped(self.rules, self.server)

    def check(self, expected: bytes, answer: bytes) -> None:
        """Raise WrongAnswer unless the wrapper did with an answer what is to be measured."""
        start = answer[:300].decode(errors="replace")
        if self.most is None and answer != expected:
            raise WrongAnswer(f"not the {len(expected)} bytes of a direct answer: {start}")
        if self.most is not None and (len(answer) > self.most or b'"isError":true' in answer):
            raise WrongAnswer(f"{len(answer)} bytes, expected {self.most} at most: {start}")


@contextmanager
def both(leg: Leg) -> Iterator[tuple[services.Client, services.Client]]:
    """Start and connect both sides, and see that they answer as they should."""
    sides = services.pair(leg.way, leg.rules, leg.pinned().server, leg.accept)
    with sides as (one, other):
        one.connect()
        other.connect()
        if leg.arguments != "{}":
            # A later page is cut from what an earlier call has left.
            other.call(raw.tools_call(leg.tool))
        leg.check(one.answer(leg.request), other.answer(leg.request))
        yield one, other


def shares(seconds: float) -> list[float]:
    """Divide a leg's time among several starts of both commands.

    On which of the cores the system puts processes that talk to each other is luck that lasts.
    """
    starts = max(1, min(4, int(seconds)))
    return [seconds / starts] * starts


def compared(leg: Leg, seconds: float, side: Callable[[services.Client], raw.Timed]) -> Figures:
    figures = Figures()
    for share in shares(seconds):
        with both(leg) as (one, other):
            figures += interleaved(side(one), side(other), share)
    return figures


def calls(leg: Leg, seconds: float) -> Figures:
    """One call after the other, from its first byte written to its last byte read."""
    return compared(leg, seconds, lambda client: raw.calls(client, leg.request))


def flights(leg: Leg, seconds: float) -> Figures:
    def side(client: services.Client) -> raw.Timed:
        assert isinstance(client, raw.Client)
        return raw.flights(client, leg.tool)

    times = compared(leg, seconds, side)
    return Figures(
        tuple(1 / each for each in times.wrapped), tuple(1 / each for each in times.direct)
    )


def starts(leg: Leg, seconds: float) -> Figures:
    first, second = map(raw.starts, leg.commands)
    return interleaved(first, second, seconds)


def listings(leg: Leg, seconds: float) -> Figures:
    first, second = (raw.starts(command, listing=True) for command in leg.commands)
    return interleaved(first, second, seconds)


def sdk_calls(leg: Leg, seconds: float) -> Figures:
    """One call after the other of the official client for Python, after a handshake."""
    with sdk.connected(leg.commands, leg.tool) as (one, other):
        leg.check(one.answer(), other.answer())
        return interleaved(one, other, seconds)


def typescript_calls(leg: Leg, seconds: float) -> Figures:
    """Calls of the official client for TypeScript; what it makes of the direct answer is a note."""
    first, second = leg.commands
    try:
        plain = sdk.typescript(first, leg.tool, 1)
        seen = sdk.typescript(second, leg.tool, max(3, int(3 * seconds)))
    except NotInstalled as missing:
        return Figures(note=f"not measured: {missing}")
    if seen.error or leg.most is None or seen.size > leg.most:
        raise WrongAnswer(f"{seen.size} bytes; {seen.error}")
    note = f"direct: {plain.error or 'works'}"
    return Figures(wrapped=tuple(each / 1000 for each in seen.milliseconds), note=note)


def resident(leg: Leg, seconds: float) -> Figures:
    """The memory that the wrapper holds when nothing happens, some time after a call."""
    sizes = []
    for _ in shares(min(seconds, 3)):
        with raw.Client(leg.commands[1]) as client:
            client.connect()
            client.call(raw.tools_call(leg.tool))
            time.sleep(IDLE)
            status = Path(f"/proc/{client.process.pid}/status")
            if not status.exists():
                return Figures(note="not measured: needs Linux's /proc")
            lines = status.read_text().splitlines()
            [kilobytes] = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
            sizes.append(int(kilobytes) * 1024 / 1e6)
    return Figures(wrapped=tuple(sizes))


# What a wrapper before a URL cannot be faster than: Python and its HTTP library.
LIBRARY = "import aiohttp, os; os.read(0, 65536); os.write(1, b'{}\\n')"


def remote_starts(leg: Leg, seconds: float) -> Figures:
    """From the start of `run URL` to the answer to `initialize`; direct: Python with aiohttp."""
    port = free_port()
    with services.service(services.web_server(port, leg.server), port):
        library = raw.starts([sys.executable, "-c", LIBRARY])
        wrapper = raw.starts(services.remote(leg.rules, services.url(port)))
        figures = interleaved(library, wrapper, seconds)
    return Figures(figures.wrapped, figures.direct, "direct: the import of aiohttp alone")


def sidecar_starts(leg: Leg, seconds: float) -> Figures:
    """From the start of a sidecar to its answer to `initialize`; direct: the server's own."""
    origin = free_port()
    with services.service(services.web_server(origin, leg.server), origin):
        port = free_port()
        upstream = services.upstream(leg.way, origin, leg.server)
        first = _listening(services.web_server(port, leg.server), port)
        second = _listening(services.sidecar(port, leg.rules, *upstream), port)
        return interleaved(first, second, seconds)


def _listening(command: Sequence[str], port: int) -> raw.Timed:
    def once() -> float:
        began = time.perf_counter()
        with services.service(command, port), web_client.Client(port) as client:
            client.call(raw.INITIALIZE)
            return time.perf_counter() - began

    return raw.Timed(once, own_core=False)
