"""Who has asked what and got what, in a session that is fuzzed: the model it is held against.

A slot is an exchange and an id, as in the session. Invariants that it checks: each request gets one
answer, no more than the server itself gives; ids and what no rule covers keep their bytes; and the
proxy's own questions are no client's concern.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from mcp_abridge.document import message
from mcp_abridge.document.tree import ABSENT
from mcp_abridge.session.outputs import Output, ToClient
from msgspec import Struct

from tests.fuzz import reading
from tests.fuzz.covered import FREE
from tests.fuzz.fuzzer import Wrong
from tests.fuzz.reading import Response, bare, members, valid
from tests.fuzz.speech import METHODS

_WORDS = (b"method", b"params", b"name", b"arguments", b"id", b"limit")
_CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
_MARK = re.compile(rb'"mark": ?(\d+)[,}]')  # one that is cut off is none


class Request(Struct):
    """A request that is on its way to the server; `ours`: the proxy's own."""

    exchange: bytes
    id: str
    method: str
    tool: str
    ours: bool

    @property
    def slot(self) -> bytes:
        return self.exchange + message.id_key(self.id.encode("utf-8", "surrogatepass"))


class Account:
    """The messages of either side, and the count of requests and responses of each slot.

    `at_server` counts the requests that the server has not answered, `beyond` its responses over
    and above those. Slots that are `excused` may go without an answer, those that are `strange` may
    get more; `overdue` ones were answered in the server's stead, and rules are for `ruled` ones.
    """

    def __init__(self) -> None:
        self.requests: Counter[bytes] = Counter()
        self.responses: Counter[bytes] = Counter()
        self.at_server: Counter[bytes] = Counter()
        self.beyond: Counter[bytes] = Counter()
        self.excused: set[bytes] = set()
        self.strange: set[bytes] = set()
        self.overdue: set[bytes] = set()
        self.ruled: set[bytes] = set()
        self.of_client: dict[bytes, set[bytes]] = {}
        self.of_server: dict[bytes, set[bytes]] = {}
        self.calls: dict[bytes, bytes] = {}  # by their mark, as the client sent them

    # Sent by client and server

    def client_says(self, raw: bytes, exchange: bytes) -> None:
        self.of_client.setdefault(exchange, set()).add(raw)
        read = reading.envelope(raw)
        if mark := _MARK.search(raw):
            self.calls[mark[1]] = raw
        if read is None:
            self.doubt(raw, exchange)
        elif read.method is not ABSENT and read.key not in (None, b"null"):
            slot = exchange + (read.key or b"")
            self.requests[slot] += 1
            if not self.free(raw):
                self.ruled.add(slot)
        elif read.verb == "notifications/cancelled" and read.params is not ABSENT:
            id = members(bytes(read.params).decode()).get("requestId", "")
            self.excused.add(exchange + message.id_key(id.encode()))

    def server_says(self, raw: bytes, exchange: bytes) -> None:
        lines = self.of_server.setdefault(exchange, set())
        lines |= {raw, raw[max(raw.find(b"{"), 0) :]}
        read = reading.leniently(raw)
        if read is None or reading.envelope(raw) is None:
            self.doubt(raw, exchange)
        if read is not None and read.responds and read.key is not None:
            slot = exchange + read.key
            if self.at_server[slot]:
                self.at_server[slot] -= 1
            else:
                self.beyond[slot] += 1

    def doubt(self, raw: bytes, exchange: bytes) -> None:
        """Allow another response to whatever a line responds to."""
        self.strange |= {exchange + id for id in reading.ids(raw)}

    def late(self, outputs: Iterable[Output], exchange: bytes) -> None:
        """Record calls that were answered in place of the server, which may still answer them."""
        for output in outputs:
            if isinstance(output, ToClient):
                self.overdue |= {exchange + id for id in reading.ids(output.raw) - {b"null"}}

    def over(self, exchange: bytes, *, excused: bool = False) -> None:
        for slot in self.at_server:
            if slot.startswith(exchange):
                self.at_server[slot] = 0
        if excused:
            self.excused |= {slot for slot in self.requests if slot.startswith(exchange)}

    # Received by client and server

    def client_hears(self, raw: bytes, exchange: bytes) -> None:
        if reading.OURS.search(raw):
            raise Wrong("no client sees a question of the proxy's own", repr(raw))
        if b"\n" in raw:
            raise Wrong("what is sent is one line", repr(raw))
        read = reading.leniently(raw)
        if read is not None and read.responds and read.key is not None:
            self.responses[exchange + read.key] += 1
        if raw in self.of_server.get(exchange, ()) or raw == _CHANGED:
            return
        if read is not None and read.verb == "notifications/tasks":
            return  # the result inside of it is shaped
        if read is None or not read.responds or read.key is None:
            raise Wrong("what the client gets is the server's, or an answer", repr(raw))
        if valid(raw.decode("utf-8", "surrogatepass")) is False:
            raise Wrong("what is sent is JSON", repr(raw))
        slot = exchange + read.key
        if not self.requests[slot] and slot not in self.strange and read.key != b"null":
            raise Wrong("an answer of the proxy's is to a request", repr(raw))

    def server_hears(self, raw: bytes, exchange: bytes) -> Iterator[Request]:
        """Check and record a line that the server gets; yield it if it is a request."""
        if b"\n" in raw:
            raise Wrong("what is sent is one line", repr(raw))
        if raw not in self.of_client.get(exchange, ()) and reading.OURS.search(raw) is None:
            self._changed(raw)
        read = reading.envelope(raw)
        if read is not None and read.method is not ABSENT and read.key not in (None, b"null"):
            id = bytes(read.id)
            text, ours = id.decode("utf-8", "surrogatepass"), reading.OURS.search(id)
            request = Request(exchange, text, *reading.method_and_tool(read), ours is not None)
            self.at_server[request.slot] += not request.ours
            yield request

    def _changed(self, element: bytes) -> None:
        """Hold a call that a rule has completed against the one that the client sent."""
        if b"notifications/cancelled" in element and b'"reason"' in element:
            return  # of a call that is overdue
        mark = _MARK.search(element)
        before = None if mark is None else self.calls.get(mark[1])
        if before is None:
            raise Wrong("what the server gets is the client's", repr(element))
        original, now = Response.of(before).envelope, Response.of(element).envelope
        was, params = members(original["params"]), members(now["params"])
        fields = [(original, now, name) for name in (original.keys() | now.keys()) - {"params"}]
        fields += [(was, params, name) for name in (was.keys() | params.keys()) - {"arguments"}]
        for one, other, name in fields:
            if bare(one.get(name, "")) != bare(other.get(name, "")):
                raise Wrong("a call keeps all but its arguments", f"{name}: {element!r}")

    def free(self, raw: bytes) -> bool:
        read = reading.envelope(raw)
        names = [raw.lower().count(b'"%b"' % word) for word in _WORDS]
        if read is None or read.method is ABSENT or read.key in (None, b"null") or max(names) > 1:
            return False
        method, tool = reading.method_and_tool(read)
        return tool in FREE if method == "tools/call" else method in METHODS

    def answers_free(self, raw: bytes, exchange: bytes) -> bool:
        read = reading.envelope(raw)
        if read is None or not read.responds or read.key is None:
            return False
        slot = exchange + read.key
        return self.requests[slot] > 0 and slot not in self.ruled | self.overdue | self.strange

    # The end

    def settle(self) -> None:
        for slot, count in self.requests.items():
            answers, beyond = self.responses[slot], self.beyond[slot]
            if not answers and slot not in self.excused:
                raise Wrong("each request is answered", repr(slot))
            # If the id was used again, a late answer may be to either request.
            if slot in self.strange or (slot in self.overdue and count > 1):
                continue
            if answers > count + beyond:
                raise Wrong(
                    "no request is answered twice", f"{slot!r}: {answers} of {count} + {beyond}"
                )
