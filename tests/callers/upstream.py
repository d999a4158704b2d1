"""The secretive server over HTTP: a session belongs to the key that has begun it."""

import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.callers.server import Json, Server, with_wrong_ids
from tests.raw_http import ACCEPTED, STREAM, RawRequest, RawServer, Reset, event, whole

_LOOK = 0.2  # seconds after which a stream looks whether its client is there
_SILENCE = b": \n\n"


class _Session:
    """The messages of a session's streams, each with its number as the id of its event."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.messages: list[bytes] = []
        self.news = threading.Condition()

    def add(self, message: Json) -> bytes:
        with self.news:
            self.messages.append(json.dumps(message).encode())
            self.news.notify_all()
            return self._event(len(self.messages))

    def after(self, number: int) -> Iterator[bytes]:
        """Yield what follows a message, for ever: the connection ends it."""
        while True:
            with self.news:
                self.news.wait_for(lambda: len(self.messages) > number, _LOOK)
                ready = range(number + 1, len(self.messages) + 1)
            yield b"".join(map(self._event, ready)) or _SILENCE
            number += len(ready)

    def _event(self, number: int) -> bytes:
        return event(self.messages[number - 1], f"id: {number}")


class Upstream(RawServer):
    """Serves all eras to those whose keys are in `secrets`, where each has its secret."""

    def __init__(self, tickets: Path, secrets: Mapping[str, str]) -> None:
        self._servers = {key: Server(tickets, own) for key, own in secrets.items()}
        self._sessions: dict[str, _Session] = {}
        self._numbers = itertools.count(1)
        super().__init__(self._answer)

    def _answer(self, request: RawRequest) -> Iterator[bytes]:
        # The one is passed on by `auth: forward`, the other one by all routes.
        name = "x-api-key" if "x-api-key" in request.headers else "authorization"
        key = request.headers.get(name, "").removeprefix("Bearer ")
        _, _, of_endpoint = request.path.partition("?stream=")
        id = of_endpoint or request.headers.get("mcp-session-id", "")
        session = self._sessions.get(id)
        if key not in self._servers:
            yield whole(b"", "401 Unauthorized")
        elif id and (session is None or session.key != key):
            yield whole(b"", "404 Not Found")
        elif request.method == "GET" and session is None:
            id, session = self._begin(key)
            yield STREAM + event(f"?stream={id}".encode(), "event: endpoint")
            yield from session.after(0)
        elif request.method == "GET" and session is not None:
            last = int(request.headers.get("last-event-id", len(session.messages)))
            yield STREAM
            yield from session.after(last)
        elif request.method == "DELETE":
            del self._sessions[id]
            yield whole()
        elif "id" not in request.message:
            yield ACCEPTED
        elif of_endpoint and session is not None:
            yield ACCEPTED
            reply = self._servers[key].reply(request.message)
            for message in (*reply.before, reply.answer):
                session.add(message)
        else:
            yield from self._posted(request, key, session)

    def _begin(self, key: str) -> tuple[str, _Session]:
        id = f"session-{next(self._numbers)}"
        self._sessions[id] = _Session(key)
        return id, self._sessions[id]

    def _posted(self, request: RawRequest, key: str, session: _Session | None) -> Iterator[bytes]:
        headers = []
        if request.message["method"] == "initialize":
            id, session = self._begin(key)
            headers.append(f"Mcp-Session-Id: {id}")
        elif request.message["method"] == "subscriptions/listen":
            yield STREAM
            yield from _Session(key).after(0)
        add = (_Session(key) if session is None else session).add
        reply = self._servers[key].reply(request.message)
        response = whole(json.dumps(reply.answer).encode(), "200 OK", *headers)
        match reply.fault:
            case "half":
                yield response[: -len(response) // 50]
                raise Reset
            case "rest":  # on a connection that is used again
                yield response + response
            case "never":
                request.closed_by_client()
                yield b""
            case "late":
                yield STREAM + b"".join(map(add, (reply.answer, *reply.after)))
            case "wrong":
                wrong = with_wrong_ids(reply.answer, [])
                yield STREAM + b"".join(map(add, (*wrong, reply.answer)))
            case "dies":
                raise Reset
            case _ if reply.before:
                yield STREAM + b"".join(map(add, (*reply.before, reply.answer)))
            case _:
                yield response
