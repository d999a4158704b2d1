"""The servers that stateless requests share (MCP 2026-07-28).

Invariants: no server ever holds two requests with equal ids, or with equal progress tokens, and a
cancelled id is not used again on its server while a late answer could be taken for another
caller's: until it was answered, or some seconds have passed and the server has answered a later
request. (A server should not answer cancelled requests, and most do not.) A message of no request
goes to the only open request, or is dropped. While the proxy sends a query of its own before a
request, the id of the request is reserved on the server that the request will go to.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from msgspec import Struct

from proxy.document.message import (
    Message,
    behind_first,
    error,
    not_alone,
    read,
    second,
    thrown_away,
)
from proxy.errors import DocumentError
from proxy.session.guards import cancellation
from proxy.transports.aio import others, threaded
from proxy.transports.correlation import Correlation, address, elements, said_of_long
from proxy.transports.log import Log
from proxy.transports.sidecar.command.child import HASTY, ORDERLY, ChildServer, end_all, unread
from proxy.transports.stdio.lines import LineDropped, LineTooLong, LineTruncated

_MOST_BEHIND = 16 << 20  # bytes that may wait for one client that reads slowly
# Seconds to wait for a server that can take a request. Clients number their requests alike, so
# equal ids are common, and clients ignore Retry-After.
_PATIENCE = 30.0
_MOST_CANCELLED = 10_000  # cancelled ids that one server never answered; beyond that it is replaced
_LATE = 5.0  # seconds in which a cancelled request may still be answered
_LARGE = 4096  # bytes up to which a line is always checked for a second message

Start = Callable[[], Awaitable[ChildServer]]


class PooledRequest:
    """One request in progress, and the server's messages to it so far.

    `key` is its id and `token` its progress token, as message.id_keys; `cut` is called if its
    client reads too slowly. A request that `lasts` is a subscription, which holds its id as long as
    its client likes. If the request is held, `probe` is the id of the proxy's own query, which its
    server gets first.
    """

    def __init__(
        self,
        key: bytes,
        token: bytes | None,
        cut: Callable[[], None],
        *,
        lasts: bool = False,
        probe: bytes | None = None,
    ) -> None:
        self.lasts = lasts
        self.probe = probe
        self.sent = probe is None
        """True if the server knows the request itself."""
        self.key = key
        self.token = token
        self.number = 0  # its position among all requests to its server
        self.over: str | None = None
        """Why no more messages follow; an empty text after a normal end."""
        self._cut = cut
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()

    def awaits(self, key: bytes) -> bool:
        """Return True if an answer with this id is expected."""
        return key == self.probe or (key == self.key and self.sent)

    def put(self, raw: bytes) -> None:
        """Add a message of the server."""
        # The first message is accepted whatever its size.
        if self._size > _MOST_BEHIND:
            self._cut()
            return
        self._waiting.append(raw)
        self._size += len(raw)
        self._news.set()

    def finish(self, cause: str = "") -> None:
        """Record that no more messages follow."""
        if self.over is None:
            self.over = cause
        self._news.set()

    async def next(self, seconds: float | None = None) -> bytes | None:
        """Wait for the next message; None at the end. Raises TimeoutError after some seconds."""
        while not self._waiting:
            if self.over is not None:
                return None
            self._news.clear()
            async with asyncio.timeout(seconds):
                await self._news.wait()
        raw = self._waiting.popleft()
        self._size -= len(raw)
        return raw


class Cancelled(Struct):
    """A cancelled request of a server: its token, when, and how many requests came before."""

    token: bytes | None
    at: float
    number: int


class PooledServer:
    """One server of a pool and the requests that it holds."""

    def __init__(self, child: ChildServer, log: Log, limit: int, freed: Callable[[], None]) -> None:
        self.child = child
        self.leaving = False
        """True if it accepts no more requests."""
        self._log = log
        self._limit = limit
        self._freed = freed
        self._loop = asyncio.get_running_loop()
        self.used = self._loop.time()
        self._held: dict[bytes, PooledRequest] = {}
        self._tokens: dict[bytes, PooledRequest] = {}
        self._cancelled: dict[bytes, Cancelled] = {}  # by their ids
        self._asked = 0
        self._answered = 0  # the highest number of an answered request
        self._end: asyncio.Task[None] | None = None
        self._noise: list[bytes] = []  # recent output that is no message
        self.reading = self._loop.create_task(self._read())

    @property
    def idle(self) -> bool:
        """True if no request waits for it."""
        return not self._held

    @property
    def listening(self) -> bool:
        """True if all requests that wait for it are subscriptions."""
        return bool(self._held) and all(each.lasts for each in self._held.values())

    def takes(self, asking: PooledRequest) -> bool:
        """Return True if it can take this request now."""
        return (
            not (self.leaving or self.child.deaf or self.child.code is not None)
            and asking.key not in self._held
            and asking.token not in self._tokens
            and not self.worn(asking)
        )

    def worn(self, asking: PooledRequest) -> bool:
        """Return True if a late answer to a cancelled request could be taken for this one's."""
        past = self._loop.time() - _LATE
        for key, each in list(self._cancelled.items()):
            if each.at < past and each.number < self._answered:
                del self._cancelled[key]
        tokens = {each.token for each in self._cancelled.values()} - {None}
        return asking.key in self._cancelled or asking.token in tokens

    def hold(self, asking: PooledRequest) -> None:
        """Record that the server holds this request."""
        self._asked += 1
        asking.number = self._asked
        self._held[asking.key] = asking
        if asking.probe is not None:
            self._held[asking.probe] = asking
        if asking.token is not None:
            self._tokens[asking.token] = asking
        self.used = self._loop.time()

    def cancel(self, asking: PooledRequest, said: Iterable[bytes] | None = None) -> None:
        """Cancel a request at the server; one that was answered is ignored.

        `said` are the lines to send; None means cancellations because the client has disconnected.
        """
        if self._held.get(asking.key) is not asking:
            return
        own = asking.probe
        self._let_go(asking)
        if asking.sent:
            self._cancelled[asking.key] = Cancelled(asking.token, self._loop.time(), self._asked)
            if len(self._cancelled) > _MOST_CANCELLED:
                self.leaving = True
        if said is None:
            keys = (asking.key if asking.sent else None, own)
            reason = "the client closed the stream"
            said = [cancellation(key, reason) for key in keys if key is not None]
        self.child.post(list(said))
        self._freed()

    def settle(self, asking: PooledRequest) -> None:
        """Record that the query before a request was answered, or is awaited no longer."""
        if asking.probe is not None and self._held.get(asking.probe) is asking:
            del self._held[asking.probe]
        asking.probe = None

    def finish(self) -> None:
        """End the server."""
        if self._end is None:
            self._end = self._loop.create_task(self.child.end(ORDERLY))

    def _let_go(self, asking: PooledRequest) -> None:
        self.settle(asking)
        del self._held[asking.key]
        if asking.token is not None:
            self._tokens.pop(asking.token, None)
        self.used = self._loop.time()

    async def _read(self) -> None:
        cause = ""
        try:
            await self._hear_all()
        except Exception as error:  # after any error, no client may wait for ever
            cause = unread(error)
        self.leaving = True
        await self.child.end(HASTY)
        if self._held:
            cause, held = cause or self.child.cause, set(self._held.values())
            self._log.error(f"{cause}; requests answered with an error: {len(held)}")
            for asking in held:
                asking.finish(cause)
            self._held.clear()
        self._freed()

    async def _hear_all(self) -> None:
        async for event in self.child.events():
            if isinstance(event, list):
                for line in event:
                    await others(len(line))
                    for raw in self._messages(line):
                        self._hear(raw)
                        if self._noise:
                            # Blocks while the proxy's own stderr is not read.
                            await threaded(self._log.noise, self._noise.pop())
            elif isinstance(event, LineTooLong | LineDropped):
                if isinstance(event, LineTooLong):
                    self._log.warning(thrown_away(event.size, self._limit, " from the server"))
                awaited = {key for key, each in self._held.items() if each.awaits(key)}
                answer = said_of_long(event, awaited, self._limit)
                if answer is not None:
                    self._hear(answer)
            elif isinstance(event, LineTruncated):
                size = event.size
                self._log.warning(f"the server ended within a line, after {size} bytes of it")
            # Let other tasks run: the server's output may come without a break.
            await asyncio.sleep(0)

    def _messages(self, line: bytes) -> list[bytes]:
        """Separate the answer to one client from another's on the same line.

        The first is replaced by an error: with a server of its own, the client would get that too.
        """
        end = behind_first(line) if len(line) <= _LARGE or second(line) else None
        key = None if end is None else address(line[:end]).answers
        if end is None or key is None or key not in self._held:
            return elements(line) or [line]
        text = not_alone(end, len(line))
        self._log.warning(text)
        return [error(key, -1, text), *self._messages(line[end:])]

    def _hear(self, raw: bytes) -> None:
        found = address(raw)
        if found.answers is not None and found.answers in self._cancelled:
            del self._cancelled[found.answers]
            self._freed()
            return
        asking = self._whose(found, raw)
        if asking is None:
            return
        asking.put(raw)
        if found.answers is not None and found.answers == asking.probe:
            self.settle(asking)
        elif asking.key in (found.answers, found.cancels):
            # A server that ends a subscription by itself sends a cancellation.
            self._answered = max(self._answered, asking.number)
            self._let_go(asking)
            asking.finish()
            self._freed()

    def _whose(self, found: Correlation, raw: bytes) -> PooledRequest | None:
        for key in (found.answers, found.subscription, found.cancels):
            if key is not None:
                return self._held.get(key)
        if found.token is not None:
            return self._tokens.get(found.token)
        if not _speaks(raw):
            if raw.strip():  # an empty line is no output
                self._noise.append(raw)
        elif len(set(self._held.values())) == 1:
            return next(iter(self._held.values()))
        else:
            self._log.debug("a message that belongs to no request was dropped")
        return None


