"""Targets of the faults: a sidecar before an HTTP server, before a command, and `run URL`.

Each makes sure that the next request is answered as ever, and that nothing is left of the fault.
"""

import itertools
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.naughty import result
from tests.faults.processes import until
from tests.faults.sidecar import INITIALIZE, RawResponse, Sidecar, call, log_messages, post, soon
from tests.faults.wrapper import OWN, Wrapped
from tests.raw_http import ACCEPTED, Answer, RawRequest, RawServer, initialized, whole

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_CLOSE = "Connection: close"


class Naughty(RawServer):
    """An HTTP server that answers what it is told to whoever calls the tool `fault`, or GETs.

    Everything else it answers well. It keeps no connection, so that none is counted as left.
    """

    def __init__(self, fault: Answer | bytes = b"", port: int = 0) -> None:
        self.fault = fault
        self.sessions = itertools.count(1)
        super().__init__(self._answer, port)

    def _answer(self, request: RawRequest) -> Iterator[bytes]:
        if request.method == "GET" or b'"fault"' in request.body:
            if isinstance(self.fault, bytes):
                yield from (closing(self.fault), b"")
            else:
                yield from self.fault(request)
        elif request.method != "POST":
            yield whole(b"", "200 OK", _CLOSE)
        elif request.message.get("method") == "initialize":
            session = f"Mcp-Session-Id: secret-session-{next(self.sessions)}"
            yield whole(initialized(request.id), "200 OK", session, _CLOSE)
        elif "id" in request.message:
            yield whole(result(request.id), "200 OK", _CLOSE)
        else:
            yield closing(ACCEPTED)

    def faults(self) -> list[RawRequest]:
        return [request for request in self.requests if b'"fault"' in request.body]


def closing(raw: bytes) -> bytes:
    """Return an answer that says that its connection will be closed, so that nobody uses it."""
    return raw.replace(b"\r\n", f"\r\n{_CLOSE}\r\n".encode(), 1)


class Remote:
    """A sidecar before such a server."""

    def __init__(self, sidecar: Sidecar, server: Naughty) -> None:
        self.holds = self.sidecar = sidecar
        self.server = server
        self.ids = itertools.count(1000)

    def works(self) -> None:
        id = next(self.ids)
        response = self.sidecar.post(call(id))
        assert (response.status, response.body) == (200, result(b"%d" % id))

    def fails(self, status: int, seconds: float = 1.0) -> Iterator[list[bytes]]:
        """Make a call of `fault` in either era; yield its messages, JSON having this status."""
        for raw in (post(call(2, "fault")), modern(2, "fault")):
            with soon(seconds):
                response = self.sidecar.ask(raw)
            assert response.ended
            assert response.status == (200 if response.events else status)
            yield response.messages

    def has_said(self, pattern: str) -> None:
        failures = self.sidecar.failures(2)
        assert len(failures) == 2
        assert all(re.search(pattern, each) for each in failures), failures

    @contextmanager
    def sound(self, fault: Answer | bytes = b"") -> Iterator[None]:
        """Let the server be at fault for a while; what happens leaves nothing behind."""
        self.server.requests.clear()
        self.server.fault = fault
        with left_clean(self.sidecar):
            yield
            self.works()
        self.sidecar.skip()


