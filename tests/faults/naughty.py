"""A server that misbehaves in the way that it is told to: raw bytes, no SDK.

    python naughty.py FAULT [ARGUMENT]...

Unless its fault says otherwise, the server answers each request
with a small result, and ends with its input.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import wraps

FIRST = b'{"jsonrpc":"2.0","id":'
Fault = Callable[..., None]
FAULTS: dict[str, Fault] = {}


def lines() -> Iterator[bytes]:
    yield from sys.stdin.buffer


def requests() -> Iterator[tuple[bytes, str]]:
    """Yield the id, as it is spelled, and the tool or method of each request, also in batches."""
    for line in lines():
        messages = json.loads(line)
        for message in messages if isinstance(messages, list) else [messages]:
            if "id" in message and "method" in message:
                name = message.get("params", {}).get("name", message["method"])
                yield json.dumps(message["id"]).encode(), name


def say(raw: bytes, to: int = 1) -> None:
    rest = memoryview(raw)
    while rest:
        rest = rest[os.write(to, rest) :]


def result(id: bytes, text: str = "ok") -> bytes:
    block = json.dumps({"type": "text", "text": text}, separators=(",", ":")).encode()
    return FIRST + id + b',"result":{"content":[' + block + b"]}}"


def fault(do: Fault) -> Fault:
    FAULTS[do.__name__] = do
    return do


def at_end(do: Fault) -> Fault:
    """Make a fault of what is done at a call of `end`: it gets its id, and answers as it can."""

    @wraps(do)
    def serve(*arguments: str) -> None:
        for id, name in requests():
            if name == "end":
                do(id, *arguments)
            else:
                say(result(id) + b"\n")

    return fault(serve)


@fault
def plain() -> None:
    for id, _ in requests():
        say(result(id) + b"\n")


@at_end
def ends(id: bytes, how: str) -> None:
    """Write half of an answer, and end; `how` is an exit code or the name of a signal."""
    say(b"the disk is on fire\n", to=2)
    say(result(id)[:40])
    leave(how)


@at_end
def ends_before(id: bytes, how: str) -> None:
    say(b"the disk is on fire\n", to=2)
    leave(how)


@at_end
def ends_within_a_long_answer(id: bytes) -> None:
    say(result(id, "x" * 5_000_000)[:3_000_000])
    leave("3")


@fault
def crashes(how: str) -> None:
    say(b"no such database\n", to=2)
    leave(how)


def leave(how: str) -> None:
    if how.isdigit():
        os._exit(int(how))
    os.kill(os.getpid(), getattr(signal, how))


@at_end
def last_without_newline(id: bytes, size: str) -> None:
    say(result(id, "x" * int(size)))
    leave("0")


@fault
def large(id_stands: str = "first") -> None:
    """Answer a call of `123` with a line of about so many bytes, its id `first` or `last`."""
    for id, name in requests():
        answer = result(id, "x" * int(name) if name.isdigit() else "ok")
        if id_stands == "last" and id != b"1":
            _, _, body = answer.partition(b',"result"')
            answer = b'{"result"' + body[:-1] + b',"jsonrpc":"2.0","id":' + id + b"}"
        say(answer + b"\n")


def table(count: int, row: str = '{"a":1.0,"noise":[1,2,3]}') -> str:
    return f"[{','.join([row] * count)}]"


@fault
def rows() -> None:
    """Answer a call of `123` with an array of so many objects, as a text."""
    for id, name in requests():
        say(result(id, table(int(name)) if name.isdigit() else "ok") + b"\n")


@at_end
def endless(id: bytes, size: str) -> None:
    """Answer with a line that is far too long."""
    say(result(id)[:-4])
    for _ in range(int(size) >> 20):
        say(b"x" * (1 << 20))
    say(b'"}]}}\n')


@fault
def silent() -> None:
    """Never answer `never`; answer it late, once it was cancelled and something else asked."""
    late = b""
    for id, name in requests():
        if name == "never":
            late = result(id, "late") + b"\n"
        else:
            say(late + result(id) + b"\n")
            late = b""


@fault
def halts(size: str) -> None:
    """Write half of so long an answer to `long`, and the rest once a request is cancelled."""
    rest = b""
    for line in lines():
        message = json.loads(line)
        id, name = json.dumps(message.get("id")).encode(), message.get("params", {}).get("name")
        if name == "long":
            whole = result(id, "x" * int(size)) + b"\n"
            say(whole[: len(whole) // 2])
            rest = whole[len(whole) // 2 :]
        elif message["method"] == "notifications/cancelled":
            say(rest)
            rest = b""
        elif name != "never":
            say(result(id) + b"\n")


@fault
def floods_stderr(size: str) -> None:
    for id, _ in requests():
        for at in range(int(size) >> 16):
            say((b"%d " % at) + b"e" * ((1 << 16) - 20) + b"\n", to=2)
        say(result(id) + b"\n")


@fault
def deaf(gate: str) -> None:
    """After the first request read nothing, until there is a file `gate`."""
    for id, _ in requests():
        say(result(id) + b"\n")
        while not os.path.exists(gate):
            time.sleep(0.01)


@fault
def talks(count: str, size: str, to: str = "") -> None:
    """Before each answer, or that `to` a tool, send so many notifications with so long a text."""
    for id, name in requests():
        for number in range(int(count) if to in ("", name) else 0):
            say(
                b'{"jsonrpc":"2.0","method":"notifications/message","params":{"number":%d,'
                b'"level":"info","data":"' % number + b"d" * int(size) + b'"}}\n'
            )
        say(result(id) + b"\n")


@fault
def late(seconds: str) -> None:
    """Answer only once the input has ended, and so much later."""
    answers = b"".join(result(id) + b"\n" for id, _ in requests())
    time.sleep(float(seconds))
    say(answers)


@fault
def stays(*how: str) -> None:
    """Go on after the end of the input; with `ignore` ignore SIGTERM; with `fork` be two."""
    if "ignore" in how:
        ignore()
    if "fork" in how and os.fork() == 0:
        while True:
            time.sleep(3600)
    plain()
    while True:
        time.sleep(3600)


@fault
def puppet() -> None:
    """Answer each call with its argument `says`, in hex, with `ID` for the id of the call.

    With `cut` in pieces: at that byte, or each byte alone if it is 0. A call of `heard` is
    answered with all lines that came since the last one, in hex, but for calls of `ok`.
    """
    input_lines = bytearray()
    for line in lines():
        try:
            message = json.loads(line)
            id = json.dumps(message["id"]).encode()
            name = message["params"].get("name")
            arguments = message["params"].get("arguments", {})
        except (ValueError, RecursionError, TypeError, KeyError):
            input_lines += line  # nothing to be answered
            continue
        if name == "heard":
            say(result(id, input_lines.hex()) + b"\n")
            input_lines.clear()
            continue
        input_lines += line if name != "ok" else b""
        says = arguments.get("says")
        response = result(id) if says is None else bytes.fromhex(says).replace(b"ID", id)
        cut = arguments.get("cut", len(response))
        for piece in (response[:cut], response[cut:]) if cut else map(int.to_bytes, response):
            say(piece)
            drained(1)
        say(b"\n")


def drained(pipe: int) -> None:
    """Wait until nothing is left in a pipe: what is written now comes alone (Linux)."""
    if sys.platform == "linux":
        import fcntl
        import termios

        while int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), "little"):
            os.sched_yield()


@fault
def begets(generations: str, then: str = "") -> None:
    """Write its number to stderr; have a child, and it another, all with its pipes (Windows)."""
    say(b"process %d\n" % os.getpid(), to=2)
    if int(generations):
        command = [sys.executable, __file__, "begets", str(int(generations) - 1), "sleeps"]
        subprocess.Popen(command, close_fds=False)
    if then:
        time.sleep(3600)


@fault
def broods(*how: str) -> None:
    """Have a child and a grandchild that ignore everything but SIGKILL and hold what is open.

    With the first request, or at once if it is `early`. End by SIGKILL at a call of `end`, and
    with the input, unless it `stays`; then ignore what they do.
    """

    def brood() -> None:
        if sys.platform == "win32":
            return begets("2")
        if os.fork():
            return
        os.fork()
        ignore()
        while True:
            time.sleep(3600)

    if "early" in how:
        brood()
    if "stays" in how and sys.platform != "win32":
        ignore()
    for count, (id, name) in enumerate(requests()):
        if not count and "early" not in how:
            brood()
        if name == "end":
            leave("SIGKILL")
        say(result(id) + b"\n")
    while "stays" in how:
        time.sleep(3600)


def ignore() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@fault
def leaves_a_child_behind(*how: str) -> None:
    """End with the input, or at a call of `end`; a child goes on and holds stdout open."""
    if os.fork() == 0:
        if "session" in how:
            os.setsid()
            say(b"child %d\n" % os.getpid(), to=2)
        while True:
            time.sleep(3600)
    for id, name in requests():
        if name == "end":
            os._exit(4)
        say(result(id) + b"\n")


@at_end
def closes_stdout(id: bytes) -> None:
    os.close(1)


if __name__ == "__main__":
    FAULTS[sys.argv[1]](*sys.argv[2:])
