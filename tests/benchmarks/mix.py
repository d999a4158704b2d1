"""What clients of examples/agentdata ask, one thing after the other, and what came of it."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from itertools import count, cycle
from time import perf_counter
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from tests.benchmarks import raw, web_client
from tests.benchmarks.web_client import Client, WrongAnswer

Form = Literal["JSON", "stream"]
ACCEPT: dict[Form, str] = {"JSON": web_client.BOTH, "stream": web_client.STREAM}
LARGEST = 4 << 20  # bytes of an answer, at most
PREFIX = "knowledge/"
PAGE = 50
PAGES = 40
READ_AT_ONCE = 3


class Kind(Struct, frozen=True):
    """One kind of request: p95 may be so many seconds, by how many clients there are."""

    name: str
    bounds: dict[int, float]

    def bound(self, clients: int) -> float:
        """Return what holds for so many clients: the bound for the next number that has one."""
        return next((self.bounds[most] for most in self.bounds if clients <= most), 0.0)


ANY = 10
KINDS = (
    Kind("initialize", {ANY: 0.050}),
    Kind("tools/list", {ANY: 0.050}),
    Kind("list_documents", {1: 0.100, 5: 0.250, 10: 0.400}),
    Kind("get_document", {ANY: 0.200}),
    Kind("batch_read", {ANY: 0.300}),
)


class _Response(Struct):
    id: int
    result: Raw = Raw()


class Took(Struct, frozen=True):
    """The seconds until an answer was whole, and until its body began."""

    whole: float
    first: float


class Tally:
    """What came of all requests; several threads add to it."""

    def __init__(self) -> None:
        self.took: defaultdict[tuple[str, Form], list[Took]] = defaultdict(list)
        self.failures: Counter[str] = Counter()
        """How often what went wrong: a status, a frame that was cut short, an error."""

    def answers(self) -> int:
        return sum(map(len, self.took.values()))


def request(kind: str, number: int, **arguments: Any) -> bytes:
    if kind == "initialize":
        return raw.INITIALIZE.replace(b'"id":0', b'"id":%d' % number)
    if kind == "tools/list":
        return raw.TOOLS_LIST.replace(b'"id":1', b'"id":%d' % number)
    return raw.tools_call(kind, msgspec.json.encode(arguments).decode(), number)


def documents(port: int) -> list[str]:
    """Return the ids of some documents that can be read, as the sidecar at that port lists them."""
    asked = {"prefix": PREFIX, "limit": 100}
    with Client(port) as client:
        client.connect()
        said = msgspec.json.decode(client.fetch(request("list_documents", 2, **asked)))
    listed = msgspec.json.decode(said["result"]["content"][0]["text"])["items"]
    return [row["document_id"] for row in listed]


def rounds(
    ids: Sequence[str], first: int, paged: bool
) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Yield what a client asks in turn, other pages and documents each time."""
    for turn in count(first * 7):
        page = {"limit": PAGE, "offset": turn % PAGES * PAGE} if paged else {}
        some = [ids[(turn * 5 + place) % len(ids)] for place in range(READ_AT_ONCE)]
        yield [
            ("initialize", {}),
            ("tools/list", {}),
            ("list_documents", {"prefix": PREFIX, **page}),
            ("get_document", {"document_id": some[0]}),
            ("batch_read", {"paths": some}),
        ]


def ask_on(
    port: int,
    ids: Sequence[str],
    first: int,
    forms: Sequence[Form],
    tally: Tally,
    over: threading.Event,
    paged: bool = True,
) -> None:
    """Ask one thing after the other until it is over, each round in another of `forms`.

    Where lists are not `paged`, each comes whole.
    """
    memory = memoryview(bytearray(LARGEST))
    client = Client(port, memory=memory)
    client.connect()
    numbers = count(10)
    for form, asked in zip(cycle(forms), rounds(ids, first, paged), strict=False):
        client.wants(ACCEPT[form])
        for kind, arguments in asked:
            if over.is_set():
                client.close()
                return
            try:
                tally.took[kind, form].append(
                    once(client, request(kind, number := next(numbers), **arguments), number)
                )
            except (WrongAnswer, OSError, EOFError, ValueError, HTTPException) as problem:
                tally.failures[f"{kind}: {type(problem).__name__}: {problem}"] += 1
                client.close()
                client = Client(port, ACCEPT[form], memory=memory)
                client.connect()


def once(client: Client, body: bytes, number: int) -> Took:
    """Send one request, and see that its answer is whole and no error.

    Raises WrongAnswer; EOFError and OSError if the connection ends, ValueError and HTTPException if
    what came is cut short.
    """
    began = perf_counter()
    answer = client.ask(body)
    took = Took(perf_counter() - began, answer.first - began)
    message = answer.message()
    try:
        read = msgspec.json.decode(message, type=_Response)
    except msgspec.DecodeError as cause:
        raise ValueError(f"no whole message: {cause}") from None
    if read.id != number or not bytes(read.result) or b'"isError":true' in message:
        raise WrongAnswer(message[:200].decode(errors="replace"))
    return took
