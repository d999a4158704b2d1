"""How the rows about HTTP are measured that are more than one call after the other."""

import sys
from collections.abc import Sequence
from time import perf_counter

from tests.benchmarks import raw, services, ways, web_client
from tests.benchmarks.kinds import Leg, both, shares
from tests.benchmarks.measure import Figures, interleaved
from tests.conformance.suite import free_port

# What a wrapper before a URL cannot be faster than: Python and its HTTP library.
LIBRARY = "import aiohttp, os; os.read(0, 65536); os.write(1, b'{}\\n')"


def firsts(leg: Leg, seconds: float) -> Figures:
    """The first byte of the body of each answer."""
    figures = Figures()
    for share in shares(seconds):
        with both(leg) as (one, other):
            assert isinstance(one, web_client.Client)
            assert isinstance(other, web_client.Client)
            sides = web_client.Firsts(one, leg.request), web_client.Firsts(other, leg.request)
            figures += interleaved(*sides, share)
    return figures


def forms(leg: Leg, seconds: float) -> Figures:
    """The same call through the proxy as JSON, in place of the direct one, and as a stream."""
    request = leg.request
    figures = Figures(note="both through the proxy: as JSON, as a stream")
    accepts = web_client.JSON, web_client.STREAM
    for share in shares(seconds):
        with ways.through(leg.rules, leg.pinned().server, accepts) as (json, stream):
            for client in (json, stream):
                client.connect()
            leg.check(json.answer(request), stream.answer(request))
            figures += interleaved(raw.Calls(json, request), raw.Calls(stream, request), share)
    return figures


def remote_starts(leg: Leg, seconds: float) -> Figures:
    """From the start of `run URL` to the answer to `initialize`; direct: Python with aiohttp."""
    port = free_port()
    with services.service(services.web_server(port, leg.server), port):
        library = raw.Starts([sys.executable, "-c", LIBRARY])
        wrapper = raw.Starts(services.remote(leg.rules, services.url(port)))
        figures = interleaved(library, wrapper, seconds)
    return Figures(figures.wrapped, figures.direct, "direct: the import of aiohttp alone")


def sidecar_starts(leg: Leg, seconds: float) -> Figures:
    """From the start of a sidecar to its answer to `initialize`; direct: the server's own."""
    origin = free_port()
    with services.service(services.web_server(origin, leg.server), origin):
        port = free_port()
        upstream = ways.upstream(leg.way, origin, leg.server)
        first = Starts(services.web_server(port, leg.server), port)
        second = Starts(services.sidecar(port, leg.rules, *upstream), port)
        return interleaved(first, second, seconds)


class Starts:
    """From the start of a process that listens to its answer to `initialize`."""

    def __init__(self, command: Sequence[str], port: int) -> None:
        self.command = command
        self.port = port

    def times(self, calls: int) -> list[float]:
        taken = []
        for _ in range(calls):
            began = perf_counter()
            with (
                services.service(self.command, self.port),
                web_client.Client(self.port) as client,
            ):
                client.call(raw.INITIALIZE)
                taken.append(perf_counter() - began)
        return taken
