"""A Session between a client and a server that a test speaks for, line by line."""

import json
from collections.abc import Callable
from time import monotonic

from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.session.outputs import (
    Noise,
    Outputs,
    Probe,
    RunInBackground,
    Shape,
    ToClient,
    ToServer,
)
from mcp_abridge.session.session import Session
from mcp_abridge.session.state import SessionState
from mcp_abridge.shaping.pipeline import shape
from mcp_abridge.storage.calls import RecentCalls
from mcp_abridge.storage.meter import Meters, Row
from mcp_abridge.storage.snapshots import Memory

from tests.builders import EMPTY


class Talk:
    """Drives a Session; `to_server`, `to_client`, `probes` and `noise` collect its outputs.

    `lists` are the results of the server, in this order, for the requests for its tools that the
    proxy makes itself, `queries`; without any left, such a request has no response.
    """

    def __init__(
        self,
        rules: RuleSet = EMPTY,
        *,
        calls: RecentCalls | None = None,
        resumable: bool = False,
        deadline: float | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.rules = rules
        self.log: list[str] = []
        self.noise: list[bytes] = []
        self.to_server: list[bytes] = []
        self.to_client: list[bytes] = []
        self.probes: list[Probe] = []
        self.lists: list[bytes] = []
        self.queries: list[bytes] = []
        self.meter = Meters()
        state = SessionState(
            self._rules,
            lambda *_: self.meter.of(None, None),
            self.log.append,
            Memory(),
            calls=calls,
            resumable=resumable,
            deadline=deadline,
            clock=clock,
        )
        self.session = Session(state)

    def _rules(self, server: str | None, client: str | None, version: str | None) -> RuleSet:
        return self.rules

    def client(self, raw: bytes, exchange: bytes = b"") -> None:
        """Send a line as the client."""
        self._take(self.session.from_client(raw, exchange))

    def server(self, raw: bytes, exchange: bytes = b"") -> None:
        """Send a line as the server."""
        self._take(self.session.from_server(raw, exchange))

    def exchange(self, request: bytes, response: bytes) -> bytes:
        """Return the client's response to a request; fails if the server does not get one line."""
        before = len(self.to_server)
        self.client(request)
        assert len(self.to_server) == before + 1
        return self.receive(response)

    def receive(self, response: bytes) -> bytes:
        """Send a line as the server, and return the one line that the client gets."""
        before = len(self.to_client)
        self.server(response)
        [line] = self.to_client[before:]
        return line

    def replied(self, request: bytes) -> bytes:
        """Return the proxy's own response to a request; fails if the server gets a line."""
        lines, before = len(self.to_server), len(self.to_client)
        self.client(request)
        assert len(self.to_server) == lines
        [line] = self.to_client[before:]
        return line

    def silence(self, cause: str = "the server is gone") -> None:
        """Have the last probe go without an answer."""
        self._take(self.session.unanswered(self.probes[-1].token, cause))

    def expire(self, *slots: bytes) -> None:
        """Have the calls answered that have waited for too long, all or these."""
        self._take(self.session.expire(slots or None))

    def counted(self) -> list[Row]:
        """Return the rows of the meter since the last time."""
        return self.meter.drain(Row)

    def _take(self, outputs: Outputs) -> None:
        for output in outputs:
            match output:
                case ToServer(raw):
                    self.to_server.append(raw)
                case ToClient(raw):
                    self.to_client.append(raw)
                case Probe(raw, token) if b'"tools/list"' in raw:
                    self._listed(raw, token)
                case Probe(raw):
                    self.probes.append(output)
                    self.to_server.append(raw)
                case Noise(raw):
                    self.noise.append(raw)
                case RunInBackground(do, then):
                    self._take(then(do()))
                case Shape(job):
                    self._take(self.session.shaped(job, shape(job)))

    def _listed(self, raw: bytes, token: bytes) -> None:
        """Answer the proxy's own request for the tools."""
        self.queries.append(raw)
        if not self.lists:
            self._take(self.session.unanswered(token, "it lists no tools"))
            return
        id = json.dumps(json.loads(raw)["id"]).encode()
        result = self.lists.pop(0)
        self.server(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, result))
