"""A web API on loopback that gives fixed answers, for servers that are told where theirs is."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@contextmanager
def web_api(answers: Mapping[str, Any] | Callable[[str], Any]) -> Iterator[str]:
    """Answer each `METHOD /path` of `answers` with its JSON, all else with 404; yield the URL.

    If `answers` is a function, it gets `METHOD /path?query`; bytes are a page of HTML.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    self.rfile.read(size + 2)
                self.rfile.readline()
            request = f"{self.command} {self.path}"
            if callable(answers):
                answer = answers(request)
            else:
                answer = answers.get(request.partition("?")[0])
            kind, body = "text/html; charset=utf-8", answer
            if not isinstance(answer, bytes):
                kind = "application/json"
                body = json.dumps({"error": "Not found"} if answer is None else answer).encode()
            self.send_response(404 if answer is None else 200)
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


def certificate(folder: Path, *hosts: str) -> Path:
    """Write a certificate of its own for some hosts, with its key, and return the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([*map(x509.DNSName, hosts)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "certificate.pem"
    file.write_bytes(private + signed.public_bytes(pem))
    return file
