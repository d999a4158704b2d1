"""A session in memory: the server is a function, and the client reads a list.

It drives a Session as a transport does, with the same snapshots, so that its messages are those
that a client would get.
"""

from collections import deque
from collections.abc import Callable

from proxy.ruleset.rule import RuleSet
from proxy.session.outputs import (
    DropSnapshots,
    Forward,
    LoadSnapshot,
    Notify,
    Output,
    Probe,
    Reply,
    Shape,
    StoreSnapshot,
)
from proxy.session.session import Session
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.shaping.pipeline import shape
from proxy.storage.meter import Meters
from proxy.storage.meter import OutcomeKind as Word
from proxy.storage.snapshots import Memory

Server = Callable[[bytes], bytes | None]


class InMemoryTransport:
    """One session; `server` takes a line and returns its response, or None for no response.

    `probed` does the same for the probes of the proxy. `shaped` are the responses that a rule was
    run on, with the result of each, `words` the outcome of each call, `log` the logged messages.
    """

    def __init__(self, rules: RuleSet, server: Server, probed: Server = lambda line: None) -> None:
        self.log: list[str] = []
        self.shaped: list[tuple[ShapeJob, ShapeResult]] = []
        self._server = server
        self._probed = probed
        self._store = Memory()
        self.words: list[Word] = []
        self._meters = Meters(lambda row: self.words.append(row.outcome))
        self._session = Session(lambda *_: rules, self._meters.of, self.log.append)

    def warnings(self) -> list[str]:
        """Return the kinds of the warnings since the last call, each once."""
        return [each.kind for each in self._meters.drain_warnings()]

    def say(self, line: bytes) -> list[bytes]:
        """Send `line` as the client, and return the lines that the client then gets."""
        session = self._session
        got: list[bytes] = []
        waiting: deque[tuple[Output, bool]] = deque()

        def add(outputs: tuple[Output, ...], *, of_client: bool) -> None:
            waiting.extend((output, of_client) for output in outputs)

        add(session.from_client(line), of_client=True)
        while waiting:
            output, of_client = waiting.popleft()
            match output:
                case Forward(raw):
                    if not of_client:
                        got.append(raw)
                    elif (answer := self._server(raw)) is not None:
                        add(session.from_server(answer), of_client=False)
                case Notify(raw):
                    got.append(raw)
                case Reply(raw):
                    if of_client:
                        got.append(raw)
                    elif (answer := self._server(raw)) is not None:
                        add(session.from_server(answer), of_client=False)
                case Probe(raw, token):
                    if (answer := self._probed(raw)) is not None:
                        add(session.from_server(answer), of_client=False)
                    else:
                        add(session.unanswered(token), of_client=True)
                case LoadSnapshot(token, key):
                    add(session.loaded(token, self._store.get(key)), of_client=True)
                case Shape(job):
                    outcome = shape(job)
                    self.shaped.append((job, outcome))
                    add(session.shaped(job, outcome), of_client=False)
                case StoreSnapshot(key, snapshot):
                    self._store.put(key, snapshot)
                case DropSnapshots(key):
                    self._store.drop(key)
        return got
