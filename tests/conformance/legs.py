"""The legs: what stands between the suite and the everything-server."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.conformance.install import everything_on_stdio

RULES = Path(__file__).resolve().parent / "rules.yaml"
PROXY = [sys.executable, "-m", "mcp_abridge"]
REVISIONS = {"2025-11-25": (33, 84), "2026-07-28": (40, 152)}
"""The revisions of the protocol that are run: how many scenarios and passed checks each has."""


class Leg(NamedTuple):
    """One way through the proxy.

    `command` returns what to start, by the port to serve and the URL of the everything-server.
    `short` are the revisions of the short form: one leg with each is enough, over stdio, each
    session of the handshake era starts a server of its own, which takes long, and `run` has what
    `child` has, too.
    `reshapes`: whether answers are to be other ones.
    `cannot` are checks that pass directly and cannot pass here: revision, scenario and id.
    """

    command: Callable[[int, str], list[str]]
    short: tuple[str, ...] = tuple(REVISIONS)
    reshapes: bool = False
    cannot: frozenset[tuple[str, str, str]] = frozenset()


# The tool has the stream of its call closed before it answers. A server on stdio has none that it
# could close, and towards `run` the stream is resumed by the proxy, which stdio does not show: the
# answer comes on the stream of the call, and nothing is left to resume.
RESUME = ("2025-11-25", "server-sse-polling", "server-sse-disconnect-resume")
# Before a command, `serve` answers with JSON if nothing comes before the response, as the
# specification allows: the suite then has no streams to look at.
STREAMS = ("2025-11-25", "server-sse-multiple-streams", "server-sse-streams-functional")
ON_STDIO = frozenset({RESUME, STREAMS})


def serve(port: int, rules: str, *upstream: str) -> list[str]:
    return [*PROXY, "serve", "--listen", f"127.0.0.1:{port}", "--rules", rules, *upstream]


LEGS = {
    "serve": Leg(
        # The everything-server over HTTP, no rules.
        lambda port, url: serve(port, "none", url),
        short=("2025-11-25",),
    ),
    "rules": Leg(
        # The same, with rules that cut every long text.
        lambda port, url: serve(port, str(RULES), url),
        short=(),
        reshapes=True,
    ),
    "child": Leg(
        # The everything-server over stdio, started by `serve`.
        lambda port, _: serve(port, "none", "--", *everything_on_stdio()),
        short=(),
        cannot=ON_STDIO,
    ),
    "run": Leg(
        # `run URL` over stdio, started by `serve`: the suite itself speaks HTTP only.
        lambda port, url: serve(port, "none", "--", *PROXY, "run", "--rules", "none", url),
        short=("2026-07-28",),
        cannot=ON_STDIO,
    ),
}
