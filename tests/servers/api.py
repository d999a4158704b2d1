"""An HTTP API on loopback, for servers that stand before one: a path is answered by a value."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import orjson


@contextmanager
def api(answer: Callable[[str], Any]) -> Iterator[str]:
    """Serve `answer` of the path with its query, and yield the address, which ends without a slash.

    Bytes are a page of HTML, None is a 404, any other value JSON.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            value = answer(self.path)
            kind, body = "text/html; charset=utf-8", value
            if not isinstance(value, bytes):
                missing = {"message": "there is nothing here", "code": 404, "reason": "NotFound"}
                kind, body = "application/json", orjson.dumps(missing if value is None else value)
            self.send_response(404 if value is None else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_GET

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
