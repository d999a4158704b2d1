"""Requests of clients that are broken, odd or meant to do harm, byte by byte."""

import gzip

from tests.faults.sidecar import call, post

FOUR = 4 << 20
BODIES = {
    "cut JSON": (call(2)[:-5] + b"ECHO", 400),
    "two values": (call(2) + call(3), 400),
    "arrays": (b"[" * 200_000, 400),
    "too long": (b'{"ECHO":"' + b"x" * FOUR + b'"}', 413),
    "long, in gzip": (gzip.compress(b'{"ECHO":"' + b"x" * FOUR + b'"}'), 413),
    "no gzip": (b"\x1fECHO", 400),
    "half of gzip": (gzip.compress(call(2, "ECHO"))[:20], 400),
}
BODY = call(2, "SMUGGLED")
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n"
SIZE = b"Content-Length: %d\r\n" % len(BODY)
CHUNKS = b"Transfer-Encoding: chunked\r\n"
INNER = post(BODY)  # a whole request, where only a body should be
SMUGGLING = {
    "two lengths": HEAD + SIZE + b"Content-Length: 0\r\n\r\n" + BODY,
    "a list of lengths": HEAD + SIZE[:-2] + b", 0\r\n\r\n" + BODY,
    "a length with a sign": HEAD + SIZE.replace(b": ", b": +") + b"\r\n" + BODY,
    "chunks after a length": HEAD + SIZE + CHUNKS + b"\r\n0\r\n\r\n" + INNER,
    "a length after chunks": HEAD + CHUNKS + SIZE + b"\r\n0\r\n\r\n" + INNER,
    "chunks, then none": HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + INNER,
    "another coding": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + INNER,
    "chunks in 1.0": (HEAD + CHUNKS).replace(b"/1.1", b"/1.0") + b"\r\n0\r\n\r\n" + INNER,
    "a space before a colon": HEAD + SIZE.replace(b":", b" :") + b"\r\n" + BODY,
    "bare line feeds": (HEAD + SIZE).replace(b"\r\n", b"\n") + b"\n" + BODY,
    "a bare carriage return": HEAD + b"X: y\r" + SIZE + b"\r\n" + BODY,
    "a folded line": HEAD + b"X: y\r\n " + SIZE + b"\r\n" + BODY,
    "a null byte": HEAD + b"X: \0y\r\n" + SIZE + b"\r\n" + BODY,
    "a chunk with a bad size": HEAD + CHUNKS + b"\r\nSMUGGLED\r\n" + INNER,
    "a chunk with a bare line feed": HEAD + CHUNKS + b"\r\n5\nSMUGG\r\n0\r\n\r\n" + INNER,
    "a chunk that is longer": HEAD + CHUNKS + b"\r\n2\r\nSMUGGLED\r\n0\r\n\r\n" + INNER,
    "two hosts": HEAD + b"Host: SMUGGLED\r\n" + SIZE + b"\r\n" + BODY,
    "no HTTP": b"SMUGGLED\r\n\r\n" + INNER,
    "a long line": HEAD + b"X: " + b"SMUGGLED" * 10_000 + b"\r\n" + SIZE + b"\r\n" + BODY,
}
