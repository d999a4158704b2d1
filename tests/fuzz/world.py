"""A session with a client and a server that say what they like, its outputs in any order."""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import partial

from mcp_abridge.document import message
from mcp_abridge.errors import StoreError
from mcp_abridge.session.inflight import PendingOwnRequest
from mcp_abridge.session.outputs import (
    Noise,
    Output,
    Outputs,
    Probe,
    RunInBackground,
    Shape,
    ToClient,
    ToServer,
)
from mcp_abridge.session.session import Session
from mcp_abridge.session.state import SessionState
from mcp_abridge.shaping import pipeline
from mcp_abridge.storage.calls import RecentCalls
from mcp_abridge.storage.meter import Meters
from mcp_abridge.storage.snapshots import Key, Memory, Snapshot
from msgspec import Struct

from tests.fuzz import covered
from tests.fuzz.account import Account, Request
from tests.fuzz.fuzzer import Wrong
from tests.fuzz.grammar import Dice
from tests.fuzz.reading import called_tools, envelope, limits

_ENDS = 512
_LONG = 700  # bytes from which it is asked whether a line may be streamed


class Completion(Struct):
    """The end of slow work, which the session is to be told."""

    output: Shape | RunInBackground
    then: Callable[[], Outputs]


class Task(Struct):
    """The outputs of one message that are still to be carried out."""

    outputs: deque[Output | Completion]
    exchange: bytes


class Away(Memory):
    """A store that may be away when the next snapshot is looked up."""

    away = False

    def get(self, key: Key) -> Snapshot | None:
        if self.away:
            raise StoreError("the store is away")
        return super().get(key)