class Local:
    """A sidecar before a command, with a session that goes on through all faults."""

    def __init__(self, sidecar: Sidecar) -> None:
        self.sidecar = sidecar
        self.session = sidecar.begin()
        self.headers: tuple[str, ...] = (self.session,)
        self.ids = itertools.count(1000)

    def messages(self, raw: bytes) -> list[bytes]:
        """Make a request of the session; return what comes until its answer."""
        response = self.sidecar.post(raw, *self.headers)
        assert response.ended
        return response.messages

    def ask(self, raw: bytes) -> bytes:
        """Make a request of the session; return its one answer."""
        [answer] = self.messages(raw)
        return answer

    def eras(self, tool: str) -> tuple[tuple[int, bytes], tuple[int, bytes]]:
        """Return a call of the session and a stateless one, each with its id."""
        return (2, post(call(2, tool), self.session)), (3, modern(3, tool))

    @property
    def errors(self) -> bytearray:
        return self.sidecar.errors

    def log(self) -> list[str]:
        return log_messages(bytes(self.errors))

    def works(self) -> None:
        id = next(self.ids)
        for raw in (post(call(id), self.session), modern(id)):
            assert answer_of(self.sidecar.ask(raw)) == result(b"%d" % id)

    @contextmanager
    def sound(self) -> Iterator[None]:
        """See to it that the test leaves nothing behind."""
        self.works()
        with left_clean(self.sidecar):
            yield
            self.works()
        self.sidecar.skip()


@contextmanager
def left_clean(sidecar: Sidecar) -> Iterator[None]:
    """See to it that no request, descriptor, child or thread is left of what happens."""
    before = sidecar.resources
    sidecar.skip()
    yield
    sidecar.settles(before)
    assert sidecar.threads <= _THREADS, "more threads than its pools may have"


_THREADS = 16 + (os.cpu_count() or 1)


class Bridge(Wrapped):
    """`run URL`: a client on stdin and stdout of the command, before a server at a URL."""

    def __init__(self, server: Naughty, *options: str) -> None:
        own = [] if "--rules" in options else ["--rules", "none"]
        super().__init__([*OWN, *own, *options, server.url])
        self.server = server
        assert self.ask(INITIALIZE) == initialized(b"1")

    def fault(self) -> list[bytes]:
        """Make a call of `fault`; return the lines up to its answer."""
        return self.messages(call(2, "fault"))

    def works(self) -> None:
        id = next(self.ids)
        # More of the last answer may come before.
        assert self.messages(call(id))[-1] == result(b"%d" % id)

    def fails(self, status: int, seconds: float = 1.0) -> Iterator[list[bytes]]:
        """Make a call of `fault`; yield its messages."""
        with soon(seconds):
            yield self.fault()

    def has_said(self, pattern: str) -> None:
        until(lambda: any(re.search(pattern, line) for line in self.log()))

    @contextmanager
    def sound(self, fault: Answer | bytes = b"") -> Iterator[None]:
        """Let the server be at fault for a while; what happens leaves nothing behind."""
        self.server.requests.clear()
        self.server.fault = fault
        before = self.holds.descriptors
        yield
        self.works()
        until(lambda: self.holds.descriptors <= before)
        assert self.holds.children == set()


def modern(id: int | str, name: str = "ok", *headers: str, **params: object) -> bytes:
    body = call(id, name, **{"_meta": META, **params})
    return post(body, *stateless(name), *headers)


def stateless(name: str, method: str = "tools/call") -> list[str]:
    own = [f"Mcp-Protocol-Version: {MODERN}", f"Mcp-Method: {method}"]
    return [*own, f"Mcp-Name: {name}"] if name else own


def answer_of(response: RawResponse) -> bytes:
    """Return the one response in an answer, JSON or an event stream."""
    assert (response.status, response.ended) == (200, True), response
    [answer] = response.messages
    return answer


def failure(raw: bytes, id: int | str) -> str:
    """Return the message of an error, a result or not; the error must answer the request `id`."""
    message = json.loads(raw)
    assert message["id"] == id
    if "error" in message:
        error: str = message["error"]["message"]
        return error
    assert message["result"]["isError"] is True
    [block] = message["result"]["content"]
    text: str = block["text"]
    return text


def by_both(row: int) -> pytest.MarkDecorator:
    """Have a test show a row before a URL, by a sidecar and over `run URL`."""
    ways = {"remote": "http", "bridge": "stdio"}
    marked = [pytest.param(name, marks=pytest.mark.fault(row, way)) for name, way in ways.items()]
    return pytest.mark.parametrize("target", marked, indirect=True)
