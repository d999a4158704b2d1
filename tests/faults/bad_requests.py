"""Requests of clients that are broken, odd or meant to do harm, byte by byte."""

import gzip

from tests.faults.sidecar import call, post

MB = 1 << 20
# More of both tables stand in tests/transports/sidecar/test_access.py.
EVIL = {
    "an evil origin": ["Origin: http://evil.example"],
    "null": ["Origin: null"],
    "an evil host": ["Host: evil.example"],
    "both evil": ["Host: evil.example", "Origin: http://evil.example"],
}
FOUR = 4 * MB
BODIES = {
    "nothing": (b"", 400),
    "cut JSON": (call(2)[:-5] + b"ECHO", 400),
    "half of a number": (b'{"jsonrpc":"2.0","id":1.', 400),
    "text": (b"ECHO", 400),
    "two values": (call(2) + call(3), 400),
    "arrays": (b"[" * 200_000, 400),
    "objects": (b'{"ECHO":' * 200_000, 400),
    "arrays that end": (b"[" * 200_000 + b"]" * 200_000, 400),
    "deep in a call": (
        call(2, arguments={"a": "DEEP"}).replace(b'"DEEP"', b"[" * 100_000 + b"]" * 100_000),
        400,
    ),
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
    "the same length twice": HEAD + SIZE + SIZE + b"\r\n" + BODY,
    "a list of lengths": HEAD + SIZE[:-2] + b", 0\r\n\r\n" + BODY,
    "a length with a sign": HEAD + SIZE.replace(b": ", b": +") + b"\r\n" + BODY,
    "a negative length": HEAD + b"Content-Length: -1\r\n\r\n" + BODY,
    "a length in hex": HEAD + b"Content-Length: 0x10\r\n\r\n" + BODY,
    "a length with a space inside": HEAD + b"Content-Length: 1 0\r\n\r\n" + BODY,
    "chunks after a length": HEAD + SIZE + CHUNKS + b"\r\n0\r\n\r\n" + INNER,
    "a length after chunks": HEAD + CHUNKS + SIZE + b"\r\n0\r\n\r\n" + INNER,
    "chunks twice": HEAD + CHUNKS + CHUNKS + b"\r\n0\r\n\r\n" + INNER,
    "chunks, then none": HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + INNER,
    "another coding": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + INNER,
    "chunks in quotes": HEAD + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n' + INNER,
    "chunks after a tab": HEAD + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + INNER,
    "chunks in 1.0": (HEAD + CHUNKS).replace(b"/1.1", b"/1.0") + b"\r\n0\r\n\r\n" + INNER,
    "a space before a colon": HEAD + SIZE.replace(b":", b" :") + b"\r\n" + BODY,
    "bare line feeds": (HEAD + SIZE).replace(b"\r\n", b"\n") + b"\n" + BODY,
    "one bare line feed": HEAD + b"X: y\n" + SIZE + b"\r\n" + BODY,
    "a bare carriage return": HEAD + b"X: y\r" + SIZE + b"\r\n" + BODY,
    "a folded line": HEAD + b"X: y\r\n " + SIZE + b"\r\n" + BODY,
    "a folded first line": HEAD.replace(b"Host", b" X: y\r\nHost", 1) + SIZE + b"\r\n" + BODY,
    "a null byte": HEAD + b"X: \0y\r\n" + SIZE + b"\r\n" + BODY,
    "a line without a colon": HEAD + b"SMUGGLED\r\n" + SIZE + b"\r\n" + BODY,
    "a line without a name": HEAD + b": SMUGGLED\r\n" + SIZE + b"\r\n" + BODY,
    "a chunk without a size": HEAD + CHUNKS + b"\r\n\r\n" + INNER,
    "a chunk with a bad size": HEAD + CHUNKS + b"\r\nSMUGGLED\r\n" + INNER,
    "a chunk with a negative size": HEAD + CHUNKS + b"\r\n-1\r\n" + INNER,
    "a chunk with a size in hex": HEAD + CHUNKS + b"\r\n0x5\r\nSMUGG\r\n0\r\n\r\n" + INNER,
    "a chunk with a size too large": HEAD + CHUNKS + b"\r\n" + b"F" * 17 + b"\r\n" + INNER,
    "a chunk with a bare line feed": HEAD + CHUNKS + b"\r\n5\nSMUGG\r\n0\r\n\r\n" + INNER,
    "a chunk that is longer": HEAD + CHUNKS + b"\r\n2\r\nSMUGGLED\r\n0\r\n\r\n" + INNER,
    "two hosts": HEAD + b"Host: SMUGGLED\r\n" + SIZE + b"\r\n" + BODY,
    "no host": HEAD.replace(b"Host: localhost\r\n", b"") + SIZE + b"\r\n" + BODY,
    "no HTTP": b"SMUGGLED\r\n\r\n" + INNER,
    "HTTP of no version": HEAD.replace(b"/1.1", b"/SMUGGLED") + SIZE + b"\r\n" + BODY,
    "a long line": HEAD + b"X: " + b"SMUGGLED" * 10_000 + b"\r\n" + SIZE + b"\r\n" + BODY,
}
TOKENS = {
    "the token": (["Authorization: Bearer first-secret-token"], True),
    "another token": (["Authorization: Bearer other-secret-token"], True),
    "nothing": ([], False),
    "the start of one": (["Authorization: Bearer first-secret-toke"], False),
    "in the query": (["X: y"], False),
}
