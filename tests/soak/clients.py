"""The clients of the soak: raw lines or raw HTTP, each answer looked at, none of them lost."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from mcp_abridge.document.message import responds_to

from tests.benchmarks.web_client import WrongAnswer
from tests.builders import call as tool_call
from tests.builders import line
from tests.faults.routes import META, stateless
from tests.faults.sidecar import EVENTS, INITIALIZE, Client, RawResponse, get, post
from tests.raw_http import INITIALIZED, cancel
from tests.soak.calls import Call
from tests.wire import Wire

AT_ONCE = 8  # calls that a client of stdio has in flight
SESSION = 150  # calls of a session over HTTP, about
AFTER = 0.05  # seconds from a call to its cancellation
LONGEST = 60.0  # seconds for an answer


class Work:
    """The calls of several clients together, until there were enough or they are to stop."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.stop = threading.Event()
        self.failures: list[BaseException] = []

    def add(self) -> None:
        """Count a call that is over."""
        with self.lock:
            self.count += 1

    def start_thread(self, work: Callable[[], None]) -> threading.Thread:
        """Have something done in a thread, the failure of which stops all."""

        def run() -> None:
            try:
                work()
            except BaseException as failure:
                self.failures.append(failure)
                self.stop.set()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread


def request_line(call: Call, id: int, meta: dict[str, Any]) -> bytes:
    meta = {**meta, "progressToken": id} if call.progress else meta
    return tool_call(call.tool, call.arguments, id, **({"_meta": meta} if meta else {}))


def check(call: Call, raw: bytes) -> None:
    """Raise WrongAnswer unless an answer has in it what it must have."""
    if call.expected not in raw:
        raise WrongAnswer(f"{call}: {raw[:500].decode(errors='replace')}")


class Lines:
    """A client on the stdin and stdout of a command, in one session for ever."""

    def __init__(self, wire: Wire, next: Callable[[], Call]) -> None:
        self.wire = wire
        self.next = next
        self.id = 10
        wire.answer(INITIALIZE + b"\n", LONGEST)
        wire.write(INITIALIZED + b"\n")

    def run(self, work: Work, most: int) -> None:
        # A client lists the tools from time to time.
        self.id += 1
        self.wire.answer(line(id=self.id, method="tools/list") + b"\n", LONGEST)
        while not (work.stop.is_set() or work.count >= most):
            self._some(work)

    def _some(self, work: Work) -> None:
        """Make some calls, and read until each of them has its one answer."""
        waiting: dict[bytes, Call] = {}
        lines = []
        for _ in range(AT_ONCE):
            call = self.next()
            self.id += 1
            lines.append(request_line(call, self.id, {}))
            if call.cancelled:
                lines.append(cancel(self.id))
                work.add()
            else:
                waiting[b"%d" % self.id] = call
        self.wire.write(b"".join(line + b"\n" for line in lines), LONGEST)
        while waiting:
            line = self.wire.line(LONGEST)
            if not line:
                raise EOFError(bytes(self.wire.errors[-2000:]).decode(errors="replace"))
            id = responds_to(line)
            if id is None:
                continue
            if id not in waiting:
                raise WrongAnswer(f"an answer that nobody waits for: {line[:300]!r}")
            call = waiting.pop(id)
            check(call, line)
            work.add()


class Posts:
    """A client over HTTP: sessions that come and go, of either era."""

    def __init__(self, port: int, random: Random, next: Callable[[], Call]) -> None:
        self.port = port
        self.random = random
        self.next = next
        self.id = 10

    def run(self, work: Work, most: int) -> None:
        while not (work.stop.is_set() or work.count >= most):
            with Client(self.port, LONGEST) as client:
                if self.random.random() < 0.3:
                    self._stateless(client, work, most)
                else:
                    self._session(client, work, most)

    def _some(self, work: Work, most: int) -> Iterator[Call]:
        for _ in range(self.random.randrange(1, 2 * SESSION)):
            if work.stop.is_set() or work.count >= most:
                return
            call = self.next()
            yield call
            work.add()

    def _session(self, client: Client, work: Work, most: int) -> None:
        session = self._ask(client, INITIALIZE)
        own = [f"Mcp-Session-Id: {session.one('mcp-session-id')}"]
        self._ask(client, INITIALIZED, *own)
        self._ask(client, line(id=2, method="tools/list"), *own)
        with self._listening(*own):
            for call in self._some(work, most):
                self._call(client, call, own, {})
        if self.random.random() < 0.8:
            client.send(get("/mcp", *own).replace(b"GET", b"DELETE", 1))
            client.answer()

    @contextmanager
    def _listening(self, *own: str) -> Iterator[None]:
        """Have the stream of GET open, in some sessions."""
        if self.random.random() < 0.7:
            yield
            return
        with Client(self.port, LONGEST) as listener:
            listener.send(get("/mcp", EVENTS, *own))
            assert listener.head().status == 200
            yield

    def _stateless(self, client: Client, work: Work, most: int) -> None:
        listing = line(id=2, method="tools/list", params={"_meta": META})
        self._ask(client, listing, *stateless("", "tools/list"))
        for call in self._some(work, most):
            self._call(client, call, stateless(call.tool), META)

    def _call(self, client: Client, call: Call, own: list[str], meta: dict[str, Any]) -> None:
        self.id += 1
        raw = request_line(call, self.id, meta)
        if call.cancelled:
            with Client(self.port, LONGEST) as another:
                another.send(post(raw, *own))
                if not meta:
                    time.sleep(AFTER)  # or it may be read before the call
                    self._ask(client, cancel(self.id), *own)
        else:
            check(call, message(self._ask(client, raw, *own), self.id))

    def _ask(self, client: Client, raw: bytes, *own: str) -> RawResponse:
        client.send(post(raw, *own))
        response = client.answer()
        if not response.ended:
            raise WrongAnswer(f"cut short: {response.body[-300:]!r}")
        return response


def message(response: RawResponse, id: int) -> bytes:
    answer = (response.events or [response.body])[-1]
    if responds_to(answer) != b"%d" % id:
        raise WrongAnswer(f"HTTP {response.status}, no answer to {id}: {response.body[:300]!r}")
    return answer
