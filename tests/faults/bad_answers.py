"""Answers of servers that are broken, odd or no answers at all, byte by byte."""

import gzip
import json
import struct
import zlib
from collections.abc import Callable
from functools import cache

from tests.faults.naughty import result
from tests.raw_http import STREAM, event, whole


@cache
def bomb(start: bytes, end: bytes) -> bytes:
    """Return `start`, 256 MB of `x` and `end` as gzip, compressed about a thousandfold."""
    # Each part is packed by itself: all of it at once takes two seconds.
    parts = [start, *[b"x" * (1 << 20)] * 256, end]
    size, check = sum(map(len, parts)) % (1 << 32), 0
    for part in parts:
        check = zlib.crc32(part, check)
    packed = {part: deflated(part, zlib.Z_FULL_FLUSH) for part in set(parts)}
    body = b"".join(packed[part] for part in parts) + deflated(b"", zlib.Z_FINISH)
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff" + body + struct.pack("<II", check, size)


def deflated(raw: bytes, end: int) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(raw) + packer.flush(end)


START = b'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"'
END = b'"}]}}'
# Made in the test alone: each worker of a run would make them.
BOMBS: dict[str, Callable[[], bytes]] = {
    "json": lambda: whole(bomb(START, END), "200 OK", "Content-Encoding: gzip"),
    "stream": lambda: whole(
        bomb(b"data: " + START, END + b"\n\n"),
        "200 OK",
        "Content-Type: text/event-stream",
        "Content-Encoding: gzip",
    ),
}
CHUNKED = STREAM.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
NOTE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
SSE = "Content-Type: text/event-stream"
ANSWER = event(result(b"2"))


def chunk(raw: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(raw), raw)


def short(kind: str, raw: bytes) -> bytes:
    """Return an answer whose length is more than what comes."""
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: 1000\r\n\r\n".encode() + raw


_BROKEN = "the connection broke off in the middle of the answer"
_NONE = "the server ended its answer|the server's event stream ended"
_INSIDE = "ended within an event"
_BAD = "the server does not speak HTTP as it should"
_UNREADABLE = "its gzip data is damaged: incorrect header check"

# What is cut, and the words of the error by which it is known.
CUTS = {
    "nothing at all": (b"", "the server closed the connection without an answer"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", f"{_BAD}: Bad status line"),
    "half a body": (short("application/json", result(b"2")[:30]), _BROKEN),
    "half a body in chunks": (
        CHUNKED.replace(b"text/event-stream", b"application/json") + chunk(result(b"2")[:30]),
        _BROKEN,
    ),
    "a body that is no gzip": (
        whole(result(b"2"), "200 OK", "Content-Encoding: gzip"),
        f"the server's answer cannot be read: {_UNREADABLE}",
    ),
    "half a body of gzip": (
        whole(gzip.compress(result(b"2"))[:30], "200 OK", "Content-Encoding: gzip"),
        "the server's answer cannot be read: its gzip data ends early, after 30 bytes",
    ),
    "an unknown coding": (
        whole(result(b"2"), "200 OK", "Content-Encoding: br"),
        "the server's answer cannot be read: it has a Content-Encoding other than gzip",
    ),
    "no answer in the stream": (STREAM + event(NOTE), _NONE),
    "half an event": (STREAM + event(NOTE) + ANSWER[:40], _INSIDE),
    "no final blank line": (STREAM + event(NOTE) + ANSWER[:-1], _INSIDE),
    "chunks without an end": (CHUNKED + chunk(event(NOTE)), _BROKEN),
    "half an event in chunks that end": (CHUNKED + chunk(ANSWER[:40]) + chunk(b""), _INSIDE),
    "half a chunk": (CHUNKED + chunk(event(NOTE)) + chunk(ANSWER)[:40], _BROKEN),
    "a stream of fewer bytes than promised": (short("text/event-stream", event(NOTE)), _BROKEN),
    "a stream that is no gzip": (
        whole(ANSWER, "200 OK", SSE, "Content-Encoding: gzip"),
        f"the server's stream cannot be read: {_UNREADABLE}",
    ),
}
PRETTY = json.dumps(json.loads(result(b"2")), indent=2).encode()
ODD = (
    b'{ "jsonrpc":"2.0", "id":2 ,"result":{"x":1.10,"content":[{"type":"text","text":"%s"}]}}'
    % b"\xe2\x80\xa8 \xc2\x85 \xe2\x80\xa9 \\ud800 1.10 1e400 -0 \\u00e9"
)
ASKS = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
_R = result(b"2")
# Streams, and the lines that a client on stdio gets of them.
STREAMS = {
    "comments": (
        b": hello\n\n:\n\n: a\n" + event(NOTE) + b": \n" + ANSWER + b": b\n\n",
        [NOTE, _R],
    ),
    "crlf": (
        b": a\r\n\r\nid: 1\r\ndata: " + NOTE + b"\r\n\r\ndata: " + _R + b"\r\n\r\n",
        [NOTE, _R],
    ),
    "cr": (b": a\r\rid: 1\rdata: " + NOTE + b"\r\rdata: " + _R + b"\r\r", [NOTE, _R]),
    "several lines": (
        b"".join(b"data: %s\n" % line for line in PRETTY.split(b"\n")) + b"\n",
        [PRETTY.replace(b"\n", b" ")],
    ),
    "fields": (
        b"retry: 10\n\nid: 1\ndata:\n\nid\nevent\ndata\n\nfoo: bar\nid: 7\x00\n" + ANSWER,
        [_R],
    ),
    "other events": (b"event: ping\ndata: {}\n\nevent: \ndata: " + _R + b"\n\n", [_R]),
    "odd json": (event(ODD), [ODD]),
    "no json": (event(b"hello") + event(b"[1,") + ANSWER, [_R]),
    "answers to nobody": (event(result(b"99")) + ANSWER, [result(b"99"), _R]),
    "requests of the server": (event(ASKS) + ANSWER, [ASKS, _R]),
    "what follows": (ANSWER + ANSWER + event(NOTE), [_R, _R, NOTE]),
}
HTML = b"<html><body>" + b"Bad gateway, \xc3\xa9. " * 40 + b"</body></html>"
STATUSES = {
    "502 with HTML": whole(HTML, "502 Bad Gateway", "Content-Type: text/html; charset=utf-8"),
    "a 200 without anything": whole(b""),
    "a wrong type": whole(b"<xml/>", "200 OK", "Content-Type: application/xml"),
    "JSON of another type": whole(result(b"2"), "200 OK", "Content-Type: text/plain"),
    "429": whole(b'{"error":"slow down"}', "429 Too Many Requests", "Retry-After: 17"),
    "401": whole(
        b"",
        "401 Unauthorized",
        'WWW-Authenticate: Bearer resource_metadata="https://as.example/.well-known"',
        "WWW-Authenticate: Basic realm=x",
    ),
    "404 of a session": whole(b"Session not found", "404 Not Found", "Content-Type: text/plain"),
    "418": whole(b"{}", "418 I'm a teapot", "Set-Cookie: a=b", "Set-Cookie: c=d; HttpOnly"),
    "a JSON-RPC error": whole(
        b'{"jsonrpc":"2.0","id":2,"error":{"code":-32020,"message":"no","data":1.10}}',
        "400 Bad Request",
    ),
    "gzip": whole(gzip.compress(HTML), "500 Sorry", "Content-Encoding: gzip", "Vary: Accept"),
    "no length": b"HTTP/1.1 500 Sorry\r\nConnection: close\r\n\r\n" + HTML,
}
