"""A server that misbehaves in the way that it is told to: raw bytes, no SDK.

    python naughty.py FAULT [ARGUMENT]...

Every fault is a function below. Unless its fault says otherwise, the server answers each request
with a small result, and ends with its input.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator

FIRST = b'{"jsonrpc":"2.0","id":'


def lines() -> Iterator[bytes]:
    """Read stdin, a line at a time."""
    yield from sys.stdin.buffer


def requests() -> Iterator[tuple[bytes, str]]:
    """Yield the id, as it is spelled, and the tool or method of each request."""
    for line in lines():
        message = json.loads(line)
        if "id" in message and "method" in message:
            name = message.get("params", {}).get("name", message["method"])
            yield json.dumps(message["id"]).encode(), name


def say(raw: bytes, to: int = 1) -> None:
    rest = memoryview(raw)
    while rest:
        rest = rest[os.write(to, rest) :]


def result(id: bytes, text: str = "ok") -> bytes:
    """Return an answer, without its newline."""
    block = json.dumps({"type": "text", "text": text}, separators=(",", ":")).encode()
    return FIRST + id + b',"result":{"content":[' + block + b"]}}"


def plain() -> None:
    for id, _ in requests():
        say(result(id) + b"\n")


def ends(how: str, *, during: bool = True) -> None:
    """Answer until a call of `end`; there say half of an answer, or nothing, and end.

    `how` is an exit code or the name of a signal.
    """
    for id, name in requests():
        if name != "end":
            say(result(id) + b"\n")
            continue
        say(b"the disk is on fire\n", to=2)
        if during:
            say(result(id)[:40])
        leave(how)


def ends_before(how: str) -> None:
    ends(how, during=False)


def ends_within_a_long_answer() -> None:
    for id, name in requests():
        if name == "end":
            say(result(id, "x" * 5_000_000)[:3_000_000])
            leave("3")
        say(result(id) + b"\n")


def crashes(how: str) -> None:
    """End before anything was read."""
    say(b"no such database\n", to=2)
    leave(how)


def leave(how: str) -> None:
    if how.isdigit():
        os._exit(int(how))
    os.kill(os.getpid(), getattr(signal, how))


def last_without_newline(size: str) -> None:
    for id, name in requests():
        if name == "end":
            say(result(id, "x" * int(size)))
            return
        say(result(id) + b"\n")


def noisy() -> None:
    """Write what is no message before each answer, and end the lines of answers with CRLF."""
    say(b"\xef\xbb\xbf")
    for id, _ in requests():
        say(result(id) + b"\r\n" + b"\n  \nServer listening...\n" + b"\xff\xfe binary \x00\n")


def glued() -> None:
    for id, _ in requests():
        say(b"progress: 100%" + result(id) + b"\n")


def large(id_stands: str = "first") -> None:
    """Answer a call of `123` with a line of about so many bytes, its id `first` or `last`."""
    for id, name in requests():
        answer = result(id, "x" * int(name) if name.isdigit() else "ok")
        if id_stands == "last" and id != b"1":
            _, _, body = answer.partition(b',"result"')
            answer = b'{"result"' + body[:-1] + b',"jsonrpc":"2.0","id":' + id + b"}"
        say(answer + b"\n")


def endless(size: str, id_stands: str = "first") -> None:
    """Answer `end` with a line that is far too long, its id `first` or `last`."""
    for id, name in requests():
        if name == "end":
            start, end = result(id)[:-4], b'"}]}}\n'
            if id_stands == "last":
                start, end = b'{"result":{"text":"', b'"},"jsonrpc":"2.0","id":' + id + b"}\n"
            say(start)
            for _ in range(int(size) >> 20):
                say(b"x" * (1 << 20))
            say(end)
        else:
            say(result(id) + b"\n")


def odd_ids() -> None:
    """Before each answer: an unknown id, the id as another type, a request of ours by that id.

    After it: the answer once more.
    """
    for id, _ in requests():
        say(result(b"987654") + b"\n")
        say(result(b'"' + id + b'"') + b"\n")
        say(FIRST + id + b',"method":"ping"}\n')
        say((result(id) + b"\n") * 2)


def silent() -> None:
    """Never answer `never`; answer it late, once it was cancelled and something else asked."""
    late = b""
    for id, name in requests():
        if name == "never":
            late = result(id, "late") + b"\n"
        else:
            say(late + result(id) + b"\n")
            late = b""


def remembers() -> None:
    """Answer `heard` with the methods that came so far, and `never` only at a call of `late`."""
    heard: list[str] = []
    late = b""
    for line in lines():
        message = json.loads(line)
        heard.append(message.get("method", ""))
        if "id" not in message:
            continue
        id, name = json.dumps(message["id"]).encode(), message.get("params", {}).get("name")
        if name == "never":
            late += result(id, "late") + b"\n"
        elif name == "late":
            say(late + result(id) + b"\n")
            late = b""
        else:
            say(result(id, " ".join(heard) if name == "heard" else "ok") + b"\n")


def floods_stderr(size: str) -> None:
    for id, _ in requests():
        for at in range(int(size) >> 16):
            say((b"%d " % at) + b"e" * ((1 << 16) - 20) + b"\n", to=2)
        say(result(id) + b"\n")


def deaf(gate: str) -> None:
    """After the first request read nothing, until somebody opens `gate` for writing."""
    for count, (id, _) in enumerate(requests()):
        say(result(id) + b"\n")
        if not count:
            os.close(os.open(gate, os.O_RDONLY))


def talks(count: str, size: str) -> None:
    """Before each answer send so many notifications with so many bytes of text each."""
    for id, _ in requests():
        for number in range(int(count)):
            say(
                b'{"jsonrpc":"2.0","method":"notifications/message","params":{"number":%d,'
                b'"level":"info","data":"' % number + b"d" * int(size) + b'"}}\n'
            )
        say(result(id) + b"\n")


def late() -> None:
    """Answer only once the input has ended."""
    say(b"".join(result(id) + b"\n" for id, _ in requests()))


def stays(*how: str) -> None:
    """Go on after the end of the input; with `ignore` ignore SIGTERM; with `fork` be two."""
    if "ignore" in how:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    if "fork" in how and os.fork() == 0:
        while True:
            signal.pause()
    plain()
    while True:
        signal.pause()


def leaves_a_child_behind(*how: str) -> None:
    """End with the input, or at a call of `end`; a child goes on and holds stdout open."""
    if os.fork() == 0:
        if "session" in how:
            os.setsid()
            say(b"child %d\n" % os.getpid(), to=2)
        while True:
            signal.pause()
    for id, name in requests():
        if name == "end":
            os._exit(4)
        say(result(id) + b"\n")


def closes_stdout() -> None:
    """Close stdout at a call of `end`, and go on reading."""
    for id, name in requests():
        if name == "end":
            os.close(1)
        else:
            say(result(id) + b"\n")


FAULTS: dict[str, Callable[..., None]] = {
    function.__name__: function
    for function in (
        plain,
        ends,
        ends_before,
        ends_within_a_long_answer,
        crashes,
        last_without_newline,
        noisy,
        glued,
        large,
        endless,
        odd_ids,
        silent,
        remembers,
        floods_stderr,
        deaf,
        talks,
        late,
        stays,
        leaves_a_child_behind,
        closes_stdout,
    )
}

if __name__ == "__main__":
    FAULTS[sys.argv[1]](*sys.argv[2:])
