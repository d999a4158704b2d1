"""Two callers' steps on one road, and what neither may ever see or suffer.

Nothing that comes to a caller holds the other's secret. An answer is that to its own request. The
other's session does not exist. Whoever commits no rough fault is answered, and keeps the session.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from tests.callers import roads
from tests.callers.roads import (
    ALICE,
    BOB,
    COMMAND,
    HANDSHAKE,
    INSIDE,
    SECONDS,
    SSE,
    STATELESS,
    Caller,
    Channel,
    Place,
    Refused,
    Session,
    asking,
    notifying,
)
from tests.callers.server import Json
from tests.callers.speech import Exchange, Response, Source, answer_in

ASKING = ("read", "page", "say", "fail", "resource")
VIEWS: dict[str, tuple[str, Json]] = {
    "view": ("read", {"view": "rows[1]"}),
    "next page": ("page", {"offset": 4}),
    "resource's view": ("resource", {"view": "rows[1]"}),
}
TRESPASSES = ("view", "call", "cancel", "stream", "resume", "end")
ROUGH = ("half", "rest", "dies", "eviction")  # after one of these, a caller may wait in vain
FAULTS = ("", "late", "wrong", "cancellation", *ROUGH)
PATIENCE = 0.1  # seconds for an answer that need not come
OPEN = 4  # steps after which a request without an answer is given up


class Step(NamedTuple):
    """A step; one that `overlaps` does not wait for its answer."""

    who: str
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
    """Yield random steps, in which one of the two commits the rough faults."""
    draw = random.Random(seed)
    rough = draw.choice((ALICE, BOB))
    modern = place.wrapping or place.road in (COMMAND, INSIDE)
    eras = (HANDSHAKE, STATELESS) if modern else (HANDSHAKE, SSE, STATELESS)
    for _ in range(number // 2):
        for who in draw.sample((ALICE, BOB), 2):
            era = draw.choice(eras)
            action = draw.choice(actions(place, era))
            fault = draw.choice(FAULTS if who == rough else FAULTS[: -len(ROUGH)])
            if action not in ASKING or (fault == "eviction" and place.road != COMMAND):
                fault = ""
            yield Step(who, action, era, fault, draw.random() < 0.3)


def actions(place: Place, era: str) -> list[str]:
    """Return the actions on a road in an era; those to be done more often stand there twice."""
    every = [*ASKING, *ASKING, "read", "page", "list", "leave", *VIEWS]
    every += [f"the other's {view}" for view in VIEWS]
    if not place.wrapping:
        trespasses = {HANDSHAKE: TRESPASSES, SSE: TRESPASSES[:3], STATELESS: ()}[era]
        every += [f"{what} in the other's session" for what in trespasses]
        every += ["cancel the other's call", *(["stream"] if era != SSE else [])]
        every += ["resume", "resume", "resume the other's stream"] if era == HANDSHAKE else []
    return every if era == STATELESS else [*every, "end"]


class Open(NamedTuple):
    """A request in progress: `due` an answer, which `certain` ones can tell from others."""

    id: int
    sources: list[Source]
    step: Step
    ticket: int
    number: int
    due: bool
    certain: bool


class Play:
    """The callers on a road; `sightings` counts by actions how often their own secrets came."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.findings: list[Finding] = []
        self.combinations: Counter[tuple[str, ...]] = Counter()
        self.sightings: Counter[str] = Counter()
        self._counts = Counter[str]()  # of steps, which number the requests of both alike
        self._rough: set[str] = set()
        self._open: list[Open] = []
        self._sizes: dict[Source, int] = {}
        self._step = Step("", "", "")

    def run(self, scene: Iterable[Step], end: float = float("inf")) -> None:
        """Do steps until the `end` of the time."""
        for step in scene:
            if monotonic() > end:
                break
            self._step = step
            self._counts[step.who] += 1
            caller = self.place.callers[step.who]
            try:
                if self._do(caller, self._other(caller)):
                    road = (self.place.road, step.era, self.place.store)
                    self.combinations[(*road, step.fault or "none", step.action)] += 1
            except Refused as refused:
                self._blame(caller, "lost", str(refused))
            self._finish()
            self._look()
        self._finish(last=True)
        self._look()

    def _other(self, caller: Caller) -> Caller:
        return self.place.callers[BOB if caller.name == ALICE else ALICE]

    def _report(self, kind: str, text: str) -> None:
        place = self.place
        self.findings.append(Finding(kind, place.road, place.store, self._step, text[:600]))

    def _blame(self, caller: Caller, kind: str, text: str) -> None:
        """Report what only the faults of a caller may have brought about."""
        if caller.name not in self._rough:
            self._report(kind, text)

    # Steps

    def _do(self, caller: Caller, other: Caller) -> bool:
        """Do a step; return False if there is nothing that it could be done to."""
        action, era = self._step.action, self._step.era
        theirs = other.channels.get(era)
        if action.endswith(" in the other's session"):
            return isinstance(theirs, Session) and self._trespass(caller, theirs)
        if action == "leave":
            return self._leave(caller)
        way = caller.channels.get(era)
        if way is None or way.over:
            way = caller.channels[era] = roads.channel(self.place, caller, era)
        of = theirs if "other's" in action else way
        if action.removeprefix("the other's ") in VIEWS:
            return of is not None and self._view(way, of)
        if action == "cancel the other's call":
            for each in (mine := [each for each in self._open if each.step.who == other.name]):
                way.send(notifying("cancelled", requestId=each.id))
            return bool(mine)
        if action == "end":
            self._leave(caller)
            caller.channels.pop(era).leave()
            return True
        if action == "stream" and isinstance(way, Session):
            return bool(way.open(caller, way.id))
        if action == "stream":
            return self._send(way, "subscriptions/listen", due=False)
        if action.startswith("resume"):
            return isinstance(way, Session) and isinstance(of, Session) and self._resume(way, of)
        return self._ask(caller, way)

    @property
    def _id(self) -> int:
        return self._counts[self._step.who]

    def _ask(self, caller: Caller, way: Channel) -> bool:
        tool, fault = self._step.action, self._step.fault
        if tool == "list":
            return self._send(way, "tools/list")
        ticket = self._counts.total()
        (self.place.tickets / str(ticket)).write_text(caller.secret)
        if fault in ROUGH:
            self._rough.add(caller.name)
        for _ in range(roads.MOST_SESSIONS + 1 if fault == "eviction" else 0):
            with suppress(Refused):
                roads.channel(self.place, caller, HANDSHAKE)
        wish = {"cancellation": "never", "eviction": ""}.get(fault, fault)
        arguments: Json = {"ticket": ticket, "fault": wish}
        params: Json = {"name": tool, "arguments": arguments}
        if tool == "resource":
            params = arguments = {"uri": f"ticket://{ticket}/{wish}"}
        if wish in ("", "late"):
            way.calls[tool] = ticket, arguments
        method = "resources/read" if tool == "resource" else "tools/call"
        self._send(way, method, ticket, due=wish != "never", certain=wish != "wrong", **params)
        sources = self._open[-1].sources
        if isinstance(way, Session) and tool == "say" and isinstance(sources[0], Exchange):
            while not (ids := sources[0].events("id")):
                if not sources[0].read(PATIENCE if fault else SECONDS):
                    break
            way.first_event = next(iter(ids), way.first_event)
        if fault == "cancellation":
            way.cancel(self._id, sources)
        return True

    def _send(
        self,
        way: Channel,
        method: str,
        ticket: int = 0,
        *,
        due: bool = True,
        certain: bool = True,
        **params: Any,
    ) -> bool:
        sources = way.send(asking(self._id, method, **params))
        due &= way.caller.name not in self._rough
        number = self._counts.total()
        self._open.append(Open(self._id, sources, self._step, ticket, number, due, certain))
        return True

    def _view(self, way: Channel, of: Channel) -> bool:
        tool, more = VIEWS[self._step.action.removeprefix("the other's ")]
        ticket, arguments = of.calls.get(tool, (0, {}))
        asks: Json = {"name": tool, "arguments": {**arguments, **more}}
        # Else a call that is on its way would find that another one has had its secret.
        used = self.place.tickets / f"{ticket}.spent"
        method = "tools/call"
        if tool == "resource":
            method, asks = "resources/read", {"uri": f"{arguments.get('uri')}#view={more['view']}"}
        return used.exists() and self._send(way, method, ticket, **asks)

    def _resume(self, way: Session, of: Session) -> bool:
        if of.first_event:
            stream = way.open(way.caller, way.id, of.first_event)
            stream.read(SECONDS)
            while stream.read(PATIENCE):
                pass
            self._count(way.caller, self._step.action, stream.raw().decode())
        return bool(of.first_event)

    def _leave(self, caller: Caller) -> bool:
        mine = [each for each in self._open if each.step.who == caller.name]
        self._open = [each for each in self._open if each not in mine]
        for each in mine:
            self._give_up(each)
        return bool(mine)

    def _trespass(self, caller: Caller, theirs: Session) -> bool:
        """Use the other's session; it must be as if there was none."""
        what, _, _ = self._step.action.partition(" ")
        ids = theirs.id[::-1], theirs.id
        nowhere, there = (self._use(caller, theirs, what, id) for id in ids)
        words = there.body if there.status == 404 else b""
        if self.place.road == COMMAND and words != nowhere.body:
            self._report("trespass", f"{there} where there is no session {nowhere}")
        return True

    def _use(self, caller: Caller, session: Session, what: str, id: str) -> Response:
        tool, more = VIEWS["view"]
        _, arguments = session.calls.get(tool, (0, {"ticket": 0}))
        if what == "view":
            arguments = {**arguments, **more}
        if what == "stream":
            exchange = session.open(caller, id)
        elif what == "resume":
            exchange = session.open(caller, id, session.first_event or b"1-1")
        elif what == "end":
            exchange = session.end(caller, id)
        elif what == "cancel":
            exchange = session.post(caller, id, notifying("cancelled", requestId=self._id))
        else:
            call = asking(self._id, "tools/call", name=tool, arguments=arguments)
            exchange = session.post(caller, id, call)
        end = monotonic() + SECONDS
        while not exchange.over and monotonic() < end:
            if not exchange.read(PATIENCE) and exchange.response().status:
                break  # it is a stream
        return exchange.response()

    # Answers

    def _finish(self, *, last: bool = False) -> None:
        """Take the answers of the requests that do not overlap the next step."""
        now, rest = self._counts.total(), []
        for each in self._open:
            ends = last or now - each.number >= OPEN
            waits = ends or not each.step.overlaps
            patience = SECONDS if each.due else PATIENCE if each.number == now else 0.0
            answer = answer_in(each.sources, each.id, patience if waits else 0.0)
            if answer is not None:
                self._judge(each, answer)
            elif waits and (each.due or ends):
                if each.due:
                    self._blame(self.place.callers[each.step.who], "no answer", f"to {each.step}")
                self._give_up(each)
            else:
                rest.append(each)
        self._open = rest

    def _judge(self, each: Open, answer: Json) -> None:
        caller, text = self.place.callers[each.step.who], json.dumps(answer)
        tickets = set(re.findall(r"(?:secret-of-\w+-\w+|spent)/(\d+)/", text))
        # The server's last words are wish to all whose calls it has left open.
        if each.certain and tickets > {str(each.ticket)} and "its stderr ends with" not in text:
            self._report("another's answer", f"to {each.step}: {text}")
        way = caller.channels.get(each.step.era)
        ended = "no such session" in text or "status 404" in text
        if ended and isinstance(way, Session) and not way.over:
            way.over = True
            self._blame(caller, "lost", f"{each.step}: {text}")
        self._count(caller, each.step.action, text)

    def _count(self, caller: Caller, action: str, text: str) -> None:
        self.sightings[action] += caller.secret in text

    def _give_up(self, each: Open) -> None:
        if isinstance(each.sources[0], Exchange):
            each.sources[0].close()

    def _look(self) -> None:
        """Look for what must not be in anything that came to a caller so far."""
        for caller in self.place.callers.values():
            words = {"leak": self._other(caller).secret, "an id of the proxy's own": '"abridge-'}
            for source in caller.sources:
                while source.read(0):
                    pass
                raw = source.raw().decode(errors="replace")
                if self._sizes.get(source, 0) < len(raw):
                    new = raw[max(self._sizes.get(source, 0) - 100, 0) :]
                    self._sizes[source] = len(raw)
                    for kind, word in words.items():
                        if word in new:
                            at = new.index(word)
                            text = new[max(at - 150, 0) : at + 150]
                            self._report(kind, f"{caller.name} got {text}")
