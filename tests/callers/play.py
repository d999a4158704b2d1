"""Two callers' steps on one road, and what neither may ever see or suffer.

Nothing that comes to a caller holds the other's secret. An answer is that of its own request. The
other's session does not exist. Whoever commits no fault is answered, and keeps the session.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from tests.callers.roads import (
    ALICE,
    BOB,
    COMMAND,
    HANDSHAKE,
    MOST_SESSIONS,
    SECONDS,
    SSE,
    STATELESS,
    WRAPPED,
    WRAPPED_URL,
    Caller,
    Channel,
    Pending,
    Place,
    Refused,
    Session,
    Stateless,
    asking,
    cancelling,
    channel,
)
from tests.callers.server import Json
from tests.callers.speech import Exchange, Response

ASKING = ("read", "page", "say", "fail", "resource")
ROUGH = ("half", "rest", "dies", "eviction")  # after one of these, a caller may wait in vain
FAULTS = ("", "late", "wrong", "cancellation", *ROUGH)
PATIENCE = 0.1  # seconds for an answer that need not come
OPEN = 4  # steps after which a request without an answer is given up

VIEWS: dict[str, tuple[str, Json]] = {
    "view": ("read", {"view": "rows[1].words"}),
    "next page": ("page", {"offset": 4}),
}
OTHERS = "the other's "
TRESPASSES = ("view", "call", "cancel", "stream", "resume", "end")


class Step(NamedTuple):
    """A step; one that `overlaps` does not wait for its answer."""

    caller: str
    action: str
    era: str
    fault: str = ""
    overlaps: bool = False


class Finding(NamedTuple):
    kind: str
    road: str
    store: str
    step: Step
    text: str


def steps(place: Place, seed: int, number: int) -> Iterator[Step]:
    """Yield random steps in which one of the two commits the rough faults."""
    draw = random.Random(seed)
    rough = draw.choice((ALICE, BOB))
    eras = (HANDSHAKE, STATELESS) if place.wrapping else (HANDSHAKE, SSE, STATELESS)
    for _ in range(number // 2):
        for name in draw.sample((ALICE, BOB), 2):
            era = draw.choice(eras)
            action = draw.choice(actions(place, era))
            faults = FAULTS if name == rough else FAULTS[: -len(ROUGH)]
            fault = draw.choice(faults) if action in ASKING else ""
            if fault == "eviction" and place.road != COMMAND:
                fault = ""
            yield Step(name, action, era, fault, draw.random() < 0.3)


def actions(place: Place, era: str) -> list[str]:
    """Return what can be done on a road in an era; calls are made twice as often as the rest."""
    all_eras = [
        *ASKING,
        *ASKING,
        "read",
        "page",
        "list",
        *VIEWS,
        *(OTHERS + each for each in VIEWS),
        "leave",
    ]
    if place.wrapping:
        return [*all_eras, "end"]
    if era == STATELESS:
        return [*all_eras, "stream", "cancel " + OTHERS + "call"]
    of_session = [f"{each} in {OTHERS}session" for each in TRESPASSES[:3]]
    if era == HANDSHAKE:
        of_session = [f"{each} in {OTHERS}session" for each in TRESPASSES]
        of_session += ["stream", "resume", f"resume {OTHERS}stream"]
    return [*all_eras, *of_session, "cancel " + OTHERS + "call", "end"]


class Open(NamedTuple):
    """A request in progress, asked in a step."""

    pending: Pending
    step: Step
    ticket: int
    number: int
    owed: bool
    certain: bool


class Play:
    """The callers on a road; `findings` has what went wrong, `shown` which secrets were seen."""

    def __init__(self, place: Place, store: str, callers: tuple[Caller, ...]) -> None:
        self.place = place
        self.store = store
        self.callers = {each.name: each for each in callers}
        self.findings: list[Finding] = []
        self.combinations: Counter[tuple[str, ...]] = Counter()
        self.shown: Counter[str] = Counter()
        self._numbers = dict.fromkeys(self.callers, 0)
        self._tickets = 0
        self._rough: set[str] = set()
        self._asked: dict[tuple[int, str], tuple[int, Json]] = {}
        self._open: list[Open] = []
        self._checked: dict[Any, int] = {}
        self._step = Step("", "", "")

    def run(self, every: Iterator[Step] | list[Step], end: float = float("inf")) -> None:
        """Do steps until the `end` of the time."""
        for step in every:
            if monotonic() > end:
                break
            self._step = step
            self._numbers[step.caller] += 1
            caller, other = self.callers[step.caller], self.callers[self._other(step.caller)]
            try:
                if self._do(caller, other, step):
                    road = (self.place.road, step.era, self.store)
                    self.combinations[(*road, step.fault or "none", step.action)] += 1
            except Refused as refused:
                self._report("lost", str(refused), unless=caller)
            self._finish()
            self._look()
        self._finish(last=True)
        self._look()

    def close(self) -> None:
        for caller in self.callers.values():
            for source in caller.sources:
                source.close()

    def _other(self, name: str) -> str:
        return BOB if name == ALICE else ALICE

    def _report(self, kind: str, text: str, unless: Caller | None = None) -> None:
        if unless is None or unless.name not in self._rough:
            finding = Finding(kind, self.place.road, self.store, self._step, text[:600])
            self.findings.append(finding)

    # Steps

    def _do(self, caller: Caller, other: Caller, step: Step) -> bool:
        """Do a step; return False if there is nothing that it could be done to."""
        action = step.action
        if action.endswith(f" in {OTHERS}session"):
            return self._trespass(caller, other, action.partition(" ")[0])
        if action == "leave":
            return self._leave(caller)
        way = self._channel(caller, step.era)
        theirs = other.channels.get(step.era)
        if action in ASKING or action == "list":
            return self._ask(caller, way, step)
        if action.removeprefix(OTHERS) in VIEWS:
            return self._view(caller, way, theirs if action.startswith(OTHERS) else way)
        if action == f"cancel {OTHERS}call":
            ids = [each.pending.id for each in self._open if each.step.caller == other.name]
            for id in ids:
                way.send(cancelling(id))
            return bool(ids)
        if action == "end":
            del caller.channels[step.era]
            return self._end(caller, way)
        if isinstance(way, Stateless):
            pending = way.send(asking(f"listen-{self._number}", "subscriptions/listen"))
            return self._add(pending, 0, owed=False)
        assert isinstance(way, Session)
        if action == "stream":
            caller.hears(way.open(caller))
            return True
        return self._resume(caller, way, theirs if OTHERS in action else way)

    @property
    def _number(self) -> int:
        """The id of a request: the callers' are alike."""
        return self._numbers[self._step.caller]

    def _channel(self, caller: Caller, era: str) -> Channel:
        way = caller.channels.get(era)
        if way is None or way.over:
            way = caller.channels[era] = channel(self.place, caller, era, self._number)
        return way

    def _ask(self, caller: Caller, way: Channel, step: Step) -> bool:
        self._tickets += 1
        ticket, tool = self._tickets, step.action
        (self.place.tickets / str(ticket)).write_text(caller.secret)
        if step.fault in ROUGH:
            self._rough.add(caller.name)
        for _ in range(MOST_SESSIONS + 1 if step.fault == "eviction" else 0):
            with suppress(Refused):
                channel(self.place, caller, HANDSHAKE, self._number)
        told = {"cancellation": "never", "eviction": ""}.get(step.fault, step.fault)
        arguments: Json = {"ticket": ticket, **({"fault": told} if told else {})}
        if tool == "resource":
            message = asking(self._number, "resources/read", uri=f"ticket://{ticket}/{told}")
        elif tool == "list":
            message = asking(self._number, "tools/list")
        else:
            message = self._call(tool, arguments)
        pending = way.send(message)
        if told in ("", "late"):
            self._asked[id(way), tool] = ticket, arguments
        if isinstance(way, Session) and (events := self._events(pending)):
            way.event = events[0]
        if step.fault == "cancellation":
            way.cancel(pending)
        return self._add(
            pending,
            ticket if tool in ASKING else 0,
            owed=caller.name not in self._rough and told != "never",
            certain=told != "wrong",
        )

    def _call(self, tool: str, arguments: Json) -> Json:
        return asking(self._number, "tools/call", name=tool, arguments=arguments)

    def _events(self, pending: Pending) -> list[bytes]:
        [first, *_] = pending.sources
        if self._step.action == "say" and isinstance(first, Exchange):
            first.read(SECONDS if not self._step.fault else PATIENCE)
            return first.events("id")
        return []

    def _view(self, caller: Caller, way: Channel, of: Channel | None) -> bool:
        tool, more = VIEWS[self._step.action.removeprefix(OTHERS)]
        ticket, arguments = self._asked.get((id(of), tool), (0, {}))
        if not ticket:
            return False
        pending = way.send(self._call(tool, {**arguments, **more}))
        return self._add(pending, ticket, owed=caller.name not in self._rough)

    def _resume(self, caller: Caller, way: Session, of: Channel | None) -> bool:
        if not isinstance(of, Session) or not of.event:
            return False
        stream = caller.hears(way.open(caller, of.event))
        while stream.read(PATIENCE):
            pass
        self._count(caller, stream.raw().decode())
        return True

    def _leave(self, caller: Caller) -> bool:
        mine = [each for each in self._open if each.step.caller == caller.name]
        self._open = [each for each in self._open if each not in mine]
        for each in mine:
            self._give_up(each)
        return bool(mine)

    def _end(self, caller: Caller, way: Channel) -> bool:
        self._leave(caller)
        if isinstance(way, Session) and way.path == "/mcp":
            caller.hears(way.end(caller)).read(SECONDS)
        else:
            for source in caller.sources:
                if getattr(way, "stream", None) is source:
                    source.close()
        return True

    def _trespass(self, caller: Caller, other: Caller, what: str) -> bool:
        """Use the other's session; it must be as if there was none."""
        theirs = other.channels.get(self._step.era)
        if not isinstance(theirs, Session):
            return False
        responses = [self._tried(caller, theirs, what, id) for id in (theirs.id[::-1], None)]
        nowhere, there = responses
        if nowhere is None or there is None:
            return False
        if self.place.road == COMMAND and (there.status, there.body) != (404, nowhere.body):
            text = f"{there.status} {there.body[:300]!r}, for no session {nowhere.body[:200]!r}"
            self._report("trespass", text)
        return True

    def _tried(self, caller: Caller, theirs: Session, what: str, id: str | None) -> Response | None:
        attempts: dict[str, Callable[[], Exchange]] = {
            "cancel": lambda: theirs.posted(caller, cancelling(self._number), id),
            "stream": lambda: theirs.open(caller, id=id),
            "resume": lambda: theirs.open(caller, theirs.event or b"1-1", id),
            "end": lambda: theirs.end(caller, id),
        }
        if what in ("view", "call"):
            tool, more = VIEWS["view"]
            _, arguments = self._asked.get((_identity(theirs), tool), (0, {}))
            if not arguments:
                return None
            call = self._call(tool, {**arguments, **(more if what == "view" else {})})
            attempts[what] = lambda: theirs.posted(caller, call, id)
        exchange = caller.hears(attempts[what]())
        end = monotonic() + SECONDS
        while not exchange.over and monotonic() < end:
            if not exchange.read(PATIENCE) and exchange.response().status:
                break  # it is a stream
        return exchange.response()

    # Answers

    def _add(self, pending: Pending, ticket: int, *, owed: bool, certain: bool = True) -> bool:
        number = sum(self._numbers.values())
        self._open.append(Open(pending, self._step, ticket, number, owed, certain))
        return True

    def _finish(self, *, last: bool = False) -> None:
        """Take the answers of the requests that do not overlap the next step."""
        now, still = sum(self._numbers.values()), []
        for each in self._open:
            ends = last or now - each.number >= OPEN
            waits = ends or not each.step.overlaps
            seconds = (SECONDS if each.owed else PATIENCE if each.number == now else 0) * waits
            answer = each.pending.answer(seconds)
            if answer is not None:
                self._judge(each, answer)
            elif each.owed and waits:
                self._report("no answer", f"to {each.step}")
                self._give_up(each)
            elif ends:
                self._give_up(each)
            else:
                still.append(each)
        self._open = still

    def _judge(self, each: Open, answer: Json) -> None:
        caller = self.callers[each.step.caller]
        text = json.dumps(answer)
        tickets = re.findall(r"(?:secret-of-\w+-\w+|spent)/(\d+)/", text)
        certain = each.certain and "its stderr ends with" not in text
        if certain and each.ticket and {*tickets} - {str(each.ticket)}:
            self._report("another's answer", f"to {each.step}: {text}")
        way = caller.channels.get(each.step.era)
        if answer.get("error", {}).get("status") == 404 or "no such session" in text:
            if isinstance(way, Session) and not way.over:
                way.over = True
                self._report("lost", f"{each.step}: {text}", unless=caller)
        self._count(caller, text, each.step.action)

    def _count(self, caller: Caller, text: str, action: str = "") -> None:
        if caller.secret in text:
            self.shown[action or self._step.action] += 1

    def _give_up(self, each: Open) -> None:
        [first, *_] = each.pending.sources
        if isinstance(first, Exchange):
            first.close()

    def _look(self) -> None:
        """Look for what must not be in anything that came to a caller so far."""
        for caller in self.callers.values():
            secret = self.callers[self._other(caller.name)].secret.encode()
            for source in tuple(caller.sources):
                while source.read(0):
                    pass
                raw = source.raw()
                if self._checked.get(source) == len(raw):
                    continue
                self._checked[source] = len(raw)
                for kind, word in (("leak", secret), ("an id of the proxy's own", b'"abridge-')):
                    if word in raw:
                        at = raw.index(word)
                        text = f"{caller.name} got {raw[max(at - 150, 0) : at + 200]!r}"
                        self._report(kind, text)
                        caller.sources.remove(source)
                        break


def _identity(way: Channel) -> int:
    return id(way)
