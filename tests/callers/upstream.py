"""The secretive server over HTTP: a session belongs to the key that has begun it."""

import json
import threading
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

from tests.callers.server import Json, Server, with_wrong_ids
from tests.raw_http import ACCEPTED, STREAM, RawRequest, RawServer, Reset, event, whole

LOOK = 0.2  # seconds after which a stream looks whether its client is there


class Session:
    """The events of a session's streams, each with its number as its id."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.events: list[bytes] = []
        self.news = threading.Condition()

    def add(self, *messages: Json) -> bytes:
        with self.news:
            start = len(self.events)
            for number, message in enumerate(messages, start + 1):
                self.events.append(event(json.dumps(message).encode(), f"id: {number}"))
            self.news.notify_all()
            return b"".join(self.events[start:])

    def after(self, number: int) -> Iterator[bytes]:
        """Yield what follows an event, until the connection ends."""
        while True:
            with self.news:
                if len(self.events) <= number:
                    self.news.wait(LOOK)
                events = self.events[number:]
            yield b"".join(events) or b": \n\n"
            number += len(events)


class Upstream(RawServer):
    """Serves all eras to those whose keys are in `secrets`, where each has its secret."""

    def __init__(self, tickets: Path, secrets: Mapping[str, str]) -> None:
        self._servers = {key: Server(tickets, own) for key, own in secrets.items()}
        self._sessions: dict[str, Session] = {}
        self._numbers = count(1)
        super().__init__(self._answer)

    def _answer(self, request: RawRequest) -> Iterator[bytes]:
        # `auth: forward` passes on the one, all routes pass on the other.
        header = "x-api-key" if "x-api-key" in request.headers else "authorization"
        key = request.headers[header].removeprefix("Bearer ")
        endpoint = request.path.partition("?stream=")[2]
        id = endpoint or request.headers.get("mcp-session-id", "")
        session = self._sessions.get(id)
        if id and (session is None or session.key != key):
            yield whole(b"", "404 Not Found")
        elif request.method == "GET":
            yield STREAM
            if session is None:
                id, session = self._begin(key)
                yield event(f"?stream={id}".encode(), "event: endpoint")
            yield from session.after(int(request.headers.get("last-event-id", len(session.events))))
        elif request.method == "DELETE":
            del self._sessions[id]
            yield whole()
        elif "id" not in request.message:
            yield ACCEPTED
        elif endpoint and session is not None:
            yield ACCEPTED
            reply = self._servers[key].reply(request.message)
            session.add(*reply.before, reply.answer)
        else:
            yield from self._posted(request, key, session or Session(key))

    def _begin(self, key: str) -> tuple[str, Session]:
        id = f"session-{next(self._numbers)}"
        self._sessions[id] = Session(key)
        return id, self._sessions[id]

    def _posted(self, request: RawRequest, key: str, session: Session) -> Iterator[bytes]:
        reply = self._servers[key].reply(request.message)
        begins = request.message["method"] == "initialize"
        headers = [f"Mcp-Session-Id: {self._begin(key)[0]}"] if begins else []
        response = whole(json.dumps(reply.answer).encode(), "200 OK", *headers)
        if request.message["method"].endswith("/listen"):
            yield STREAM
            yield from session.after(0)
        elif reply.fault == "half":
            yield response[: -len(response) // 50]
            raise Reset
        elif reply.fault == "rest":
            yield response + response  # the connection is used again
        elif reply.fault == "never":
            request.closed_by_client()
            yield b""
        elif reply.fault == "dies":
            raise Reset
        elif reply.fault or reply.before:
            wrong = with_wrong_ids(reply.answer, []) if reply.fault == "wrong" else []
            late = reply.late if reply.fault == "late" else []
            yield STREAM + session.add(*reply.before, *wrong, reply.answer, *late)
        else:
            yield response