class Pool:
    """At most `most` servers, each started by `start` when it is needed.

    Servers that only subscriptions wait for do not count, since a few listening clients would keep
    their ids from all others; with these there are at most `total`.
    """

    def __init__(self, start: Start, most: int, total: int, log: Log, limit: int) -> None:
        self._start = start
        self._most = most
        self._total = max(most, total)
        self._log = log
        self._limit = limit
        self._members: list[PooledServer] = []
        self._starting = 0
        self._change = asyncio.Event()

    @property
    def running(self) -> int:
        """The number of servers that it has now."""
        return sum(not each.reading.done() for each in self._members)

    async def take(self, asking: PooledRequest) -> PooledServer | None:
        """Return a server that holds `asking` from now on; None if none can take it soon.

        The time that a new server takes to start does not count. Raises OSError if a server cannot
        be started.
        """
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            member = await self._found(asking)
            # Another request may have taken a new server meanwhile.
            if member is not None and member.takes(asking):
                member.hold(asking)
                return member
            if member is None:
                self._change.clear()
                try:
                    async with asyncio.timeout_at(deadline):
                        await self._change.wait()
                except TimeoutError:
                    return None

    async def _found(self, asking: PooledRequest) -> PooledServer | None:
        self._members = [each for each in self._members if not each.reading.done()]
        for member in self._members:
            if member.takes(asking):
                return member
        there = [member for member in self._members if not member.leaving]
        working = len([member for member in there if not member.listening]) + self._starting
        if len(self._members) + self._starting >= max(self._total, 2 * self._most):
            return None
        if working >= self._most:
            worn = sorted((each for each in there if each.worn(asking)), key=_busy)
            if not worn or len(self._members) + self._starting >= 2 * self._most:
                return None
            worn[0].leaving = True
            self._freed()
        self._starting += 1
        try:
            # The start continues even if this request is cancelled.
            return await asyncio.shield(asyncio.ensure_future(self._begin()))
        finally:
            self._starting -= 1

    async def _begin(self) -> PooledServer:
        member = PooledServer(await self._start(), self._log, self._limit, self._freed)
        self._members.append(member)
        self._change.set()
        return member

    def _freed(self) -> None:
        for member in self._members:
            if member.leaving and member.idle:
                member.finish()
        self._change.set()

    def reap(self, seconds: float) -> None:
        """End the servers that have been idle for so many seconds."""
        now = asyncio.get_running_loop().time()
        for member in self._members:
            if member.idle and now - member.used > seconds:
                member.leaving = True
        self._freed()

    async def close(self) -> None:
        """End all servers."""
        for member in self._members:
            member.leaving = True
        await end_all([member.child for member in self._members], ORDERLY)
        for member in self._members:
            await member.reading


def _busy(member: PooledServer) -> bool:
    return not member.idle


def _speaks(raw: bytes) -> bool:
    try:
        found = read(raw)
    except DocumentError:
        return False
    return isinstance(found, Message) and found.speaks
