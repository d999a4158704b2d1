"""A client of HTTP that looks at bytes only: one connection, which it keeps."""

from functools import lru_cache
from time import perf_counter

from tests.benchmarks.raw import INITIALIZE, INITIALIZED, TOOLS_LIST
from tests.faults.sidecar import Client, RawResponse, post

post = lru_cache(maxsize=16)(post)


class WrongAnswer(Exception):
    """An answer that is not what was asked for: its status, or its beginning."""


class HttpClient(Client):
    """A connection to a port of this machine, and the session that it is in.

    `first_byte` is the time at which an answer began. Raises EOFError if the connection ends before
    an answer does, and WrongAnswer.
    """

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.headers = [f"Host: 127.0.0.1:{port}"]
        self.first_byte = 0.0

    def connect(self) -> None:
        session = self.ask(INITIALIZE).fields.get("mcp-session-id")
        self.headers += ["Mcp-Protocol-Version: 2025-11-25"]
        self.headers += [f"Mcp-Session-Id: {session}"] if session else []
        self.ask(INITIALIZED)
        self.ask(TOOLS_LIST)

    def call(self, request: bytes) -> bytes:
        return self.ask(request).body

    def fetch(self, request: bytes) -> bytes:
        return self.ask(request).messages[-1].strip()

    def ask(self, request: bytes, *headers: str) -> RawResponse:
        self.send(post(request, *self.headers, *headers))
        self.more()
        self.first_byte = perf_counter()
        response = self.answer()
        if not response.ended or not 200 <= response.status < 300:
            cut = "" if response.ended else ", cut short"
            raise WrongAnswer(f"HTTP {response.status}{cut}: {response.body[:200]!r}")
        return response
