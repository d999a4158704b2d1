"""The rows of the table, and how each kind of row is measured."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tests.benchmarks import raw, sdk
from tests.benchmarks.commands import cores, direct, proxy, service, sidecar, url, web_server
from tests.benchmarks.measure import Figures, interleaved
from tests.benchmarks.web_client import HttpClient, WrongAnswer
from tests.conformance.suite import free_port
from tests.servers.install import NotInstalled
from tests.soak.footprint import footprint

Measure = Callable[["Leg", float], Figures]
Client = raw.StdioClient | HttpClient
Way = Literal["stdio to stdio", "HTTP to stdio", "stdio to HTTP", "HTTP to HTTP"]
"""How the server speaks, and how the client does. HTTP on either side has HTTP for its equal."""

IDLE = 1.5  # seconds after a call until memory is looked at; by then the ledger has been written


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
    arguments: str = "{}"
    unit: Literal["s", "calls/s", "MB"] = "s"
    way: Way = "stdio to stdio"

    @property
    def request(self) -> bytes:
        return raw.tools_call(self.tool, self.arguments)

    @property
    def commands(self) -> tuple[list[str], list[str]]:
        return direct(), proxy(self.rules, ["--", *direct()])

    def check(self, expected: bytes, answer: bytes) -> None:
        """Raise WrongAnswer unless the wrapper did with an answer what is to be measured."""
        start = answer[:300].decode(errors="replace")
        if self.most is None and answer != expected:
            raise WrongAnswer(f"not the {len(expected)} bytes of a direct answer: {start}")
        if self.most is not None and (len(answer) > self.most or b'"isError":true' in answer):
            raise WrongAnswer(f"{len(answer)} bytes, expected {self.most} at most: {start}")


@contextmanager
def pair(leg: Leg) -> Iterator[tuple[Client, Client]]:
    """Start both sides, with all they talk to, servers on a core that clients leave to them."""
    core = [f"--core={core}" for core in cores()[1:]]
    command = ["--", *direct(core)]
    with ExitStack() as stack:
        enter = stack.enter_context
        if leg.way == "stdio to stdio":
            wrapped = proxy(leg.rules, command)
            yield enter(raw.StdioClient(direct(core))), enter(raw.StdioClient(wrapped))
            return
        origin, port = free_port(), free_port()
        enter(service(web_server(origin, core), origin))
        one = enter(HttpClient(origin))
        if leg.way == "HTTP to stdio":
            yield one, enter(raw.StdioClient(proxy(leg.rules, [url(origin)])))
            return
        upstream = command if leg.way == "stdio to HTTP" else [url(origin)]
        enter(service(proxy(leg.rules, upstream, *sidecar(port)), port))
        yield one, enter(HttpClient(port))


@contextmanager
def both(leg: Leg) -> Iterator[tuple[Client, Client]]:
    """Start and connect both sides, and see that they answer as they should."""
    with pair(leg) as (one, other):
        one.connect()
        other.connect()
        if leg.arguments != "{}":
            # A later page is cut from what an earlier call has left.
            other.call(raw.tools_call(leg.tool))
        leg.check(one.fetch(leg.request), other.fetch(leg.request))
        yield one, other


def shares(seconds: float) -> list[float]:
    """Divide a leg's time among several starts of both commands.

    On which of the cores the system puts processes that talk to each other is luck that lasts.
    """
    starts = max(1, min(4, int(seconds)))
    return [seconds / starts] * starts


def compare(leg: Leg, seconds: float, side: Callable[[Client], raw.Timed]) -> Figures:
    figures = Figures()
    for share in shares(seconds):
        with both(leg) as (one, other):
            figures += interleaved(side(one), side(other), share)
    return figures


def calls(leg: Leg, seconds: float) -> Figures:
    return compare(leg, seconds, lambda client: raw.calls(client, leg.request))


def flights(leg: Leg, seconds: float) -> Figures:
    def side(client: Client) -> raw.Timed:
        assert isinstance(client, raw.StdioClient)
        return raw.flights(client, leg.tool)

    times = compare(leg, seconds, side)
    return Figures(
        tuple(1 / each for each in times.wrapped), tuple(1 / each for each in times.direct)
    )


def starts(leg: Leg, seconds: float) -> Figures:
    first, second = map(raw.starts, leg.commands)
    return interleaved(first, second, seconds)


def sdk_calls(leg: Leg, seconds: float) -> Figures:
    with sdk.connected_clients(leg.commands, leg.tool) as (one, other):
        leg.check(one.answer(), other.answer())
        return interleaved(one, other, seconds)


def typescript_calls(leg: Leg, seconds: float) -> Figures:
    """Calls of the official client for TypeScript; a note has its result without the proxy."""
    first, second = leg.commands
    try:
        plain = sdk.typescript(first, leg.tool, 1)
        wrapped = sdk.typescript(second, leg.tool, max(3, int(3 * seconds)))
    except NotInstalled as missing:
        return Figures(note=f"not measured: {missing}")
    if wrapped.error or leg.most is None or wrapped.size > leg.most:
        raise WrongAnswer(f"{wrapped.size} bytes; {wrapped.error}")
    note = f"direct: {plain.error or 'works'}"
    return Figures(wrapped=tuple(each / 1000 for each in wrapped.milliseconds), note=note)


def resident(leg: Leg, seconds: float) -> Figures:
    """The memory that the wrapper holds when nothing happens, some time after a call."""
    sizes = []
    for _ in shares(min(seconds, 3)):
        with raw.StdioClient(leg.commands[1]) as client:
            client.connect()
            client.call(raw.tools_call(leg.tool))
            time.sleep(IDLE)
            if not Path("/proc").exists():
                return Figures(note="not measured: needs Linux's /proc")
            sizes.append(footprint(client.process.pid).resident)
    return Figures(wrapped=tuple(sizes))
