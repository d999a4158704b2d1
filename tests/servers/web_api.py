"""A web API on loopback that gives fixed answers, for servers that are told where theirs is."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@contextmanager
def web_api(answers: Mapping[str, Any] | Callable[[str], Any]) -> Iterator[str]:
    """Answer each `METHOD /path` of `answers` with its JSON, all else with 404; yield the URL.

    If `answers` is a function, it gets `METHOD /path?query`; bytes are a page of HTML.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = f"{self.command} {self.path}"
            if callable(answers):
                found = answers(asked)
            else:
                found = answers.get(asked.partition("?")[0])
            kind, body = "text/html; charset=utf-8", found
            if not isinstance(found, bytes):
                kind = "application/json"
                body = json.dumps({"error": "Not found"} if found is None else found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