class World:
    """One trace: `step` does something, `end` the rest."""

    def __init__(self, dice: Dice) -> None:
        self.rulesets = covered.rulesets(dice)
        self.rules = self.rulesets[0]
        self.exchanges = dice.pick(((b"",), (b"",), (b"1:", b"2:")))
        self.now = 0.0
        self.log: list[str] = []
        self.meter = Meters()
        self.store = Away(number=dice.pick((1, 2, 64)))
        state = SessionState(
            lambda *_: self.rules,
            lambda *_: self.meter.of(None, None),
            self.log.append,
            self.store,
            calls=RecentCalls(),
            resumable=dice.one_in(3),
            deadline=dice.pick((None, None, 5.0)),
            clock=lambda: self.now,
        )
        self.session = Session(state)
        self.account = Account()
        self.inbox: list[Request] = []
        self.answered: list[tuple[bytes, bytes]] = []
        self.tasks: list[Task] = []
        self.probes: dict[bytes, bytes] = {}
        self.ids: list[str] = []
        self.mark = 0
        self.history: list[str] = []

    def state(self) -> Hashable:
        session = self.session.state
        waiting = session.inflight.pending.values()
        return (
            min(len(waiting), 4),
            min(len(session.inflight.suspended), 2),
            min(len(self.tasks), 3),
            any(isinstance(pending, PendingOwnRequest) for pending in waiting),
            any(pending.as_task for pending in waiting),
            bool(session.stored),
            self.rulesets.index(self.rules),
        )

    # Lines of client and server

    def client_says(self, dice: Dice, raw: bytes) -> None:
        exchange = dice.pick(self.exchanges)
        self.history.append(f"client says: {exchange!r} {raw!r}")
        self.account.client_says(raw, exchange)
        free = self.account.free(raw) and not self._withholding(raw, exchange)
        outputs = self.session.from_client(raw, exchange)
        # Meanwhile a list that other rules have changed may be looked at and announced.
        through = tuple(each for each in outputs if not isinstance(each, RunInBackground))
        if free and through != (ToServer(raw),):
            raise Wrong("what no rule is for goes to the server as it came", f"{outputs}")
        hidden = {tool for tool in covered.TOOLS if self._hidden(tool)}
        for output in outputs:
            if isinstance(output, ToServer) and (tools := called_tools(output.raw) & hidden):
                raise Wrong("a hidden tool is never called", f"{tools}: {raw!r}")
        self.take(outputs, exchange)

    def _withholding(self, raw: bytes, exchange: bytes) -> bool:
        """Return True if a call whose answer may be withheld waits under the id of a request."""
        read = envelope(raw)
        key = None if read is None else read.key
        waiting = key and self.session.state.inflight.pending.get(exchange + key)
        return bool(
            waiting and not waiting.query and waiting.rule and waiting.rule.failure_policy.withholds
        )

    def _hidden(self, tool: str) -> bool:
        covering = self.rules.covering(tool)
        return self.rules.withheld(tool) is not None or any(rule.hides for rule in covering)

    def server_says(self, dice: Dice, raw: bytes, exchange: bytes) -> None:
        self.history.append(f"server says: {exchange!r} {raw!r}")
        self.account.server_says(raw, exchange)
        if exchange == b"" and dice.one_in(40) and b'"result"' in raw:
            return self._discard(raw)
        if exchange == b"" and len(raw) >= _LONG and self.session.may_stream(raw[:_ENDS]):
            self._to_client(raw, exchange)
            self.session.streamed(raw[:_ENDS], len(raw))
            return None
        outputs = self.session.from_server(raw, exchange)
        if self.account.answers_free(raw, exchange) and outputs != (ToClient(raw),):
            raise Wrong("what no rule is for goes to the client as it came", f"{outputs}")
        self.take(outputs, exchange)
        return None

    def _discard(self, raw: bytes) -> None:
        key = message.response_key(raw[:_ENDS], raw[-_ENDS:])
        if key is None or not self.session.awaits([key]):
            return
        instead = message.error(key, -1, "too long")
        self.account.of_server.setdefault(b"", set()).add(instead)
        outputs = self.session.from_server(instead)
        # The session may have guessed which request that answers.
        self.account.late(outputs, b"")
        self.take(outputs, b"")

    def unanswered(self, token: bytes, cause: str) -> None:
        exchange = self.probes.pop(token)
        self.take(self.session.unanswered(token, cause), exchange)

    def slots_of(self, exchange: bytes) -> list[bytes]:
        return [slot for slot in self.account.requests if slot.startswith(exchange)]

    # Outputs

    def take(self, outputs: Outputs, exchange: bytes) -> None:
        if outputs:
            self.tasks.append(Task(deque(outputs), exchange))

    def carry(self, task: Task, dice: Dice | None) -> None:
        output = task.outputs.popleft()
        if not task.outputs:
            self.tasks.remove(task)
        exchange = task.exchange
        if isinstance(output, ToServer):
            self._to_server(output.raw, exchange)
        elif isinstance(output, ToClient):
            self._to_client(output.raw, exchange)
        elif isinstance(output, Probe):
            self.probes[output.token] = exchange
            self._to_server(output.raw, exchange)
        elif isinstance(output, Shape):
            then = partial(self.session.shaped, output.job, pipeline.shape(output.job))
            self._follow(task, (Completion(output, then),))
        elif isinstance(output, RunInBackground):
            self.store.away = dice is not None and dice.one_in(12)
            self._follow(task, (Completion(output, partial(output.then, output.do())),))
        elif isinstance(output, Completion):
            self._follow(task, output.then())
        elif not isinstance(output, Noise):
            raise Wrong("an output is one that a driver knows", repr(output))

    def _follow(self, task: Task, outputs: Sequence[Output | Completion]) -> None:
        """Carry out the consequences of an output before the rest of its task."""
        if not task.outputs and outputs:
            self.tasks.append(task)
        task.outputs.extendleft(reversed(outputs))

    def _to_client(self, raw: bytes, exchange: bytes) -> None:
        self.history.append(f"client hears: {exchange!r} {raw!r}")
        self.account.client_hears(raw, exchange)

    def _to_server(self, raw: bytes, exchange: bytes) -> None:
        self.history.append(f"server hears: {exchange!r} {raw!r}")
        strict = called_tools(raw) == {"strict"} and self.rulesets == [self.rules]
        if strict and self.rules.covering("strict") and max(limits(raw), default=0) > 10:
            raise Wrong("a refused argument never reaches the server", repr(raw))
        self.inbox += self.account.server_hears(raw, exchange)

    # The end

    def end(self) -> None:
        self.flush()
        for token in list(self.probes):
            self.unanswered(token, "the server is gone")
            self.flush()
        for exchange in self.exchanges:
            pending = self.session.state.inflight.pending.items()
            slots = [slot for slot, each in pending if each.exchange == exchange]
            lines = self.session.fail_pending("the server is gone", slots)
            self.take(tuple(map(ToClient, lines)), exchange)
        self.flush()
        self.account.settle()
        inflight = self.session.state.inflight
        if inflight.pending or inflight.suspended:
            raise Wrong("nothing is left at the end", f"{inflight.pending}")
        failures = [line for line in self.log if "the proxy failed" in line]
        if failures:
            raise Wrong("the proxy never fails on a message", failures[0])

    def flush(self, exchange: bytes | None = None) -> None:
        while tasks := [each for each in self.tasks if exchange in (None, each.exchange)]:
            self.carry(tasks[0], None)
